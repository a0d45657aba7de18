#!/usr/bin/env python3
"""Server steps of FedAdam and FedYogi in Flower, on given uploads.

    python3 tools/research/export/official/flower.py [tests/golden]

Needs the package flwr 1.41.0. Uploads of each round are computed by a formula, so that only the server's step is
compared. Every fifth weight changes a hundred times less than the others.
"""
import os
import sys

import flwr
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.strategy import FedAdam, FedYogi

import problem

REPOSITORY = "https://github.com/adap/flower"
RUNS = {
    "fed_adam/flower": (FedAdam, {"server_learning_rate": 0.05, "beta_1": 0.9, "beta_2": 0.99, "tau": 0.001}),
    "fed_adam/flower_fast": (FedAdam, {"server_learning_rate": 0.1, "beta_1": 0.5, "beta_2": 0.8, "tau": 0.1}),
    "fed_yogi/flower": (FedYogi, {"server_learning_rate": 0.05, "beta_1": 0.9, "beta_2": 0.99, "tau": 0.001}),
    "fed_yogi/flower_fast": (FedYogi, {"server_learning_rate": 0.1, "beta_1": 0.5, "beta_2": 0.8, "tau": 0.1}),
}


def uploads_of(round_):
    """Uploads [clients][weights]: initial weights with changes that become smaller."""
    start = problem.flat(problem.initial_weights().values())
    made = []
    for client in range(len(problem.CLIENT_ROWS)):
        moved = problem.values(5000 + 300 * round_ + 40 * client, len(start), 0.5 / (1 + 2 * round_))
        made.append([first + by * (0.01 if i % 5 == 1 else 1.0) for i, (first, by) in enumerate(zip(start, moved))])
    return made


def arrays(values):
    import numpy
    return [numpy.array(values, dtype=numpy.float32)]


def run(kind, with_):
    strategy = kind(initial_parameters=ndarrays_to_parameters(arrays(problem.flat(problem.initial_weights().values()))),
                    eta=with_["server_learning_rate"], beta_1=with_["beta_1"], beta_2=with_["beta_2"], tau=with_["tau"])
    after = []
    for round_ in range(problem.ROUNDS):
        results = [(None, FitRes(Status(Code.OK, ""), ndarrays_to_parameters(arrays(sent)), rows, {}))
                   for sent, rows in zip(uploads_of(round_), problem.CLIENT_ROWS)]
        parameters, _ = strategy.aggregate_fit(round_ + 1, results, [])
        after.append(parameters_to_ndarrays(parameters)[0].tolist())
    return after


def main():
    into = sys.argv[1] if len(sys.argv) > 1 else os.path.join("tests", "golden")
    for name, (kind, with_) in RUNS.items():
        uploads = [uploads_of(round_) for round_ in range(problem.ROUNDS)]
        problem.write(os.path.join(into, name + ".json"), REPOSITORY, f"flwr {flwr.__version__}", with_,
                      run(kind, with_), uploads=uploads)


if __name__ == "__main__":
    main()
