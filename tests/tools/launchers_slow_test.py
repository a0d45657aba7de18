"""Ranks of each launcher on three methods, synchronous and asynchronous: the digests of one process."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import launchers_test  # noqa: E402
from program import needs_nodes, run_tests  # noqa: E402

setUpModule = needs_nodes


class Digests(launchers_test.Digests):
    methods = launchers_test.METHODS


class Slurm(launchers_test.Slurm):
    methods = launchers_test.METHODS


if __name__ == "__main__":
    run_tests()
