#!/usr/bin/env python3
"""Modules for [model] module: exported programs (.pt2).

    python3 tools/research/export/modules.py tiny scenarios/smoke/tiny.pt2
    python3 tools/research/export/modules.py resnet18 resnet18.pt2 --shape 3,32,32 [--weights FILE] [--eval]
    python3 tools/research/export/modules.py check > tests/golden/modules/tiny.txt

tiny: a convolution, batch normalization and pooling for images of 3x10x10, with weights from formula(). resnet18:
torchvision's up to its pooling, 512 features; without --weights initialized from seed 1. check: prints PyTorch's
results of tiny in evaluation mode for rows from formula(), one per line. The packages are pinned in
tools/wheels/export.txt. Does not use mneme's engine.

A file is written by torch.export.save, in training mode unless --eval is given.
"""
import argparse
import io
import os
import sys

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python", "mneme")]
sys.dont_write_bytecode = True
from _slim import slim  # noqa: E402
from torchvision_reference import formula, made_values  # noqa: E402


class Tiny(nn.Module):
    """Net from [B, 3, 10, 10] to [B, 64]."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        return torch.flatten(nn.functional.avg_pool2d(x, 2), 1)


def tiny():
    net = Tiny()
    with torch.no_grad():
        for name, value in net.state_dict().items():
            if value.is_floating_point():
                value.copy_(made_values(name, list(value.shape)).float())
    return net


class Body(nn.Module):
    """Net of torchvision without its last layer."""

    def __init__(self, net):
        super().__init__()
        self.layers = nn.Sequential(*list(net.children())[:-1])

    def forward(self, x):
        return torch.flatten(self.layers(x), 1)


def resnet18(weights):
    from torchvision.models import resnet18 as make
    torch.manual_seed(1)
    net = make()
    if weights:
        from safetensors.torch import load_file
        missing, extra = net.load_state_dict(load_file(weights), strict=False)
        wrong = [name for name in (*missing, *extra) if not name.startswith("fc.")]
        if wrong:
            sys.exit(f"{weights}: these tensors are missing or belong to no layer: {', '.join(wrong)}")
    return Body(net)


def save_program(net, path, shape, training):
    """Saves a program like mneme.net(): training IR, any number of rows, no debug information."""
    program = torch.export.export(net.float().train(training), (torch.zeros(2, *shape),),
                                  dynamic_shapes=({0: torch.export.Dim("B")},))
    whole = io.BytesIO()
    torch.export.save(program, whole)
    with open(path, "wb") as file:
        file.write(slim(whole.getvalue()))


def check():
    rows = torch.from_numpy(formula("rows", 4 * 300)).reshape(4, 3, 10, 10)
    with torch.no_grad():
        for row in tiny().eval()(rows):
            print(" ".join(f"{value:.9g}" for value in row.tolist()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("tiny", "resnet18", "check"))
    parser.add_argument("file", nargs="?", default="net.pt2", help="tiny, resnet18: file to write")
    parser.add_argument("--weights", help="resnet18: safetensors with torchvision's names")
    parser.add_argument("--shape", default="3,10,10", help="channels, height and width of a row")
    parser.add_argument("--eval", action="store_true", help="batch norms and dropout stay in evaluation mode")
    given = parser.parse_args()
    shape = [int(word) for word in given.shape.split(",")]
    if given.kind == "check":
        return check()
    net = tiny() if given.kind == "tiny" else resnet18(given.weights)
    return save_program(net, given.file, shape, not given.eval)


if __name__ == "__main__":
    main()
