#!/usr/bin/env python3
"""client.py run|calibrate FEDERATION ROWS ADDRESS FILE: a client of the real federation, in its namespace and share.

`run` connects to a Flower server. `calibrate` measures, in the same place, what a device profile says: seconds of a job
beside its rows, rows a second, and the link's Mbit/s in both directions; it writes a JSON object to FILE.
"""
import json
import socket
import statistics
import sys
import time

from federations import FEDERATIONS, arrays_of, net_of

LINK_SECONDS = 4.0


class Trainer:
    """Local training as any PyTorch client does it: SGD over batches, one epoch."""

    def __init__(self, kind, rows):
        import torch
        torch.set_num_threads(1)
        self.torch, self.of, self.rows = torch, FEDERATIONS[kind], rows
        torch.manual_seed(1)
        self.net = net_of(kind)
        self.inputs = torch.rand(rows, *self.of["shape"])
        self.labels = torch.randint(0, self.of["classes"], (rows,))

    def load(self, arrays):
        state = {name: self.torch.from_numpy(value.copy()) for name, value in zip(self.net.state_dict(), arrays)}
        self.net.load_state_dict(state)

    def train(self, rows):
        optimizer = self.torch.optim.SGD(self.net.parameters(), lr=0.01)
        loss = self.torch.nn.CrossEntropyLoss()
        order = self.torch.randperm(rows)
        self.net.train()
        for batch in order.split(self.of["batch"]):
            optimizer.zero_grad(set_to_none=True)
            loss(self.net(self.inputs[batch]), self.labels[batch]).backward()
            optimizer.step()

    def arrays(self):
        return [value.detach().numpy() for value in self.net.state_dict().values()]


def run(kind, rows, address):
    from flwr.client import NumPyClient, start_client
    trainer = Trainer(kind, rows) if FEDERATIONS[kind]["trains"] else None

    class Client(NumPyClient):
        def fit(self, parameters, config):
            began = time.monotonic()
            if trainer:
                trainer.load(parameters)
                trainer.train(rows)
                parameters = trainer.arrays()
            return parameters, rows, {"compute_s": time.monotonic() - began, "number": int(sys.argv[6])}

    start_client(server_address=address, client=Client().to_client(), insecure=True)


def seconds_of(action, enough_s=3.0, least=3):
    times, began = [], time.monotonic()
    action()
    while len(times) < least or time.monotonic() - began < enough_s:
        start = time.monotonic()
        action()
        times.append(time.monotonic() - start)
    return statistics.median(times)


def measured_link(host, port):
    """Mbit/s down and up, of payload, once the connection has come to speed."""
    rates = []
    for direction in (b"D", b"U"):
        with socket.create_connection((host, port)) as line:
            line.sendall(direction)
            payload, moved, began = bytes(1 << 16), 0, None
            start = time.monotonic()
            while time.monotonic() - start < LINK_SECONDS:
                count = len(line.recv(1 << 16)) if direction == b"D" else line.send(payload)
                if time.monotonic() - start > LINK_SECONDS / 4:
                    began = began or time.monotonic()
                    moved += count
            rates.append(8e-6 * moved / (time.monotonic() - began))
    return rates


def calibrate(kind, rows, address):
    """`address`: of the sink that server.py opens."""
    from flwr.common import ndarrays_to_parameters, parameters_to_ndarrays
    from flwr.common.serde import parameters_from_proto, parameters_to_proto
    arrays = arrays_of(kind)

    def message():
        """What Flower does with a model that comes and goes."""
        sent = parameters_to_proto(ndarrays_to_parameters(arrays)).SerializeToString()
        proto = type(parameters_to_proto(ndarrays_to_parameters([])))()
        proto.ParseFromString(sent)
        return parameters_to_ndarrays(parameters_from_proto(proto))

    made = {"round_start_s": seconds_of(message), "job_start_s": 0.0, "rows_per_second": 1e9}
    if FEDERATIONS[kind]["trains"]:
        trainer = Trainer(kind, rows)
        few = max(FEDERATIONS[kind]["batch"], rows // 4)
        few -= few % FEDERATIONS[kind]["batch"]
        both = {count: seconds_of(lambda count=count: trainer.train(count)) for count in {min(few, rows), rows}}
        loading = seconds_of(lambda: trainer.load(arrays))
        if len(both) == 2:
            row_s = max((both[rows] - both[few]) / (rows - few), 1e-9)
            made.update(rows_per_second=1.0 / row_s, job_start_s=max(both[rows] - rows * row_s, 0.0) + loading)
        else:
            made.update(rows_per_second=rows / both[rows], job_start_s=loading)
    host, port = address.rsplit(":", 1)
    made["downlink_mbit"], made["uplink_mbit"] = measured_link(host, int(port))
    return made


def main():
    action, kind, rows, address, file = sys.argv[1:6]
    if action == "run":
        return run(kind, int(rows), address)
    with open(file, "w", encoding="utf-8") as out:
        json.dump(calibrate(kind, int(rows), address), out)


if __name__ == "__main__":
    main()
