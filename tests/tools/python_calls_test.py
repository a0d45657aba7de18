"""run, resume, sweep, validate and compare take the same arguments, and errors name the user's keys and arguments."""
import ast
import csv
import inspect
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import numpy  # noqa: E402
import python_methods as methods  # noqa: E402
from program import ROOT, mneme as mneme_program  # noqa: E402
from python_package import PACKAGE  # noqa: E402

PROGRAM = os.path.join(PACKAGE, "mneme", "bin", "mneme")


def data(seed=1, rows=80):
    labels = numpy.arange(rows) % 4
    x = numpy.random.default_rng(seed).normal(size=(rows, 6)).astype("float32")
    return mneme.Data(x, labels, x[:20], labels[:20])


def keys(name="fedavg"):
    return {"tasks": {"kind": "single"}, "clients": {"count": 4}, "rounds": {"per_task": 2, "cohort": 2},
            "training": {"batch": 5, "learning_rate": 0.1}, "model": {"name": "linear"}, "strategy": {"name": name}}


def owners(labels, clients, seed):
    return (numpy.arange(len(labels)) + seed) % clients


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, before = scratch.name, os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)


class Uniform(Folder):
    def test_all_calls_accept_the_same_arguments(self):
        given = {"data": data(), "partition": owners, "methods": [methods.FedAvg]}
        self.assertEqual(mneme.validate(keys("py-fedavg"), **given), [])
        run = mneme.run(keys("py-fedavg"), {"seed": 1}, out="run", **given)
        swept = mneme.sweep(keys("py-fedavg"), {"rounds.cohort": [2, 3]}, seeds=[1, 2], out="sweep", **given)
        self.assertEqual(swept[0].digest, run.digest)  # the partition of each point depends on its seed
        self.assertEqual(len({found.digest for found in swept}), 4)
        table = mneme.compare("sweep", by="rounds.cohort", metric="final_accuracy",
                              **{**given, "partition": owners(range(80), 4, 1)})
        self.assertEqual(sorted(table["rounds.cohort"]), [2, 3])

    def test_compare_excludes_runs_with_other_data_or_an_earlier_source(self):
        mneme.run(keys(), data=data(), out="all/one")
        mneme.run(keys(), data=data(2), out="all/other")
        for rate in (0.5, 2.0):
            method = type("Scaled", (mneme.Method,), {"name": "py-scaled", "rate": rate})
            mneme.run(keys("py-scaled"), data=data(), methods=[method], out=f"all/{rate}")
        given = {"by": "strategy.name", "metric": "final_accuracy"}
        for incomplete in ({}, {"data": data()}, {"methods": [method]}):  # cells would mix other runs
            with self.assertRaisesRegex(mneme.ScenarioError, "mixed"):
                mneme.compare("all", **given, **incomplete)
        table = mneme.compare("all", **given, methods=[method], data=data())
        self.assertEqual(sorted(table["strategy.name"]), ["fedavg", "py-scaled"])
        single = mneme.compare([mneme.load("all/one"), mneme.load("all/other")], by="strategy.name",
                               metric="final_accuracy", data=data())
        self.assertEqual(list(single["strategy.name"]), ["fedavg"])

    def test_validate_reads_data_unless_data_is_false(self):
        wrong = {**keys(), "data": {"name": "arrays", "file": "missing.npz"}}
        with self.assertRaisesRegex(mneme.ScenarioError, "missing.npz"):
            mneme.validate(wrong)
        self.assertEqual(mneme.validate(keys(), data=True), [])
        with self.assertRaisesRegex(mneme.ScenarioError, "expected mneme.Data"):
            mneme.validate(keys(), data=[1, 2])

    def test_a_list_of_loggers_is_accepted(self):
        class Logger:
            def __init__(self):
                self.seen, self.finished = [], []

            def __call__(self, record):
                self.seen.append(record["round"])

            def finish(self, run=None):
                self.finished.append(run.digest)
        a, b, seen, more = Logger(), Logger(), [], []
        run = mneme.run(keys(), data=data(), out="run", loggers=[a, b], on_evaluation=[seen.append, more.append])
        self.assertEqual([a.seen, b.seen], [[record["round"] for record in run.records]] * 2)
        self.assertEqual([a.finished, b.finished], [[run.digest]] * 2)
        self.assertEqual([seen, more], [run.records] * 2)
        again = Logger()
        mneme.resume("run", loggers=[again])
        self.assertEqual((again.seen, again.finished), ([], [run.digest]))
        for wrong in ({"loggers": [3]}, {"loggers": [mneme.loggers.TensorBoard]}, {"on_evaluation": 3}):
            with self.assertRaises(TypeError):
                mneme.run(keys(), data=data(), out="never", **wrong)
        self.assertFalse(os.path.exists("never"))

    def test_the_type_stub_lists_all_names_of_the_engine(self):
        with open(os.path.join(ROOT, "tools", "python", "mneme", "_engine.pyi"), encoding="utf-8") as file:
            classes = {node.name: node for node in ast.parse(file.read()).body if isinstance(node, ast.ClassDef)}
        for name in mneme.__all__:
            found = getattr(mneme, name)
            if not isinstance(found, type) or found.__module__ != "mneme._engine":
                continue
            stubs = [classes[name], *(classes[base.id] for base in classes[name].bases)]
            known = {part.name for stub in stubs for part in stub.body if isinstance(part, ast.FunctionDef)}
            public = {part for part in vars(found) if not part.startswith("_")}
            self.assertEqual({part for part in known if not part.startswith("_")}, public, name)

    def test_signatures_and_docstrings_agree(self):
        shared = {"scenario", "overrides", "data", "partition", "methods"}
        for call in (mneme.run, mneme.sweep, mneme.validate):
            self.assertLessEqual(shared, set(inspect.signature(call).parameters), call)
        for call in (mneme.run, mneme.resume, mneme.sweep, mneme.validate, mneme.compare):
            for name in inspect.signature(call).parameters:
                if call in (mneme.compare, mneme.resume) and name in ("folders", "folder", "by", "metric", "baseline",
                                                                      "where", "columns"):
                    continue
                self.assertIn(name, call.__doc__, (call.__name__, name))
        for name in ("data", "partition", "methods", "threads", "on_evaluation", "loggers", "quiet", "accept", "keys"):
            calls = (mneme.run, mneme.resume, mneme.sweep, mneme.compare)
            parameters = [inspect.signature(call).parameters.get(name) for call in calls]
            self.assertEqual(len({part.annotation for part in parameters if part is not None}), 1, name)


