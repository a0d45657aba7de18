"""Tests detect every mutant of tools/mutate, except those that state why no test can. One test per group."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "checks"))
import mutants  # noqa: E402


@unittest.skipIf(mutants.tomllib is None, "needs tomllib of Python 3.11")
class Mutants(unittest.TestCase):
    pass


def add(group):
    def mistakes_are_noticed(self):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "mutate"), group], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    setattr(Mutants, f"test_every_mistake_of_{group}_is_noticed", mistakes_are_noticed)


for name in mutants.GROUPS:
    add(name)

if __name__ == "__main__":
    run_tests()
