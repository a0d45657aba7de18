#!/usr/bin/env python3
"""TorchScript modules that a scenario may name in [model] module.

    python3 tools/export/modules.py tiny scenarios/smoke/tiny.pt
    python3 tools/export/modules.py resnet18 resnet18.pt [--weights resnet18.safetensors]
    python3 tools/export/modules.py check FILE --shape 3,32,32

tiny: a convolution, batch normalisation and pooling for images of 3x10x10, weights by formula(). resnet18:
torchvision's up to its pooling, 512 features; without --weights as torchvision draws it from seed 1. check: what
forward() of a file gives for rows by formula(), a line each. The packages are pinned in tools/wheels/export.txt.
Nothing of mneme is used here.
"""
import argparse
import io
import os
import sys
import zipfile

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from torchvision_reference import formula, made_values  # noqa: E402


class Tiny(nn.Module):
    """[B, 3, 10, 10] -> [B, 64]"""

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
    """A net of torchvision's without its last layer."""

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
    """Scripted, in evaluation mode, float32, on the CPU: what mneme asks of a module. Notes for debuggers, which are
    half of a small file, are left out."""
    whole = io.BytesIO()
    torch.jit.save(torch.jit.script(net.eval().float()), whole)
    with zipfile.ZipFile(whole) as made, zipfile.ZipFile(path, "w") as kept:
        for entry in made.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                packing = zipfile.ZIP_DEFLATED if entry.filename.endswith(".py") else zipfile.ZIP_STORED
                kept.writestr(zipfile.ZipInfo(entry.filename), made.read(entry), packing)


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
    parser.add_argument("--shape", default="3,10,10", help="check: channels, height and width of a row")
    given = parser.parse_args()
    if given.kind == "check":
        check(given.file, [int(word) for word in given.shape.split(",")])
    else:
        save(tiny() if given.kind == "tiny" else resnet18(given.weights), given.file)


if __name__ == "__main__":
    main()
