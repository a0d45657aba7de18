#!/usr/bin/env python3
"""SCAFFOLD, FedNova and MOON of Xtra-Computing/NIID-Bench on the federation of problem.py.

    python3 tools/research/export/official/niid_bench.py CHECKOUT [tests/golden]

Runs the checkout's program, experiments.py, from its command line to its end, once for each number of rounds. Only the
loading of data and the nets' initial weights are replaced: loaders return the rows in order. Needs PyTorch and numpy;
scikit-learn, which the program needs for a printed table, is omitted.
"""
import os
import runpy
import sys
import tempfile
import types
from unittest import mock

import numpy
import torch
import torchvision  # imported before scikit-learn is replaced by a stub  # noqa: F401
from torch.utils.data import DataLoader, TensorDataset

import problem

REPOSITORY = "https://github.com/Xtra-Computing/NIID-Bench"
SHARED = {"batch": 4, "epochs": 2, "learning_rate": 0.2, "weight_decay": 0.01}
RUNS = {
    "scaffold/niid_bench": ("scaffold", dict(SHARED)),
    "fed_nova/niid_bench": ("fednova", dict(SHARED, momentum=0.5)),
    "moon/niid_bench": ("moon", dict(SHARED, learning_rate=0.05, momentum=0.9, mu=1.0, temperature=0.5)),
}


def loader_of(dataset, datadir, train_bs, test_bs, dataidxs=None, *rest):
    """Replaces the checkout's get_dataloader. dataidxs: rows, of which the first is the client"""
    clients = range(len(problem.CLIENT_ROWS)) if dataidxs is None else [dataidxs[0]]
    rows = [problem.rows_of(client) for client in clients]
    table = TensorDataset(torch.cat([x for x, _ in rows]), torch.cat([y for _, y in rows]))
    loader = DataLoader(table, batch_size=train_bs, shuffle=False)
    return loader, loader, table, table


def partition(*rest, **named):
    """Replaces partition_data. The lists of rows have the length of the clients' tables and begin with the client."""
    nothing = numpy.zeros(1)
    return (nothing, nothing, nothing, nothing,
            {client: [client] * rows for client, rows in enumerate(problem.CLIENT_ROWS)},
            {client: {0: rows} for client, rows in enumerate(problem.CLIENT_ROWS)})


def final_weights(method, with_, rounds, checkout):
    import model
    import utils
    full, contrastive = model.FcNet, model.ModelFedCon_noheader

    def net(*rest):
        return problem.load_into(full(problem.FEATURES, [problem.HIDDEN], problem.CLASSES))

    class net_with_features(contrastive):  # its own forward pass over the problem's layers
        def __init__(self, *rest):
            torch.nn.Module.__init__(self)
            self.features = torch.nn.Sequential(torch.nn.Linear(problem.FEATURES, problem.HIDDEN), torch.nn.ReLU())
            self.num_ftrs = problem.HIDDEN
            self.l3 = torch.nn.Linear(problem.HIDDEN, problem.CLASSES)
            problem.load_into(self)

    arguments = ["experiments.py", "--alg", method, "--model", "mlp", "--dataset", "a9a", "--device", "cpu",
                 "--n_parties", str(len(problem.CLIENT_ROWS)), "--comm_round", str(rounds),
                 "--batch-size", str(with_["batch"]), "--epochs", str(with_["epochs"]),
                 "--lr", str(with_["learning_rate"]), "--reg", str(with_["weight_decay"]),
                 "--rho", str(with_.get("momentum", 0.0)), "--mu", str(with_.get("mu", 0.0)),
                 "--temperature", str(with_.get("temperature", 0.5))]
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(sys, "argv", arguments), \
            mock.patch.multiple(utils, get_dataloader=loader_of, partition_data=partition, FcNet=net,
                                ModelFedCon_noheader=net_with_features):
        sys.argv += ["--logdir", folder, "--modeldir", folder]
        ended = runpy.run_path(os.path.join(checkout, "experiments.py"), run_name="__main__")
    return problem.flat(ended["global_model"].state_dict().values())


def main():
    checkout, into = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    sys.path.insert(0, checkout)
    for name in ("sklearn", "sklearn.metrics", "sklearn.datasets"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["sklearn"].datasets = sys.modules["sklearn.datasets"]
    sys.modules["sklearn.metrics"].confusion_matrix = lambda *rest: None
    sys.modules["sklearn.datasets"].load_svmlight_file = None
    for name, (method, with_) in RUNS.items():
        after = [final_weights(method, with_, rounds, checkout) for rounds in range(1, problem.ROUNDS + 1)]
        problem.write(os.path.join(into, name + ".json"), REPOSITORY, problem.commit_of(checkout), with_, after)


if __name__ == "__main__":
    main()
