"""The scenarios that come with mneme: all are valid, and the smoke ones run, alike for any number of threads."""
import glob
import json
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, data_found, mneme, needs_data, run_tests, thread_settings  # noqa: E402

FOLDER = os.path.join(ROOT, "scenarios")
ALL = sorted(os.path.relpath(path, FOLDER) for path in glob.glob(os.path.join(FOLDER, "**", "*.toml"), recursive=True))
SMOKE = [path for path in ALL if path.startswith("smoke" + os.sep)]


def data_name(path):
    """`data.name` of a scenario, or of what it extends."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    section = re.search(r"^\[data\]\n(?:[^[\n][^\n]*\n|\n)*?name = \"([^\"]+)\"", text, re.M)
    if section:
        return section.group(1)
    base = re.search(r"^extends = \"([^\"]+)\"", text, re.M)
    return data_name(os.path.join(os.path.dirname(path), base.group(1))) if base else "fashion-mnist"


# Made-up rows in the shape of data sets, for scenarios of the papers: those are many, and the data large or absent.
MADE_UP = {"cifar100": ([3, 32, 32], 100), "tiny-imagenet": ([3, 64, 64], 200), "imagenet-r": ([3, 224, 224], 200),
           "emnist-balanced": ([1, 28, 28], 47), "mnist": ([1, 28, 28], 10)}


# Smoke scenarios whose nets differ most, for what is asked of all of them in scenarios_slow_test.py.
FEW = [os.path.join("smoke", name + ".toml") for name in ("vit", "fedavg", "fil-ver")]


class Scenarios(unittest.TestCase):
    def validate(self, name):
        path = os.path.join(FOLDER, name)
        data, more = data_name(path), ""
        if name.startswith("base" + os.sep):  # names no method
            more += '[strategy]\nname = "fedavg"\n'
        if data in MADE_UP and (name.startswith("paper" + os.sep) or not data_found(data)):
            shape, classes = MADE_UP[data]
            per_class = 8 if shape[1] > 64 else 40  # large images take seconds to make up
            more += f'[data]\nname = "synthetic"\nshape = {shape}\nclasses = {classes}\nrows = {per_class * classes}\n'
            if "_vit_" in name:  # weights of twelve blocks take ten seconds to draw
                more += "[model]\ndepth = 1\n"
        else:
            needs_data(self, data)
        with tempfile.TemporaryDirectory() as folder:
            if more:
                original, path = path, os.path.join(folder, "changed.toml")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f'extends = "{os.path.relpath(original, folder)}"\n{more}')
            done = mneme("validate", path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def summary(self, scenario, out, *options, **called):
        done = mneme("run", scenario, "--out", out, "--quiet", *options, **called)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def runs_alike(self, name):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(FOLDER, name)
            first = self.summary(path, os.path.join(folder, "1"), "--threads", "1")
            other = self.summary(path, os.path.join(folder, "3"), "--threads", "3")
            resolved = self.summary(os.path.join(folder, "1", "scenario.toml"), os.path.join(folder, "again"))
        self.assertEqual(first["status"], "done")
        self.assertGreater(first["client_rounds"], 0)
        self.assertEqual(first["run_digest"], other["run_digest"], "one thread and three")
        self.assertEqual(first["run_digest"], resolved["run_digest"], "the scenario and its resolved form")
        self.assertEqual(first["scenario_digest"], resolved["scenario_digest"])

    def depends_on_no_setting(self, name):
        digests = {}
        for setting, called in thread_settings().items():
            for threads in ("1", "3"):
                with tempfile.TemporaryDirectory() as folder:
                    summary = self.summary(os.path.join(FOLDER, name), os.path.join(folder, "run"),
                                           "--threads", threads, **called)
                digests[f"{setting}, {threads} threads"] = summary["run_digest"]
        self.assertEqual(len(set(digests.values())), 1, digests)

    def test_every_method_has_a_smoke_scenario(self):
        done = mneme("list", "--markdown", "strategies")
        self.assertEqual(done.returncode, 0, done.stderr)
        methods = re.findall(r"^\| `([\w-]+)`", done.stdout, re.M)
        self.assertGreater(len(methods), 0, done.stdout)
        self.assertEqual([name for name in methods if os.path.join("smoke", name + ".toml") not in ALL], [])

    def test_the_straggler_scenario_has_stragglers_and_drop_outs(self):
        with tempfile.TemporaryDirectory() as folder:
            summary = self.summary(os.path.join(FOLDER, "smoke", "fedprox.toml"), os.path.join(folder, "run"))
        self.assertGreater(summary["late_uploads"], 0)
        self.assertGreater(summary["dropped"], 0)


def add(kind, name, check):
    words = re.sub(r"\W", "_", os.path.splitext(name)[0])
    setattr(Scenarios, f"test_{words}_{kind}", lambda self: check(self, name))


for scenario in ALL:
    add("is_valid", scenario, Scenarios.validate)
for scenario in SMOKE:
    add("runs_alike", scenario, Scenarios.runs_alike)
for scenario in FEW:
    add("depends_on_no_setting", scenario, Scenarios.depends_on_no_setting)

if __name__ == "__main__":
    run_tests()
