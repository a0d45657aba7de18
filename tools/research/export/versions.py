#!/usr/bin/env python3
"""Writes the net of scenarios/smoke/tiny.pt2 as the torch.export.save of the installed PyTorch writes it.

    python3 tools/research/export/versions.py tests/golden/modules/versions      # writes torch-2.11.pt2, for example

The tests load a file of each supported minor version. Needs only PyTorch, so that the script runs with any version of
PyTorch. Only
the sample inputs, which a run does not read, are left out. Does not use mneme's engine.
"""
import json
import os
import sys
import zipfile

import torch
from torch import nn

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "scenarios", "smoke", "tiny.pt2")


class Tiny(nn.Module):
    """Net from [B, 3, 10, 10] to [B, 64], as in modules.py."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, bias=False)
        self.bn = nn.BatchNorm2d(4)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv(x)))
        return torch.flatten(nn.functional.avg_pool2d(x, 2), 1)


def stored_tensors():
    """{name: float32 tensor, flat} of the source file."""
    with zipfile.ZipFile(SOURCE) as archive:
        described = json.loads(archive.read("model/data/weights/model_weights_config.json"))["config"]
        return {name: torch.frombuffer(bytearray(archive.read("model/data/weights/" + entry["path_name"])),
                                       dtype=torch.float32)
                for name, entry in described.items() if entry["tensor_meta"]["dtype"] == 7}


def main():
    net, stored = Tiny(), stored_tensors()
    with torch.no_grad():
        for name, value in net.state_dict().items():
            if name in stored:
                value.copy_(stored[name].view(value.shape))
    program = torch.export.export(net.train(), (torch.zeros(2, 3, 10, 10),),
                                  dynamic_shapes=({0: torch.export.Dim("B")},))
    program.example_inputs = None
    version = ".".join(torch.__version__.split(".")[:2])
    torch.export.save(program, os.path.join(sys.argv[1], f"torch-{version}.pt2"))


if __name__ == "__main__":
    main()
