"""Tests notice every planted mistake of the federation but those that say why nothing can (tools/mutate)."""
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
    def test_every_mistake_is_noticed(self):
        program = os.path.join(ROOT, "tools", "mutate")
        done = subprocess.run([sys.executable, program, "federation"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    run_tests()
