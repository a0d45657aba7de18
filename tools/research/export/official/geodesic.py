#!/usr/bin/env python3
"""GeoDL's flow matrix and both of its losses in chrysts/geodesic_continual_learning.

    python3 tools/research/export/official/geodesic.py CHECKOUT [tests/golden]

Features have 20 numbers and 8 rows, so that the complement is smaller than the 60 vectors that the program takes from
it. Its result is then exact up to float32. Needs PyTorch and numpy; scipy's null_space, an SVD, is replaced by
numpy's.
"""
import os
import sys

import numpy
import torch

import learners
from learners import leaf, listed, made

REPOSITORY = "https://github.com/chrysts/geodesic_continual_learning"
COMMIT = "8a5ba6310541f2643660ebc8b66c304ffd392fd9"
ROWS, FEATURES, DIRECTIONS = 8, 20, 6


def null_space(matrix):
    _, values, rows = numpy.linalg.svd(matrix)
    return rows[(values > 1e-6).sum():].T.copy()


def orthonormal(name):
    return torch.linalg.qr(made(name, FEATURES, DIRECTIONS)).Q


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("sklearn", "sklearn.neighbors", "scipy", "scipy.io", "scipy.linalg")
    sys.modules["scipy.linalg"].null_space = null_space
    learners.open_checkout(checkout, COMMIT)
    from algorithms import GFK_distill_cosine, GFK_distill_normalise

    program = GFK_distill_normalise.GFK()
    start, end = orthonormal("geodl.from"), orthonormal("geodl.to")
    whole = torch.cat([start, torch.from_numpy(null_space(start.t().numpy()))], dim=1)
    flow = program.gfk_G(whole.float(), end.float(), FEATURES, DIRECTIONS, DIRECTIONS)

    before = made("geodl.before", ROWS, FEATURES).float()
    now = made("geodl.now", ROWS, FEATURES).float().requires_grad_(True)
    difference = program.fit(before, now)
    difference.backward()
    whole_step = {"value": difference.item(), "gradient": listed(now.grad)}

    unit = torch.nn.functional.normalize
    now = leaf("geodl.now", ROWS, FEATURES)
    a, b = unit(before.double(), dim=-1), unit(now, dim=-1)
    cosine = GFK_distill_cosine.GFK()
    along = [cosine.mahalanobis_dist(x.float(), y.float(), flow) for x, y in ((a, b), (a, a), (b, b))]
    value = (1.0 - along[0] / (along[1].sqrt() * along[2].sqrt())).mean()
    value.backward()
    learners.write(os.path.join(into, "geodl", "official.json"), REPOSITORY, COMMIT, flow=listed(flow),
                   difference=whole_step, cosine={"value": value.item(), "gradient": listed(now.grad)})


if __name__ == "__main__":
    main()
