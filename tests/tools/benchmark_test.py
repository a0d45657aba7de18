"""`mneme benchmark` through the program: rows are recorded, checked and shown; wrong input is named."""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import mneme, run_tests  # noqa: E402

BASE = """
[data]
name = "synthetic"
shape = [16]
classes = 4
rows = 400
[tasks]
count = 2
[clients]
count = 4
[rounds]
per_task = 2
[model]
name = "linear"
"""
METHOD = 'extends = "../base/small.toml"\n[strategy]\nname = "{}"\n'


class Benchmark(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.write("base/small.toml", BASE)
        for method in ("fedavg", "finetune"):
            self.write(f"small/{method}.toml", METHOD.format(method))

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def benchmark(self, *words):
        return mneme("benchmark", *words, "--folder", self.scratch.name, "--quiet")

    def record(self, *words):
        done = self.benchmark("run", *words, "--out", self.path("runs"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def rows(self, method):
        with open(self.path(f"rows/small/{method}.json"), encoding="utf-8") as file:
            return json.load(file)

    def check(self, row, code, text):
        done = self.benchmark("check", row)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stdout + done.stderr)

    def test_rows_are_recorded_checked_and_shown(self):
        self.record("small", "--seeds", "1,2")
        self.assertEqual([row["seed"] for row in self.rows("finetune")], [1, 2])
        self.record("small", "fedavg", "--seeds", "3")  # the rows of other seeds stay
        rows = self.rows("fedavg")
        self.assertEqual([row["seed"] for row in rows], [1, 2, 3])
        self.check("small/fedavg/3", 0, "same: small/fedavg/3\n  recorded " + rows[2]["run_digest"])
        done = self.benchmark("page", "--out", self.path("page"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("page/README.md"), encoding="utf-8") as file:
            self.assertIn(f"1: {rows[0]['run_digest'][:8]}, 2: {rows[1]['run_digest'][:8]}, 3: ", file.read())

    def test_a_row_with_another_digest_is_different(self):
        self.record("small", "fedavg", "--seeds", "1")
        rows = self.rows("fedavg")
        rows[0]["run_digest"] = "0" * 32
        self.write("rows/small/fedavg.json", json.dumps(rows))
        self.check("small/fedavg/1", 1, "DIFFERENT: small/fedavg/1\n  recorded " + "0" * 32)

    def test_a_row_of_an_edited_scenario_or_another_version_is_named(self):
        self.record("small", "fedavg", "--seeds", "1")
        rows = self.rows("fedavg")
        self.write("base/small.toml", BASE.replace("per_task = 2", "per_task = 3"))
        self.check("small/fedavg/1", 2, "small/fedavg.toml: error: the scenario was edited after its row was recorded")
        rows[0]["digest_epoch"] = 1
        self.write("rows/small/fedavg.json", json.dumps(rows))
        self.check("small/fedavg/1", 2, "with digest epoch 1, and this version computes epoch 2")

    def test_wrong_names_files_and_data_are_named(self):
        self.check("small/fedavg", 2, "expected TRACK/METHOD/SEED, as in images/fedavg/1")
        self.check("small/fedavg/x", 2, "expected TRACK/METHOD/SEED")
        self.check("small/fedavg/1", 2, "record it with mneme benchmark run small fedavg --seeds 1")
        self.check("smal/fedavg/1", 2, "unknown track 'smal' of the benchmark; did you mean 'small'?")
        self.check("small/fedag/1", 2, "unknown method 'fedag' of the benchmark; did you mean 'fedavg'?")
        done = self.benchmark("page", "--out", self.path("page"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("no row of the benchmark is recorded", done.stderr)
        done = mneme("benchmark", "run", "--folder", self.path("small"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("no benchmark; expected a folder with base/TRACK.toml", done.stderr)
        self.write("rows/small/fedavg.json", "[{]")
        self.check("small/fedavg/1", 2, "rows/small/fedavg.json: error: damaged rows of the benchmark")
        self.write("base/small.toml", BASE.replace('"synthetic"', '"tiny-imagenet"').replace("shape = [16]\n", ""))
        shutil.rmtree(self.path("rows"))
        done = self.benchmark("run", "small", "--seeds", "1", "--out", self.path("runs"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("tiny-imagenet", done.stderr)


if __name__ == "__main__":
    run_tests()