class Findings(Folder):
    def findings(self, act):
        with self.assertRaises(mneme.ScenarioError) as caught:
            act()
        text = str(caught.exception)
        self.assertNotIn("--set", text)
        self.assertNotIn("/mneme-", text)  # a temporary folder
        self.assertEqual(len(caught.exception.findings), len(set(caught.exception.findings)))
        return caught.exception.findings

    def test_errors_of_a_dict_name_its_keys(self):
        wrong = {**keys(), "training": {"learning_rate": -1, "batch": 5}, "rounds": {"cohrt": 3}, "trainng": {"x": 1},
                 "model": {"name": "foo"}}
        calls = (lambda: mneme.run(wrong, out="never"), lambda: mneme.validate(wrong),
                 lambda: mneme.sweep(wrong, seeds=[1, 2], out="never"))
        for act in calls:
            found = self.findings(act)
            self.assertEqual(sorted(where for where, _ in found),
                             ["model.name", "rounds.cohrt", "training.learning_rate", "trainng"])
        self.assertFalse(os.path.exists("never"))

    def test_overrides_of_a_file_are_checked_together(self):
        with open("a.toml", "w", encoding="utf-8") as file:
            file.write("[strategy]\nname = \"fedavg\"\n")
        found = self.findings(lambda: mneme.validate("a.toml", {"rounds.cohort": 100, "clients.count": 10}))
        self.assertEqual(found[0][0], "rounds.cohort")
        found = self.findings(lambda: mneme.validate({"rounds": {"cohort": 3}}))
        self.assertEqual(found[0][0], "strategy")
        found = self.findings(lambda: mneme.validate({"extends": "a.toml", "rounds": {"cohort": -1}}))
        self.assertEqual(found[0][0], "rounds.cohort")
        self.assertEqual(str(mneme.ScenarioError(found)).count("rounds.cohort"), 1)

    def test_an_invalid_grid_is_refused(self):
        for over, words in (({"strategy.name": "fedavg"}, "expected a list of values"),
                            ({"rounds.cohort": 3}, "expected a list of values"),
                            ({"rounds.cohort": []}, "one or more")):
            with self.assertRaisesRegex(mneme.ScenarioError, words):
                mneme.sweep(keys(), over, out="never")

    def test_common_mistakes_are_explained(self):
        twin = type("Twin", (mneme.Method,), {"name": "py-fedavg"})
        no_server = type("NoServer", (mneme.Method,), {"name": "py-no-server", "Server": dict})
        for act, words in (
                (lambda: mneme.run(keys("py-fedavg"), methods=methods.FedAvg), "methods=.MyMethod."),
                (lambda: mneme.run(keys(), data()), "overrides: Data; expected a dict"),
                (lambda: mneme.run(3), "scenario: int; expected a path or a dict"),
                (lambda: mneme.run(keys(), methods=[methods.FedAvg, twin]), "have the same name 'py-fedavg'"),
                (lambda: mneme.run(keys(), methods=[no_server]), "NoServer.Server is .*dict.*mneme.AveragingServer"),
                (lambda: mneme.run(keys(), methods=[methods.FedAvg()]), "is not a class that derives"),
                (lambda: mneme.validate(keys(), methods=3), "expected classes")):
            with self.assertRaisesRegex(TypeError, words):
                act()
        with self.assertRaisesRegex(mneme.ScenarioError, "seeds: 3; expected a list"):
            mneme.sweep(keys(), seeds=3, out="never")

    def test_warnings_name_keys(self):
        chosen = {**keys(), "devices": {"dropout": 0.0}, "checkpoint": {"force": True, "every": 0}}
        for where, _ in mneme.validate(chosen):
            self.assertNotIn("--set", where)


