"""Small federation on which official programs are run, with rows, labels and initial weights from a formula.

The net is Linear(3, 4), ReLU, Linear(4, 3), its loss cross-entropy. Three clients have 4, 6 and 11 rows, which every
epoch reads in order, so that batches of 4 make 1, 2 and 3 steps per epoch. Scripts of this folder run a checkout of an
official program on it and keep the resulting weights. No code of those programs is copied.
"""
import json
import math
import os
import subprocess

import torch

FEATURES, HIDDEN, CLASSES = 3, 4, 3
CLIENT_ROWS = (4, 6, 11)
ROUNDS = 3
SHAPES = {"fc1.weight": (HIDDEN, FEATURES), "fc1.bias": (HIDDEN,),
          "fc2.weight": (CLASSES, HIDDEN), "fc2.bias": (CLASSES,)}


def values(first, count, scale):
    return [round(scale * math.sin(1.0 + 2.3 * (first + i) + 0.11 * (first + i) ** 2), 6) for i in range(count)]


def rows_of(client, offset=0):
    """Rows [n, 3] float32 and labels [n] of a client. @param offset selects other rows of the same client"""
    n = CLIENT_ROWS[client]
    first = offset + 100 * client
    return (torch.tensor(values(first, n * FEATURES, 1.5), dtype=torch.float32).reshape(n, FEATURES),
            torch.tensor([(i * i + client + offset) % CLASSES for i in range(n)]))


def initial_weights():
    """Returns {name: tensor} of the initial weights."""
    made = {}
    for place, (name, shape) in enumerate(SHAPES.items()):
        made[name] = torch.tensor(values(1000 + 50 * place, math.prod(shape), 0.6), dtype=torch.float32).reshape(shape)
    return made


def load_into(net, names=("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")):
    """Gives a net the initial weights; its parameters must be these four, in this order."""
    with torch.no_grad():
        for parameter, name in zip(net.parameters(), names, strict=True):
            parameter.copy_(initial_weights()[name])
    return net


def plain_net():
    """Returns the net with PyTorch's layers."""
    return load_into(torch.nn.Sequential(torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(),
                                         torch.nn.Linear(HIDDEN, CLASSES)))


def flat(tensors):
    """All weights as one list, in the order of SHAPES."""
    return [float(value) for tensor in tensors for value in torch.as_tensor(tensor).flatten()]


def commit_of(checkout):
    return subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True,
                          check=True).stdout.strip()


def write(path, repository, commit, settings, after_rounds, **more):
    """Writes a golden file: origin of its numbers, the federation, and the weights after each round."""
    record = {"repository": repository, "commit": commit, "settings": settings,
              "rows": [rows_of(client)[0].tolist() for client in range(len(CLIENT_ROWS))],
              "labels": [rows_of(client)[1].tolist() for client in range(len(CLIENT_ROWS))],
              "initial": flat(initial_weights().values()), "after_rounds": after_rounds, **more}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    print(path)
