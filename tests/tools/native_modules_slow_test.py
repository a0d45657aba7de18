"""A package compiled by PyTorch itself with tools/research/export/modules.py: its results, and equal digests.

Needs a Python with the packages of tools/wheels/export.txt: $MNEME_EXPORT_PYTHON, or the one that runs this.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from native_modules_test import TORCH, PackageCase  # noqa: E402
from program import ROOT, run_tests  # noqa: E402


class PackagesOfPyTorch(PackageCase):
    @classmethod
    def setUpClass(cls):
        python = os.environ.get("MNEME_EXPORT_PYTHON", sys.executable)
        asked = subprocess.run([python, "-c", "import torch, torch._inductor; print(torch.__version__)"],
                               capture_output=True, text=True)
        if asked.returncode != 0 or asked.stdout.split("+")[0].strip() != TORCH:
            raise unittest.SkipTest(f"PyTorch {TORCH} is not there to compile a package ($MNEME_EXPORT_PYTHON names a "
                                    "Python with the packages of tools/wheels/export.txt)")
        cls.python = python
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        cls.path = os.path.join(cls.made.name, "tiny.pt2")
        export = os.path.join(ROOT, "tools", "research", "export", "modules.py")
        subprocess.run([python, export, "tiny", cls.path], check=True)

    def test_its_features_are_those_of_the_same_net_as_torchscript(self):
        tiny = os.path.join(ROOT, "scenarios", "smoke", "tiny.pt")
        losses = []
        for path in (tiny, self.path):
            with open(os.path.join(self.run_of(path)[0], "metrics.jsonl"), encoding="utf-8") as file:
                losses.append([line["loss"] for line in map(json.loads, file)])
        self.assertEqual(len(losses[0]), len(losses[1]))
        for script, compiled in zip(*losses):
            self.assertAlmostEqual(script, compiled, delta=1e-4 * (1 + abs(script)))

    def test_a_digest_depends_on_no_thread_or_width(self):
        first = self.run_of(self.path, "--threads", "1")[1]["run_digest"]
        self.assertEqual(first, self.run_of(self.path, "--threads", "3", more=["worker.models_max=1"])[1]["run_digest"])


if __name__ == "__main__":
    run_tests()
