"""Random play finds every planted mistake of the federation within a minute."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402


class Mutants(unittest.TestCase):
    def test_every_mistake_is_found(self):
        program = os.path.join(ROOT, "tools", "checks", "federation_mutants.py")
        done = subprocess.run([sys.executable, program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    run_tests()
