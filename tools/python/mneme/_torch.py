"""Imports torch before the engine, which shares its LibTorch, and refuses a torch version for which the engine was not
built."""
import torch

from mneme._version import torch as NEEDED  # minor version of the build

if ".".join(torch.__version__.split(".")[:2]) != NEEDED:
    raise ImportError(f"this mneme was built for torch {NEEDED}, and torch {torch.__version__} is installed; their "
                      f"libraries differ: pip install 'torch=={NEEDED}.*'")
