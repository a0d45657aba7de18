#!/usr/bin/env python3
"""AFC's distillation of feature maps, channel by channel, in kminsoo/AFC.

    python3 tools/research/export/official/afc.py CHECKOUT [tests/golden]

Needs PyTorch. AFC's measure of importance requires AFC's own net, which mneme lacks, so this script does not run it.
"""
import importlib.util
import os
import sys

import torch

import learners
import problem
from inclearn import MAPS, ROWS
from learners import leaf, listed, made

REPOSITORY = "https://github.com/kminsoo/AFC"
COMMIT = "94cecc9107479c628a7d11690a7419edb7a41bf0"


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    if problem.commit_of(checkout) != COMMIT:
        sys.exit(f"{checkout} is not at {COMMIT}")
    learners.stand_in("inclearn", "inclearn.lib")
    place = importlib.util.spec_from_file_location(
        "distillation", os.path.join(checkout, "inclearn", "lib", "losses", "distillation.py"))
    distillation = importlib.util.module_from_spec(place)
    place.loader.exec_module(distillation)
    if not hasattr(torch, "frobenius_norm"):
        torch.frobenius_norm = lambda x, dim: torch.linalg.vector_norm(x, dim=dim)
    maps = [leaf(f"podnet.map{i}", ROWS, *shape) for i, shape in enumerate(MAPS)]
    before = [made(f"podnet.old_map{i}", ROWS, *shape) for i, shape in enumerate(MAPS)]
    importance = [1.0 + made(f"afc.importance{i}", shape[0], scale=0.9) for i, shape in enumerate(MAPS)]
    loss = distillation.pod(before, maps, collapse_channels="pixel", feature_distil_factor=importance)
    loss.backward()
    learners.write(os.path.join(into, "afc", "official.json"), REPOSITORY, COMMIT, value=loss.item(),
                   gradients=[listed(map.grad) for map in maps])


if __name__ == "__main__":
    main()
