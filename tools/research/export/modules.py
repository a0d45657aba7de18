#!/usr/bin/env python3
"""Modules that a scenario may name in [model] module: TorchScript files, and packages of AOTInductor.

    python3 tools/research/export/modules.py tiny scenarios/smoke/tiny.pt
    python3 tools/research/export/modules.py resnet18 resnet18.pt [--weights resnet18.safetensors]
    python3 tools/research/export/modules.py resnet18 resnet18.pt2 --shape 3,32,32 [--rows 16] [--march x86-64-v3]
    python3 tools/research/export/modules.py check FILE --shape 3,32,32

tiny: a convolution, batch normalisation and pooling for images of 3x10x10, weights by formula(). resnet18:
torchvision's up to its pooling, 512 features; without --weights as torchvision draws it from seed 1. check: what
forward() of a TorchScript file gives for rows by formula(), a line each. The packages are pinned in
tools/wheels/export.txt. Nothing of mneme is used here.

A FILE that ends with .pt2 is compiled (g++ does it): for one thread, for calls of --rows rows of --shape, and for
processors of --march, x86-64-v3 (AVX2) or x86-64-v4 (AVX-512). The package says so in its notes, which mneme compares.
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


VECTORS = {"x86-64-v3": 256, "x86-64-v4": 512}  # bits


def save_package(net, path, shape, rows, march):
    """Compiled ahead of time, with its weights in its code, and the notes that mneme asks for."""
    import torch._inductor
    from torch._inductor import cpp_builder
    flags_of = cpp_builder._get_optimization_cflags  # which knows this machine's processor only

    def flags(*arguments, **options):
        compiler, linker = flags_of(*arguments, **options)
        return [f"march={march}" if flag == "march=native" else flag for flag in compiler], linker

    cpp_builder._get_optimization_cflags = flags
    torch.set_num_threads(1)
    with torch.no_grad():
        exported = torch.export.export(net.eval().float(), (torch.zeros(rows, *shape),))
    notes = {"mneme.torch": torch.__version__, "mneme.threads": "1", "mneme.dtype": "float32", "mneme.march": march,
             "mneme.rows": ",".join(map(str, (rows, *shape)))}
    torch._inductor.aoti_compile_and_package(exported, package_path=path, inductor_configs={
        "cpp.threads": 1, "cpp.simdlen": VECTORS[march], "cpp.vec_isa_ok": True, "aot_inductor.link_libtorch": False,
        "aot_inductor.metadata": notes})


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
    parser.add_argument("--shape", default="3,10,10", help="channels, height and width of a row: check, packages")
    parser.add_argument("--rows", type=int, default=16, help="packages: rows of a call")
    parser.add_argument("--march", choices=VECTORS, default="x86-64-v3", help="packages: processors")
    given = parser.parse_args()
    shape = [int(word) for word in given.shape.split(",")]
    if given.kind == "check":
        return check(given.file, shape)
    net = tiny() if given.kind == "tiny" else resnet18(given.weights)
    if given.file.endswith(".pt2"):
        return save_package(net, given.file, shape, given.rows, given.march)
    return save(net, given.file)


if __name__ == "__main__":
    main()
