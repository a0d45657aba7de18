#!/usr/bin/env python3
"""client.py FEDERATION ROWS ADDRESS NUMBER: a client of the real federation, in its network namespace and CPU share.

Connects to a Flower server at ADDRESS (server.py or calibrate.py) and answers its requests until the server ends.
"""
import sys
import time

from federations import FEDERATIONS, arrays_of, net_of


class Trainer:
    """Local training of a usual PyTorch client: SGD over batches, one epoch."""

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


def run(kind, rows, address, number):
    from flwr.client import NumPyClient, start_client
    trainer = Trainer(kind, rows) if FEDERATIONS[kind]["trains"] else None
    weights = arrays_of(kind)

    class Client(NumPyClient):
        def fit(self, parameters, config):
            """Trains. `rows` and `reply` are set by calibrate.py; a round trains on all rows and sends the model."""
            began, count = time.monotonic(), int(config.get("rows", -1))
            if trainer and count != 0:
                trainer.load(parameters)
                trainer.train(count if count > 0 else rows)
            seconds = time.monotonic() - began
            answer = (trainer.arrays() if trainer else weights) if config.get("reply", True) else []
            return answer, rows, {"compute_s": seconds, "number": number}

    start_client(server_address=address, client=Client().to_client(), insecure=True)


def main():
    kind, rows, address, number = sys.argv[1:5]
    run(kind, int(rows), address, int(number))


if __name__ == "__main__":
    main()