class CommandNames(Folder):
    """A folder or file may have the name of a command."""

    def program(self, *words):
        return mneme_program(*words, program=PROGRAM, folder=self.folder)

    def test_every_command_has_help(self):
        names = ["sweep", "report", "export"]
        base = mneme.run(keys(), {"seed": 7}, data=data(), out="base")
        scenario_text, digest = base.scenario(), base.digest
        with open("table.csv", "w", encoding="utf-8") as file:
            csv.writer(file).writerows([["x", "label"], *[[row, row % 2] for row in range(40)]])
        for name in names:
            with self.subTest(name):
                swept = mneme.sweep(keys(), {"rounds.cohort": [2, 3]}, data=data(), out=name)
                self.assertEqual(len(swept), 2)
                self.assertEqual(len(mneme.compare(name, by="rounds.cohort", metric="final_accuracy")), 2)
                self.assertEqual(len(mneme.compare([name, "base"], metric="final_accuracy")), 2)  # grouped by seed
                self.assertIn("<html", str(mneme.load(swept[0].folder).report()))
                for words in (("compare", name), ("report", name), ("report", name, "-o", "page.html"),
                              ("list", "runs", "--in", name)):
                    said = self.program(*words)
                    self.assertEqual(said.returncode, 0, (words, said.stderr))
                os.rename(name, "kept")
                os.rename("base", name)
                for words in (("verify", name), ("resume", name), ("diff", name, name), ("compare", name),
                              ("report", name)):
                    said = self.program(*words)
                    self.assertEqual(said.returncode, 0, (words, said.stderr))
                self.assertEqual(mneme.resume(name).digest, digest)
                os.rename(name, "base")
                os.rename("kept", f"kept-{name}")
                with open(name, "w", encoding="utf-8") as file:
                    file.write(scenario_text)
                for words in (("validate", name), ("run", name, "--quiet", "--out", f"out-{name}"),
                              ("validate", name, name)):
                    said = self.program(*words)
                    self.assertEqual(said.returncode, 0, (words, said.stderr))
                os.remove(name)

    def test_a_command_may_follow_options_and_a_path_may_begin_with_a_dash(self):
        mneme.sweep(keys(), {"rounds.cohort": [2, 3]}, data=data(), out="-dash")
        self.assertEqual(len(mneme.compare("-dash", by="rounds.cohort", metric="final_accuracy")), 2)
        for words in (("compare", "--metric", "final_accuracy", "./-dash"), ("compare", "--", "-dash")):
            said = self.program(*words)
            self.assertEqual(said.returncode, 0, (words, said.stderr))
        self.assertEqual(self.program("doctor", "new").returncode, 2)  # it does not exist
        self.assertNotIn("METHOD", self.program("doctor", "new").stderr)


if __name__ == "__main__":
    python_package.run_tests()
