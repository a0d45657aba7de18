#!/usr/bin/env python3
"""Layer lists in PyTorch, the reference for mneme's model "layers".

    python3 tools/research/export/layers_reference.py [tests/golden/torchvision]

Weights, inputs, records and requirements are those of torchvision_reference.py. Does not use mneme: each list is
written next to the equivalent torch.nn.Sequential, and parameters have PyTorch's names.
"""
from torch import nn

from torchvision_reference import record_of, write_records


class Residual(nn.Module):
    def __init__(self, body, shortcut=None):
        super().__init__()
        self.body = nn.Sequential(*body)
        self.shortcut = nn.Sequential(*shortcut) if shortcut else None

    def forward(self, x):
        return self.body(x) + (self.shortcut(x) if self.shortcut else x)


class Listed(nn.Sequential):
    """Sequential whose features are the input of the last layer."""

    def features(self, x):
        return self[:-1](x)


def blocks():
    half = Residual([nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                     nn.Conv2d(16, 16, 3, padding=1), nn.GroupNorm(4, 16)],
                    [nn.Conv2d(8, 16, 1, stride=2, bias=False), nn.BatchNorm2d(16)])
    same = Residual([nn.Linear(24, 24), nn.LayerNorm(24), nn.GELU(), nn.Linear(24, 24, bias=False)])
    return Listed(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), half,
                  nn.ReLU(), nn.Flatten(), nn.Linear(16 * 4 * 4, 24), nn.SiLU(), same, nn.Linear(24, 10))


BLOCKS = """conv 8 3x3 pad 1 no-bias, batch-norm, relu, max-pool 2,
residual [, conv 16 3x3 stride 2 pad 1 no-bias, batch-norm, relu, conv 16 3x3 pad 1, group-norm 4,
] shortcut [, conv 16 1x1 stride 2 no-bias, batch-norm, ], relu,
flatten, linear 24, silu, residual [, linear 24, layer-norm, gelu, linear 24 no-bias, ], linear classes"""


def flat():
    return Listed(nn.Conv2d(2, 6, 3), nn.Tanh(), nn.MaxPool2d(2, padding=1), nn.ReLU(), nn.Flatten(),
                  nn.BatchNorm1d(6 * 4 * 5), nn.LeakyReLU(0.2), nn.Linear(6 * 4 * 5, 10))


FLAT = "conv 6 3x3, tanh, max-pool 2 pad 1, relu, flatten, batch-norm, leaky-relu 0.2, linear classes"


def written(text):
    return {"layers": ", ".join(word.strip() for word in text.replace("\n", " ").split(","))}


# The entries are those of torchvision_reference.py.
CASES = {
    "layers_blocks": ("layers", written(BLOCKS), blocks, (3, 3, 16, 16), (3, 3, 16, 16)),
    "layers_flat": ("layers", written(FLAT), flat, (3, 2, 8, 10), (4, 2, 8, 10)),
}


if __name__ == "__main__":
    write_records(__doc__, CASES, record_of, "torchvision")
