#!/usr/bin/env python3
"""calibrate.py FEDERATION CLIENTS CONCURRENCY ADDRESS FILE: measures each client's device profile under its limits.

A Flower server sends all clients messages and jobs of several sizes at the same time: an empty round trip, the model
down, the model up, training on a quarter of the rows, and training on all rows. Clients share a machine, so they get
requests as in the federation: all again when all have replied, or, with CONCURRENCY, each as soon as it has replied.
The empty round trip gives the latency. The transfers, minus the latency, give the link's payload rate in Mbit/s,
including packing by the client in its share of a core. The two trainings give rows per second and the fixed cost of a
job. FILE receives a JSON list by client number.
"""
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from federations import FEDERATIONS, arrays_of
from flwr.common import FitIns, ndarrays_to_parameters
from flwr.server import Server, ServerConfig, SimpleClientManager, start_server
from flwr.server.history import History

REPEATS = {"lenet": 12, "cnn": 6, "noop": 3}  # measurements, which take half a minute to a minute each
MIN_ROW_S, PATIENCE_S = 1e-9, 600.0


class CalibratingServer(Server):
    """Server that requests one kind of message or job after the other from each client."""

    def __init__(self, kind, clients, concurrency):
        super().__init__(client_manager=SimpleClientManager())
        self.kind, self.clients, self.profiles = kind, clients, []
        self.all_answered = Barrier(1 if concurrency else clients)

    def fit(self, num_rounds, timeout):
        while self._client_manager.num_available() < self.clients:
            time.sleep(0.05)
        proxies = list(self._client_manager.all().values())
        with ThreadPoolExecutor(len(proxies)) as pool:
            by_number = dict(pool.map(self.profile_of, proxies))
        self.profiles = [by_number[number] for number in sorted(by_number)]
        return History(), 0.0

    def profile_of(self, proxy):
        """Returns (number of the client, its profile)."""
        weights = arrays_of(self.kind)
        model, empty = ndarrays_to_parameters(weights), ndarrays_to_parameters([])
        bits = 8.0 * sum(value.nbytes for value in weights)
        number, rows = self.asked(proxy, model, True, -1)[2:]  # warm-up: the first call loads libraries
        start_s = self.median(proxy, empty, False, 0)[0]
        down_s = self.median(proxy, model, False, 0)[0] - start_s
        up_s = self.median(proxy, empty, True, 0)[0] - start_s
        profile = {"round_start_s": start_s, "job_start_s": 0.0, "rows_per_second": 1e9,
                   "downlink_mbit": 1e-6 * bits / down_s, "uplink_mbit": 1e-6 * bits / up_s}
        if FEDERATIONS[self.kind]["trains"]:
            batch = FEDERATIONS[self.kind]["batch"]
            few = max(batch, rows // 4 // batch * batch)
            few_s, all_s = (self.median(proxy, model, True, count)[1] for count in (min(few, rows), rows))
            row_s = max((all_s - few_s) / (rows - few), MIN_ROW_S) if rows > few else all_s / rows
            profile.update(rows_per_second=1.0 / row_s, job_start_s=max(all_s - rows * row_s, 0.0))
        return number, profile

    def median(self, proxy, *what):
        """Median of the seconds until the reply, and of the seconds of the job within them."""
        answers = [self.asked(proxy, *what) for _ in range(REPEATS[self.kind])]
        return [statistics.median(answer[place] for answer in answers) for place in (0, 1)]

    def asked(self, proxy, parameters, reply, rows):
        """Sends a request. rows: number of rows to train, all if below 0; reply: True if the model is sent back"""
        self.all_answered.wait(PATIENCE_S)
        began = time.monotonic()
        answer = proxy.fit(FitIns(parameters, {"rows": rows, "reply": reply}), None, None)
        taken, told = time.monotonic() - began, answer.metrics
        return taken, told["compute_s"], int(told["number"]), answer.num_examples


def main():
    kind, clients, concurrency, address, file = sys.argv[1:6]
    server = CalibratingServer(kind, int(clients), int(concurrency))
    start_server(server_address=address, server=server, config=ServerConfig(num_rounds=1))
    with open(file, "w", encoding="utf-8") as out:
        json.dump(server.profiles, out, indent=1)


if __name__ == "__main__":
    main()
