#!/usr/bin/env python3
"""server.py FEDERATION CLIENTS ROUNDS DEADLINE_S CONCURRENCY ADDRESS DIR: the server of the real federation.

Flower carries the messages and averages. This file decides on requests and waiting as mneme does. A synchronous round
ends when all clients have replied or at its deadline (0: none); a late client continues and gets its next request once
it has replied. With CONCURRENCY > 0 it is FedAsync: each reply is a server step, and another client gets a request at
once. mneme draws the clients. The real server takes the first idle client of mneme's sequence in DIR/asked.json, so
that both use the same clients as long as replies come in the same order. DIR/measured.json receives the times of
requests and replies.
"""
import json
import os
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from federations import FEDERATIONS, arrays_of
from flwr.common import FitIns, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import Server, ServerConfig, SimpleClientManager, start_server
from flwr.server.history import History
from flwr.server.strategy.aggregate import aggregate

MIXING = 0.6


class TimedServer(Server):
    """Runs rounds over Flower's proxies and records the times of each client's requests and replies."""

    def __init__(self, kind, clients, deadline_s, concurrency, sequence):
        super().__init__(client_manager=SimpleClientManager())
        self.kind, self.clients, self.deadline_s, self.concurrency = kind, clients, deadline_s, concurrency
        self.sequence = sequence
        self.pool = ThreadPoolExecutor(clients)
        self.weights = arrays_of(kind)
        self.at_work, self.answers, self.rounds = {}, [], []

    def fit(self, num_rounds, timeout):
        while self._client_manager.num_available() < self.clients:
            time.sleep(0.05)
        self.proxies = list(self._client_manager.all().values())
        for proxy in self.proxies:  # warm-up: the first call loads libraries and is no round
            self.ask(proxy, 0)
        loaded = self.wait_for(len(self.at_work))
        self.numbered = {int(result.metrics["number"]): proxy for proxy, result in loaded}
        self.answers.clear()
        self.zero = time.monotonic()
        began = time.monotonic()
        (self.run_async if self.concurrency else self.run_sync)(num_rounds)
        return History(), time.monotonic() - began

    def now(self):
        return time.monotonic() - self.zero

    def ask(self, proxy, number):
        asked = time.monotonic()
        parameters = self.message
        def call():
            result = proxy.fit(FitIns(parameters, {}), None, None)
            return result, time.monotonic()
        self.at_work[self.pool.submit(call)] = (proxy, number, asked)

    @property
    def message(self):
        return ndarrays_to_parameters(self.weights)

    def wait_for(self, count, until=None):
        """Returns the results of `count` replies, or of those that have arrived by `until`."""
        results = []
        while len(results) < count and self.at_work:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            done, _ = wait(self.at_work, timeout=left, return_when=FIRST_COMPLETED)
            if not done:
                break
            for future in sorted(done, key=lambda future: future.result()[1]):
                proxy, number, asked = self.at_work.pop(future)
                result, answered = future.result()
                if number > 0:
                    self.answers.append({"round": number, "client": int(result.metrics["number"]),
                                         "asked_s": asked - self.zero, "answered_s": answered - self.zero,
                                         "compute_s": result.metrics["compute_s"]})
                results.append((proxy, result))
        return results

    def note_round(self, number, opened, closed):
        """Records a server step."""
        self.rounds.append({"round": number, "opened_s": opened, "closed_s": closed, "server_s": self.now() - closed})

    def run_sync(self, rounds):
        for number in range(1, rounds + 1):
            opened = self.now()
            idle = [proxy for proxy in self.proxies if proxy not in [at[0] for at in self.at_work.values()]]
            for proxy in idle:
                self.ask(proxy, number)
            of_round = {future for future, at in self.at_work.items() if at[1] == number}
            until = time.monotonic() + self.deadline_s if self.deadline_s else None
            results = []
            while of_round & self.at_work.keys():
                came = self.wait_for(1, until)
                if not came:
                    break
                results += came
            closed = self.now()
            if results:
                self.weights = aggregate([(parameters_to_ndarrays(result.parameters), result.num_examples)
                                          for _, result in results])
            self.note_round(number, opened, closed)
        self.wait_for(len(self.at_work))

    def next_in_sequence(self):
        """First idle client of the sequence; any idle client once the sequence has ended."""
        busy = [at[0] for at in self.at_work.values()]
        for place, number in enumerate(self.sequence):
            if self.numbered[number] not in busy:
                return self.numbered[self.sequence.pop(place)]
        return next(proxy for proxy in self.proxies if proxy not in busy)

    def run_async(self, steps):
        for _ in range(self.concurrency):
            self.ask(self.next_in_sequence(), 1)
        for number in range(1, steps + 1):
            opened = self.now()
            _, result = self.wait_for(1)[0]
            closed = self.now()
            theirs = parameters_to_ndarrays(result.parameters)
            self.weights = [(1.0 - MIXING) * own + MIXING * new for own, new in zip(self.weights, theirs)]
            self.note_round(number, opened, closed)
            if number < steps:
                self.ask(self.next_in_sequence(), number + 1)
        self.wait_for(len(self.at_work))


def main():
    kind, clients, rounds, deadline_s, concurrency, address, folder = sys.argv[1:8]
    if kind not in FEDERATIONS:
        sys.exit(f"{kind}: expected one of {', '.join(FEDERATIONS)}")
    with open(os.path.join(folder, "asked.json"), encoding="utf-8") as file:
        sequence = json.load(file)
    server = TimedServer(kind, int(clients), float(deadline_s), int(concurrency), sequence)
    start_server(server_address=address, server=server, config=ServerConfig(num_rounds=int(rounds)))
    with open(os.path.join(folder, "measured.json"), "w", encoding="utf-8") as out:
        json.dump({"rounds": server.rounds, "answers": server.answers}, out, indent=1)


if __name__ == "__main__":
    main()
