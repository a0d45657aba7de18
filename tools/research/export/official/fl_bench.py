#!/usr/bin/env python3
"""SCAFFOLD of KarhouTam/FL-bench on the federation of problem.py.

    python3 tools/research/export/official/fl_bench.py CHECKOUT [tests/golden]

Calls the checkout's SCAFFOLDClient.train and SCAFFOLDServer.aggregate_client_updates in turn. Objects are created
without the constructors that read configuration and data. Each client's rows are one batch. Needs PyTorch; modules that
only configuration, data and printing need are omitted.
"""
import os
import sys
import types
from collections import OrderedDict
from unittest import mock

import torch

import problem

REPOSITORY = "https://github.com/KarhouTam/FL-bench"
SETTINGS = {"batch": 0, "epochs": 2, "learning_rate": 0.2, "weight_decay": 0.01}
RUNS = {"plain": {}, "server_rate": {"server_learning_rate": 0.5}}
LEFT_OUT = ("omegaconf", "data", "data.utils", "data.utils.datasets", "src.utils", "src.utils.functional",
            "src.utils.metrics", "src.utils.models", "src.server.fedavg")


class bare_server:
    """Base class of the server without its configuration."""


def client_of(number, with_):
    from src.client.scaffold import SCAFFOLDClient
    made = object.__new__(SCAFFOLDClient)
    made.model = problem.plain_net()
    made.optimizer = torch.optim.SGD(made.model.parameters(), lr=with_["learning_rate"],
                                     weight_decay=with_["weight_decay"])
    made.init_optimizer_state = made.optimizer.state_dict()
    made.criterion, made.device, made.dataset = torch.nn.CrossEntropyLoss(), torch.device("cpu"), mock.MagicMock()
    made.lr_scheduler, made.return_diff, made.personal_params_name, made.eval_results = None, True, [], {}
    made.regular_params_name = [name for name, _ in made.model.named_parameters()]
    made.trainset = range(problem.CLIENT_ROWS[number])
    made.trainloader = [problem.rows_of(number)]
    common = types.SimpleNamespace(local_epoch=with_["epochs"], reset_optimizer_on_global_epoch=True, buffers="global")
    made.args = types.SimpleNamespace(common=common, optimizer=types.SimpleNamespace(lr=with_["learning_rate"]))
    made.load_data_indices = lambda: None
    made.evaluate = lambda: mock.MagicMock()
    made.train_with_eval = made.fit  # without the evaluations before and after it
    return made


def run(with_):
    from src.server.scaffold import SCAFFOLDServer
    clients = [client_of(number, with_) for number in range(len(problem.CLIENT_ROWS))]
    server = object.__new__(SCAFFOLDServer)
    server.args = types.SimpleNamespace(
        scaffold=types.SimpleNamespace(global_lr=with_.get("server_learning_rate", 1.0)))
    server.client_num = len(clients)
    server.public_model_params = OrderedDict(
        (name, parameter.detach().clone()) for name, parameter in problem.plain_net().named_parameters())
    server.c_global = [torch.zeros_like(parameter) for parameter in server.public_model_params.values()]
    own = [[torch.zeros_like(parameter) for parameter in server.c_global] for _ in clients]
    after = []
    for _ in range(problem.ROUNDS):
        packages = OrderedDict()
        for number, trained in enumerate(clients):
            packages[number] = trained.train({
                "client_id": number, "local_epoch": with_["epochs"], "optimizer_state": None,
                "regular_model_params": OrderedDict((name, value.clone())
                                                    for name, value in server.public_model_params.items()),
                "personal_model_params": {}, "c_global": server.c_global, "c_local": own[number]})
            own[number] = trained.c_local
        server.aggregate_client_updates(packages)
        after.append(problem.flat(server.public_model_params.values()))
    return after


def main():
    checkout, into = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    sys.path.insert(0, checkout)
    for name in LEFT_OUT:
        sys.modules[name] = mock.MagicMock()
    sys.modules["src.server.fedavg"].FedAvgServer = bare_server
    for name, changed in RUNS.items():
        with_ = dict(SETTINGS, **changed)
        problem.write(os.path.join(into, "scaffold", f"fl_bench_{name}.json"), REPOSITORY, problem.commit_of(checkout),
                      with_, run(with_))


if __name__ == "__main__":
    main()
