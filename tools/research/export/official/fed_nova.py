#!/usr/bin/env python3
"""FedNova's official program (JYWa/FedNova) on the federation of problem.py.

    python3 tools/research/export/official/fed_nova.py CHECKOUT [tests/golden]

Runs the checkout's optimizer, distoptim.FedNova, in one process per client; they sum through torch.distributed. Each
client starts at the problem's weights, takes its steps and calls average(). It uses a CPU where the program requests a
device. The name `required`, which PyTorch has removed, is restored. Needs PyTorch and numpy.
"""
import os
import sys
import tempfile

import torch
import torch.distributed
import torch.multiprocessing
import torch.nn.functional
import torch.optim.optimizer as base

import problem

REPOSITORY = "https://github.com/JYWa/FedNova"
SHARED = {"batch": 4, "epochs": 2, "learning_rate": 0.2, "weight_decay": 0.01}
RUNS = {
    "plain": dict(SHARED),
    "momentum": dict(SHARED, momentum=0.5),
    "proximal": dict(SHARED, mu=0.3),
    "proximal_momentum": dict(SHARED, mu=0.3, momentum=0.5),
    "server_momentum": dict(SHARED, server_momentum=0.4),
}


def client(rank, checkout, rendezvous, with_, out):
    sys.path.insert(0, checkout)
    base.required = object()
    torch.Tensor.cuda = lambda self, *rest, **named: self
    torch.set_num_threads(1)
    from distoptim import FedNova
    torch.distributed.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank,
                                         world_size=len(problem.CLIENT_ROWS))
    net = problem.plain_net()
    rows, labels = problem.rows_of(rank)
    optimizer = FedNova(net.parameters(), ratio=problem.CLIENT_ROWS[rank] / sum(problem.CLIENT_ROWS),
                        gmf=with_.get("server_momentum", 0), mu=with_.get("mu", 0), lr=with_["learning_rate"],
                        momentum=with_.get("momentum", 0), weight_decay=with_["weight_decay"])
    after = []
    for _ in range(problem.ROUNDS):
        for _ in range(with_["epochs"]):
            for first in range(0, len(rows), with_["batch"]):
                optimizer.zero_grad()
                found = net(rows[first:first + with_["batch"]])
                torch.nn.functional.cross_entropy(found, labels[first:first + with_["batch"]]).backward()
                optimizer.step()
        optimizer.average()
        after.append(problem.flat(parameter.detach() for parameter in net.parameters()))
    if rank == 0:
        torch.save(after, out)
    torch.distributed.destroy_process_group()


def main():
    checkout, into = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    for name, with_ in RUNS.items():
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "after")
            torch.multiprocessing.spawn(client, (checkout, os.path.join(folder, "rendezvous"), with_, out),
                                        nprocs=len(problem.CLIENT_ROWS))
            after = torch.load(out)
        problem.write(os.path.join(into, "fed_nova", f"official_{name}.json"), REPOSITORY,
                      problem.commit_of(checkout), with_, after)


if __name__ == "__main__":
    main()
