"""mneme sweep, compare and list runs through the program: skipped and resumed runs, failures, tables, exit codes."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, data_found, mneme, needs_data, run_tests  # noqa: E402

SCENARIO = """title = "Swept"
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
per_task = 20
[checkpoint]
force = true
[model]
name = "mlp"
hidden = [16]
[strategy]
name = "fedavg"
"""
GRID = ["--over", "training.learning_rate=0.1,0.02", "--seeds", "1-4", "--jobs", "2"]
KILLS = 5


class SweepTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mneme-sweep-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.scenario = self.path("swept.toml")
        with open(self.scenario, "w", encoding="utf-8") as file:
            file.write(SCENARIO)

    def path(self, name):
        return os.path.join(self.folder, name)

    def sweep(self, out, *more):
        return mneme("sweep", self.scenario, *GRID, "--out", self.path(out), *more)

    def table(self, out):
        compared = mneme("compare", self.path(out), "--format", "csv", "--metric",
                         "final_accuracy,average_incremental_accuracy,forgetting,virtual_seconds,time_to_accuracy.50")
        self.assertEqual(compared.returncode, 0, compared.stderr)
        return compared.stdout

    def digests(self, out):
        found = {}
        for name in os.listdir(self.path(out)):
            summary = os.path.join(self.path(out), name, "summary.json")
            if os.path.exists(summary):
                with open(summary, encoding="utf-8") as file:
                    read = json.load(file)
                found[read["scenario_digest"]] = (read["run_digest"], read["status"])
        return found

    def test_a_killed_sweep_ends_with_the_table_of_an_undisturbed_one(self):
        self.assertEqual(self.sweep("whole", "--quiet").returncode, 0)
        for kill in range(KILLS):
            process = subprocess.Popen([PROGRAM, "sweep", self.scenario, *GRID, "--out", self.path("killed"), "--json"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            starts = 0
            for line in process.stdout:  # killed during its second run or a later one
                starts += json.loads(line)["event"] == "run_started"
                if starts == 2 + kill % 2:
                    break
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        last = self.sweep("killed")
        self.assertEqual(last.returncode, 0, last.stderr)
        self.assertIn("8 runs done, 0 failed", last.stdout)
        self.assertEqual(self.digests("killed"), self.digests("whole"))
        self.assertEqual(len(self.digests("whole")), 8)
        self.assertEqual(self.table("killed"), self.table("whole"))
        self.assertEqual(self.table("whole").count("\n"), 1 + 2 * 5)

    def test_runs_share_the_memory_of_a_data_set(self):
        needs_data(self, "fashion-mnist")
        process = subprocess.Popen([PROGRAM, "sweep", os.path.join(ROOT, "scenarios", "quickstart.toml"), "--seeds",
                                    "1,2", "--jobs", "2", "--threads", "1", "--quiet", "--set", "evaluation.every=1",
                                    "--out", self.path("runs")], stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        while self.evaluations("runs") < [2, 2]:  # until both have their rows
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            children = file.read().split()
        self.assertEqual(len(children), 2)
        for child in children:  # each maps the rows and has no copy of them
            with open(f"/proc/{child}/smaps_rollup", encoding="ascii") as file:
                sizes = dict(re.findall(r"^(\w+): +(\d+) kB$", file.read(), re.M))
            self.assertGreater(1024 * int(sizes["Rss"]), 60_000 * 784)
            self.assertLess(1024 * (int(sizes["Private_Clean"]) + int(sizes["Private_Dirty"])), 60_000 * 784)

    def evaluations(self, out):
        """Returns the number of evaluations of each run, ascending."""
        counts = []
        for name in os.listdir(self.path(out)) if os.path.exists(self.path(out)) else []:
            path = os.path.join(self.path(out), name, "metrics.jsonl")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    counts.append(file.read().count("\n"))
        return sorted(counts) if len(counts) == 2 else []

    def test_runs_load_data_that_the_sweep_has_not_loaded(self):
        needs_data(self, "cifar100")  # OpenMP's threads of the sweep do not exist in its runs
        with open(self.path("backbone.toml"), "w", encoding="utf-8") as file:
            file.write('title = "Backbone"\ntasks = { kind = "single", classes = 4 }\nclients.count = 1\n'
                       'rounds.per_task = 1\nmodel.name = "mlp"\nstrategy.name = "fedavg"\n'
                       '[data]\nname = "cifar100"\ntrain_per_class = 20\ntest_per_class = 5\n')
        with open(self.scenario, "w", encoding="utf-8") as file:
            file.write('title = "Behind it"\ntasks = { kind = "single", classes = 4, class_order = '
                       f'{[*range(4, 100), *range(4)]} }}\nclients.count = 2\nrounds.per_task = 1\n'
                       'strategy.name = "fedavg"\nmodel = { name = "mlp", trainable = "head", '
                       'backbone = "backbone.toml" }\n'
                       '[data]\nname = "cifar100"\ntrain_per_class = 30\ntest_per_class = 5\n')
        process = subprocess.run([PROGRAM, "sweep", self.scenario, "--seeds", "1,2", "--jobs", "2", "--quiet", "--out",
                                  self.path("runs")], capture_output=True, text=True, timeout=120)
        self.assertEqual(process.returncode, 0, process.stderr)

    def test_runs_of_a_sweep_equal_those_of_mneme_run(self):
        self.assertEqual(self.sweep("swept", "--quiet").returncode, 0)
        alone = mneme("run", self.scenario, "--set", "training.learning_rate=0.02", "--set", "seed=3", "--quiet",
                      "--threads", "3", "--out", self.path("alone"))
        self.assertEqual(alone.returncode, 0, alone.stderr)
        with open(self.path("alone/summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.assertEqual(self.digests("swept")[summary["scenario_digest"]], (summary["run_digest"], "done"))

    def test_completed_runs_are_not_repeated_even_without_the_catalogue(self):
        self.assertEqual(self.sweep("runs", "--quiet").returncode, 0)
        os.remove(self.path("runs/catalogue.sqlite"))
        again = mneme("sweep", self.scenario, "--over", "training.learning_rate=0.1,0.02", "--seeds", "1-5", "--json",
                      "--out", self.path("runs"))
        events = [json.loads(line) for line in again.stdout.splitlines()]
        self.assertEqual(events[0]["runs"], 10)
        self.assertEqual(events[0]["kept"], 8)
        self.assertEqual(sum(event["event"] == "run_started" for event in events), 2)

    def test_a_failed_run_is_named_and_the_others_continue(self):
        done = mneme("sweep", self.scenario, "--over", "training.weight_decay=0.0,1e12", "--seeds", "1,2", "--out",
                     self.path("runs"))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("2 runs done, 2 failed", done.stdout)
        for seed in (1, 2):
            self.assertIn(f"error: swept training.weight_decay=1e12 seed={seed}: ", done.stderr)
        self.assertEqual(done.stderr.count("left out: the run is failed"), 2)
        every = mneme("compare", self.path("runs"), "--by", "training.weight_decay")
        self.assertEqual(every.returncode, 0)
        self.assertEqual(every.stderr.count("left out: the run is failed"), 2)
        self.assertIn(every.stdout, done.stdout)  # the sweep's own table
        compared = mneme("compare", self.path("runs"), "--where", "status=done")
        self.assertEqual(compared.returncode, 0, compared.stderr)
        one = next(name for name in os.listdir(self.path("runs")) if name.startswith("swept-"))
        refused = mneme("compare", os.path.join(self.path("runs"), one), "--where", "status=done")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--where selects runs of a folder that contains runs", refused.stderr)
        for arguments, meant in ((("list", "runs", "--in", self.path("runs"), "--where", "cohort=4"), "rounds.cohort"),
                                 (("compare", self.path("runs"), "--where", "strategy.nam=fedavg"), "strategy.name"),
                                 (("compare", self.path("runs"), "--metric", "final_acuracy"), "final_accuracy"),
                                 (("report", self.path("runs"), "--where", "seeds=1"), "seed")):
            asked = mneme(*arguments)
            self.assertEqual(asked.returncode, 2)
            self.assertIn(f"did you mean '{meant}'?", asked.stderr)
        listed = mneme("list", "runs", "--in", self.path("runs"), "--where", "status=failed")
        self.assertEqual(listed.stdout.count("swept-fedavg-"), 4)  # a line for each run, and the reason of each failure

    def test_bad_input_is_found_before_anything_runs(self):
        done = mneme("sweep", self.scenario, "--over", "rounds.cohort=3,-1", "--over", "partition.kind=iid,non-iid",
                     "--out", self.path("runs"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("rounds.cohort = -1", done.stderr)
        self.assertIn("partition.kind = \"non-iid\"", done.stderr)
        self.assertFalse(os.path.exists(self.path("runs")))
        absent = mneme("sweep", self.scenario, "--over", "data.name=synthetic,mnist", "--set",
                       "data.root=" + self.folder, "--out", self.path("runs"))
        self.assertEqual(absent.returncode, 2, absent.stdout)
        self.assertIn("mnist", absent.stderr)
        unsplit = mneme("sweep", self.scenario, "--over", "clients.count=4,4000", "--set",
                        "partition.kind=dirichlet-capped", "--out", self.path("runs"))
        self.assertEqual(unsplit.returncode, 2, unsplit.stdout)
        self.assertIn("  at swept clients.count=4000\n", unsplit.stderr)
        self.assertFalse(os.path.exists(self.path("runs")))
        for arguments in (["--jobs", "0"], ["--seeds", "3-1"], ["--over", "x"], ["--bogus"]):
            self.assertEqual(mneme("sweep", self.scenario, *arguments).returncode, 2, arguments)
        self.assertEqual(mneme("sweep").returncode, 2)

    def test_a_dry_run_prints_the_planned_runs_only(self):
        dry = self.sweep("none", "--dry-run")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertEqual(dry.stdout.count("new      swept training.learning_rate="), 8)
        self.assertFalse(os.path.exists(self.path("none")))
        refused = mneme("sweep", self.scenario, "--over", "partition.kind=iid,non-iid", "--over", "clients.count=4,9",
                        "--set", "model.name=lenet", "--dry-run", "--out", self.path("none"))
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("partition.kind = \"non-iid\"", refused.stderr)  # found when the points are read
        self.assertEqual(refused.stderr.count("'lenet'"), 0)
        self.assertEqual(refused.stderr.count("error: lenet"), 1)  # found with the data, once for all points
        self.assertFalse(os.path.exists(self.path("none")))
        for study, data, runs in (("fil_ver", "emnist47", 33), ("fil_ver_beta", "emnist47", 6),
                                  ("fil_ver_labels", "emnist47", 9), ("stsa", "cifar100", 4)):
            if not data_found(data):
                continue
            plan = os.path.join(ROOT, "tools", "research", "studies", study + ".toml")
            planned = mneme("sweep", plan, "--dry-run", "--out", self.path("none"))
            self.assertEqual((planned.returncode, planned.stderr), (0, ""))
            self.assertEqual(planned.stdout.count("\n"), runs)

    def test_a_sweep_may_be_defined_in_a_file(self):
        with open(self.path("grid.toml"), "w", encoding="utf-8") as file:
            file.write('[sweep]\nscenarios = ["swept.toml"]\nseeds = [1, 2]\n[sweep.over]\n'
                       'training.learning_rate = [0.1, 0.02]\n[sweep.set]\nrounds.per_task = 2\n')
        done = mneme("sweep", self.path("grid.toml"), "--out", self.path("runs"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 runs done, 0 failed", done.stdout)
        self.assertIn("training.learning_rate", done.stdout)
        page, figure = (self.path("runs/grid" + ending) for ending in (".html", ".svg"))
        self.assertTrue(done.stdout.endswith(f"\nreport  {page}\nfigure  {figure}\n"), done.stdout)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        legend = re.findall(r"</svg>([^<]*) \(2\)</label>", text)
        self.assertEqual(legend, ["training.learning_rate = 0.1", "training.learning_rate = 0.02"])  # file order
        with open(figure, encoding="utf-8") as file:
            self.assertIn("Accuracy over rounds", file.read())
        again = mneme("sweep", self.path("grid.toml"), "--out", self.path("runs"), "--json")
        self.assertEqual(json.loads(again.stdout.splitlines()[-1]), {"event": "report", "page": page, "figure": figure})

    def test_the_example_sweep_has_three_methods_and_three_seeds(self):
        needs_data(self, "fashion-mnist")
        done = mneme("sweep", "scenarios/first_sight.toml", "--dry-run", "--out", self.path("none"))
        self.assertEqual(done.returncode, 0, done.stderr)
        for method in ("fedavg", "fed-lwf", "joint"):
            self.assertEqual(done.stdout.count(f'"{method}"'), 3)


if __name__ == "__main__":
    run_tests()
