"""The smoke scenarios run with equal results for any number of threads and in their resolved forms."""
import glob
import json
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, run_tests, thread_settings  # noqa: E402

FOLDER = os.path.join(ROOT, "scenarios", "smoke")
SMOKE = sorted(os.path.basename(path)[:-len(".toml")] for path in glob.glob(os.path.join(FOLDER, "*.toml")))
# Scenarios with very different nets; scenarios_slow_test.py checks all of them.
FEW = ("vit", "fedavg", "fil-ver", "devices")
# Settings that shorten scenarios of more than a second, which the slow test runs as they are.
ONE_EPOCH = ("--set", "rounds.per_task=2", "--set", "training.epochs=1")
SHORTENED = {**dict.fromkeys(("lga", "glfc"), ("--set", "tasks.count=2")),
             **dict.fromkeys(("podnet", "afc", "resnet8"), ONE_EPOCH)}


def path_of(name):
    return os.path.join(FOLDER, name + ".toml")


class ScenarioRuns(unittest.TestCase):
    def summary(self, scenario, out, *options, **called):
        done = mneme("run", scenario, "--out", out, "--quiet", *options, **called)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def runs_alike(self, name):
        with tempfile.TemporaryDirectory() as folder:
            path, shorter = path_of(name), SHORTENED.get(name, ())
            first = self.summary(path, os.path.join(folder, "1"), "--threads", "1", *shorter)
            resolved = self.summary(os.path.join(folder, "1", "scenario.toml"), os.path.join(folder, "again"),
                                    "--threads", "3")
            if first["run_digest"] != resolved["run_digest"]:  # a third run distinguishes the two possible reasons
                other = self.summary(path, os.path.join(folder, "3"), "--threads", "3", *shorter)
                self.assertEqual(first["run_digest"], other["run_digest"], "one thread and three")
        self.assertEqual(first["status"], "done")
        self.assertGreater(first["client_rounds"], 0)
        self.assertEqual(first["run_digest"], resolved["run_digest"], "the scenario and its resolved form")
        self.assertEqual(first["scenario_digest"], resolved["scenario_digest"])

    def depends_on_no_setting(self, name):
        digests = {}
        for setting, called in {"one thread": {}, **thread_settings()}.items():
            threads = "3" if called else "1"
            with tempfile.TemporaryDirectory() as folder:
                summary = self.summary(path_of(name), os.path.join(folder, "run"), "--threads", threads, **called)
            digests[f"{setting}, {threads} threads"] = summary["run_digest"]
        self.assertEqual(len(set(digests.values())), 1, digests)

    def test_the_straggler_scenario_has_stragglers_and_drop_outs(self):
        with tempfile.TemporaryDirectory() as folder:
            summary = self.summary(path_of("fedprox"), os.path.join(folder, "run"))
        self.assertGreater(summary["late_uploads"], 0)
        self.assertGreater(summary["dropped"], 0)


def add(kind, names, check):
    for name in names:
        words = re.sub(r"\W", "_", name)
        setattr(ScenarioRuns, f"test_{words}_{kind}", lambda self, name=name: check(self, name))


add("runs_alike", SMOKE, ScenarioRuns.runs_alike)
add("depends_on_no_setting", FEW, ScenarioRuns.depends_on_no_setting)

if __name__ == "__main__":
    run_tests()
