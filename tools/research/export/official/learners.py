"""Shared code of the scripts for class-incremental learners: tensors by formula, stubs for modules, and golden files.

Tensors are those of formula() in tests/support/formula.hpp, in float64. A script calls methods of an official
checkout's classes on bare objects that have only the attributes that the methods read. A checkout of another commit is
refused.
"""
import json
import math
import os
import sys
from unittest import mock

import torch

import problem

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from torchvision_reference import formula  # noqa: E402


def made(name, *shape, scale=1.0):
    """Tensor [shape] float64 with the values of formula(name, count) times `scale`."""
    return scale * torch.from_numpy(formula(name, math.prod(shape))).double().reshape(shape)


def leaf(name, *shape, scale=1.0):
    return made(name, *shape, scale=scale).requires_grad_(True)


def stand_in(*names):
    """Stubs for modules that a checkout imports and the called code does not use. Tensors and nets stay on the CPU."""
    for name in names:
        sys.modules[name] = mock.MagicMock()
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.nn.Module.cuda = lambda self, *_, **__: self


def open_checkout(path, commit):
    """Makes the checkout importable. @param commit required commit, which the golden file names"""
    at = problem.commit_of(path)
    if at != commit:
        sys.exit(f"{path} is at {at}; expected {commit}")
    sys.path.insert(0, os.path.abspath(path))


def listed(tensor):
    return torch.as_tensor(tensor).detach().to(torch.float64).flatten().tolist()


def write(path, repository, commit, **numbers):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"repository": repository, "commit": commit, **numbers}, file, indent=1)
        file.write("\n")
    print(path)
