#!/usr/bin/env python3
"""Experience replay of aimagelab/mammoth for one client of problem.py with three tasks.

    python3 tools/research/export/official/mammoth.py CHECKOUT [tests/golden]

Calls the checkout's Er.observe with its Buffer once per task. All rows of a task are one batch. The buffer keeps and
replays all rows, because numpy would draw which ones it omits. Needs PyTorch and numpy; kornia and the data sets are
omitted.
"""
import argparse
import os
import sys
import types
from unittest import mock

import torch

import problem

REPOSITORY = "https://github.com/aimagelab/mammoth"
SETTINGS = {"batch": 0, "epochs": 1, "learning_rate": 0.2, "weight_decay": 0.01, "buffer": 40, "replayed": 40}
CLIENT, TASKS = 2, 3


def main():
    checkout = os.path.abspath(sys.argv[1])
    into = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden"))
    sys.path.insert(0, checkout)
    for name in ("kornia", "datasets", "utils.conf", "utils.kornia_utils", "utils.magic", "utils.augmentations",
                 "utils.args"):
        sys.modules[name] = mock.MagicMock()
    sys.modules["utils.conf"].get_device = lambda: torch.device("cpu")
    sys.modules["utils.augmentations"].apply_transform = lambda rows, transform: transform(rows)
    from models.er import Er

    arguments = argparse.Namespace(buffer_size=SETTINGS["buffer"], minibatch_size=SETTINGS["replayed"],
                                   lr=SETTINGS["learning_rate"], optimizer="sgd", optim_wd=SETTINGS["weight_decay"],
                                   optim_mom=0.0, optim_nesterov=False, label_perc=1)
    data = types.SimpleNamespace(N_CLASSES=problem.CLASSES, N_TASKS=TASKS, SETTING="domain-il",
                                 N_CLASSES_PER_TASK=problem.CLASSES, get_normalization_transform=lambda: None)
    learner = Er(problem.plain_net(), torch.nn.functional.cross_entropy, arguments, None, data)
    after, tasks = [], [problem.rows_of(CLIENT, 40 * task) for task in range(TASKS)]
    for rows, labels in tasks:
        learner.observe(rows, labels, rows)
        after.append(problem.flat(parameter.detach() for parameter in learner.net.parameters()))
    problem.write(os.path.join(into, "er", "mammoth.json"), REPOSITORY, problem.commit_of(checkout), SETTINGS, after,
                  task_rows=[rows.tolist() for rows, _ in tasks], task_labels=[labels.tolist() for _, labels in tasks])


if __name__ == "__main__":
    main()
