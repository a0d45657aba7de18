#!/usr/bin/env python3
"""Modules for [model] module: exported programs (.pt2) and TorchScript files (.pt).

    python3 tools/research/export/modules.py tiny scenarios/smoke/tiny.pt2
    python3 tools/research/export/modules.py tiny scenarios/smoke/tiny.pt
    python3 tools/research/export/modules.py resnet18 resnet18.pt2 --shape 3,32,32 [--weights FILE] [--eval]
    python3 tools/research/export/modules.py check FILE.pt --shape 3,32,32

tiny: a convolution, batch normalization and pooling for images of 3x10x10, weights by formula(). resnet18:
torchvision's up to its pooling, 512 features; without --weights initialized from seed 1. check: prints the results of
forward() of a TorchScript file for rows by formula(), one per line. The packages are pinned in
tools/wheels/export.txt. Does not use mneme's engine.

A FILE with the extension .pt2 is written by torch.export.save, in training mode unless --eval is given.
"""
import argparse
import io
import os
import sys
import zipfile

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


def save(net, path):
    """Saves a scripted net in evaluation mode, float32, on the CPU, as mneme requires. Omits debug information, which
    is half of a small file."""
    whole = io.BytesIO()
    torch.jit.save(torch.jit.script(net.eval().float()), whole)
    with zipfile.ZipFile(whole) as made, zipfile.ZipFile(path, "w") as kept:
        for entry in made.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                packing = zipfile.ZIP_DEFLATED if entry.filename.endswith(".py") else zipfile.ZIP_STORED
                kept.writestr(zipfile.ZipInfo(entry.filename), made.read(entry), packing)


def save_program(net, path, shape, training):
    """Saves a program like mneme.net(): training IR, any number of rows, no debug information."""
    program = torch.export.export(net.float().train(training), (torch.zeros(2, *shape),),
                                  dynamic_shapes=({0: torch.export.Dim("B")},))
    whole = io.BytesIO()
    torch.export.save(program, whole)
    with open(path, "wb") as file:
        file.write(slim(whole.getvalue()))


def check(path, shape):
    rows = torch.from_numpy(formula("rows", 4 * shape[0] * shape[1] * shape[2])).reshape(4, *shape)
    with torch.no_grad():
        for row in torch.jit.load(path).eval()(rows):
            print(" ".join(f"{value:.9g}" for value in row.tolist()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("tiny", "resnet18", "check"))
    parser.add_argument("file")
    parser.add_argument("--weights", help="resnet18: safetensors with torchvision's names")
    parser.add_argument("--shape", default="3,10,10", help="channels, height and width of a row: check, .pt2")
    parser.add_argument("--eval", action="store_true", help=".pt2: batch norms and dropout stay in evaluation mode")
    given = parser.parse_args()
    shape = [int(word) for word in given.shape.split(",")]
    if given.kind == "check":
        return check(given.file, shape)
    net = tiny() if given.kind == "tiny" else resnet18(given.weights)
    if given.file.endswith(".pt2"):
        return save_program(net, given.file, shape, not given.eval)
    return save(net, given.file)


if __name__ == "__main__":
    main()
