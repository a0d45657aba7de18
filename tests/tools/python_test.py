"""The Python package: runs equal those of the program bit for bit, and errors have the program's messages."""
import concurrent.futures
import inspect
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import typing
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from forked_program import FORKS  # noqa: E402
from program import ROOT  # noqa: E402
from python_package import PACKAGE, scenario  # noqa: E402

PROGRAM = os.path.join(PACKAGE, "mneme", "bin", "mneme")
INTERRUPTED = """
import sys
import mneme
from python_package import scenario
chosen = scenario("fedavg", rounds={"per_task": 4000})
try:
    mneme.run(chosen, out=sys.argv[1], on_evaluation=lambda record: print("evaluated", flush=True))
except mneme.Interrupted as stopped:
    print("stopped in order:", stopped.folder)
"""


class Package(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)


class Running(Package):
    def test_a_dict_a_file_and_the_program_have_equal_digests(self):
        run = mneme.run(scenario("fedavg"), out=self.path("dict"))
        with open(os.path.join(run.folder, "scenario.toml"), encoding="utf-8") as file:
            resolved = self.write("python.toml", file.read())
        self.assertEqual(mneme.run(resolved, out=self.path("file")).digest, run.digest)
        based = mneme.run({"extends": resolved}, {"rounds.cohort": 6}, out=self.path("extended"), threads=2)
        self.assertEqual(based.digest, run.digest)
        said = subprocess.run([PROGRAM, "run", resolved, "--out", self.path("program"), "--quiet"], check=True,
                              capture_output=True)
        self.assertEqual(said.returncode, 0)
        self.assertEqual(mneme.load(self.path("program")).digest, run.digest)

    def test_results_of_a_run_are_read_from_its_folder(self):
        seen = []
        run = mneme.run(scenario("fedavg"), out=self.path("run"), on_evaluation=seen.append)
        self.assertEqual(seen, run.records)
        self.assertEqual([len(run.metrics), run.status, len(run.digest)], [6, "done", 32])
        self.assertEqual(run.summary["run_digest"], run.digest)
        matrix = run.matrix
        self.assertEqual(matrix.shape, (2, 2))
        self.assertTrue(math.isnan(matrix[0, 1]))
        self.assertEqual(matrix[1, 1], run.records[-1]["accuracy_per_task"][1])
        net = torch.nn.Sequential()
        net.fc1, net.fc2 = torch.nn.Linear(64, 16), torch.nn.Linear(16, 10)
        net.load_state_dict(run.model())
        self.assertIn("<html", str(run.report()))
        self.assertIn("<iframe", run.report()._repr_html_())
        self.assertEqual([found.folder for found in mneme.runs(self.folder)], [run.folder])

    def test_all_errors_are_reported_together_and_no_file_is_written(self):
        wrong = scenario("fedavg", rounds={"cohrt": 3}, training={"batch": -1})
        with self.assertRaises(mneme.ScenarioError) as caught:
            mneme.run(wrong, out=self.path("never"))
        self.assertEqual(len(caught.exception.findings), 2)
        self.assertRegex(str(caught.exception), "cohrt.*cohort")
        self.assertFalse(os.path.exists(self.path("never")))
        file = self.write("bad.toml", "[rounds]\ncohort = 'x'\n[strategy]\nname = \"fedavg\"\n")
        with self.assertRaisesRegex(mneme.ScenarioError, r"bad.toml:2:10: rounds.cohort"):
            mneme.validate(file)
        with self.assertRaisesRegex(mneme.ScenarioError, "no such file"):
            mneme.run(self.path("missing.toml"))
        with self.assertRaisesRegex(mneme.ScenarioError, "object"):
            mneme.run({"title": object()})
        with self.assertRaisesRegex(mneme.ScenarioError, "no run"):
            mneme.load(self.folder)
        with self.assertRaisesRegex(mneme.ScenarioError, r"'\\ud800' holds half of a surrogate pair"):
            mneme.run({"title": "\ud800"})

    def test_a_summary_that_cannot_be_read_is_named(self):
        run = mneme.run(scenario("fedavg"), out=self.path("run"))
        self.write("run/summary.json", "{")
        with self.assertRaisesRegex(mneme.ScenarioError, r"run/summary.json: is damaged"):
            run.summary  # noqa: B018
        with self.assertRaisesRegex(mneme.ScenarioError, r"run/summary.json: is damaged"):
            mneme.resume(run.folder)

    def test_validate_and_schema_work(self):
        self.assertEqual(mneme.validate(scenario("fedavg")), [])
        self.assertIn("properties", mneme.schema())

    def test_ctrl_c_ends_a_run_cleanly_and_resume_continues_it(self):
        process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, self.path("run")], stdout=subprocess.PIPE,
                                   text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        self.assertIn("stopped in order", said)
        self.assertEqual(mneme.load(self.path("run")).status, "interrupted")

    def test_torchs_thread_settings_are_not_changed(self):
        before = torch.get_num_threads()
        mneme.run(scenario("fedavg"), out=self.path("run"))
        self.assertEqual(torch.get_num_threads(), before)

    def test_the_console_script_runs_the_program(self):
        code = "import sys; from mneme._program import main; sys.argv[1:] = ['--version']; main()"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.strip(), "mneme " + mneme.__version__)


