"""Every smoke scenario has one digest: whatever the threads, widths and what the machine says about threads."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, run_tests, thread_settings  # noqa: E402

SMOKE = os.path.join(ROOT, "scenarios", "smoke")
THREADS = ("1", "2", "3", "4")
WIDTHS = ("1", "2", "3", "7", "0")  # 0: chosen


class Digests(unittest.TestCase):
    def digest(self, scenario, threads, width, called):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "run")
            done = mneme("run", os.path.join(SMOKE, scenario), "--out", out, "--quiet", "--threads", threads,
                         "--set", f"worker.models_max={width}", **called)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                return json.load(file)["run_digest"]

    def one_digest(self, scenario):
        digests = {}
        for setting, called in thread_settings().items():
            for threads in THREADS:
                for width in WIDTHS:
                    found = self.digest(scenario, threads, width, called)
                    digests.setdefault(found, []).append(f"{setting}, {threads} threads, width {width}")
        self.assertEqual(len(digests), 1, digests)


for name in sorted(os.listdir(SMOKE)):
    setattr(Digests, "test_" + name[:-5].replace("-", "_"), lambda self, name=name: self.one_digest(name))

if __name__ == "__main__":
    run_tests()
