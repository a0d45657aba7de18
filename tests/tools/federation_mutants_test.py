"""The planted mistakes of the federation fit the tree, so that the slow test can plant them."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "checks"))
import federation_mutants  # noqa: E402


class Mutants(unittest.TestCase):
    def test_every_patch_applies(self):
        self.assertGreaterEqual(len(federation_mutants.mutants()), 5)
        for name in federation_mutants.mutants():
            with self.subTest(name):
                self.assertEqual(federation_mutants.apply(ROOT, name, "--check"), "")


if __name__ == "__main__":
    run_tests()