class Sweeping(Package):
    def test_a_sweep_by_an_executor_equals_a_sequential_one(self):
        over, out = {"strategy.name": ["fedavg", "fedprox"]}, self.path("pool")
        alone = mneme.sweep(scenario("fedavg"), over, [1, 2], out=self.path("alone"))
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=FORKS) as executor:
            pool = mneme.sweep(scenario("fedavg"), over, [1, 2], out=out, executor=executor)
        self.assertEqual([run.digest for run in pool], [run.digest for run in alone])
        self.assertEqual(len({run.digest for run in alone}), 4)
        again = mneme.sweep(scenario("fedavg"), over, [1, 2], out=out)
        self.assertEqual([run.folder for run in again], [run.folder for run in pool])
        table = mneme.compare(out, by="strategy.name", metric="final_accuracy")
        self.assertEqual(sorted(set(table["strategy.name"])), ["fedavg", "fedprox"])

    def test_an_invalid_point_stops_a_sweep_before_its_first_run(self):
        with self.assertRaisesRegex(mneme.ScenarioError, "rounds.cohort"):
            mneme.sweep(scenario("fedavg"), {"rounds.cohort": [3, 300]}, out=self.path("never"))
        self.assertFalse(os.path.exists(self.path("never")))


def untyped(owner, name):
    """Returns the parameters and results without a type of a function, or of all public functions of a class."""
    found = inspect.unwrap(owner)
    if inspect.isclass(found):
        members = [(f"{name}.{part}", value) for part, value in vars(found).items()
                   if not part.startswith("_") or part in ("__init__", "__call__")]
        return [wrong for part, value in members for wrong in untyped(
            getattr(value, "fget", None) or getattr(value, "__func__", value), part)]
    if not inspect.isfunction(found):
        return []
    signature = inspect.signature(found)
    lacking = [parameter for parameter in list(signature.parameters.values())
               if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")]
    return [f"{name}: {part}" for part in lacking] + [name] * (signature.return_annotation is signature.empty)


class Names(unittest.TestCase):
    def test_every_public_name_is_explained_and_typed(self):
        stub = os.path.join(ROOT, "tools", "python", "mneme", "_engine.pyi")
        with open(stub, encoding="utf-8") as file:
            text = file.read()
        for name in mneme.__all__:
            found = getattr(mneme, name)
            if typing.get_origin(found):  # an alias of a generic type; Python gives it no docstring
                continue
            if not isinstance(found, str):
                self.assertTrue(found.__doc__, name)
            self.assertEqual(untyped(found, name), [])
            if getattr(found, "__module__", "") == "mneme._engine":
                self.assertRegex(text, rf"(class|def) {name}\b")
        for name in ("TensorBoard", "MLflow", "Wandb"):
            self.assertEqual(untyped(getattr(mneme.loggers, name), name), [])
        self.assertTrue(os.path.exists(os.path.join(PACKAGE, "mneme", "py.typed")))
        json.dumps(mneme.schema())


if __name__ == "__main__":
    python_package.run_tests()
