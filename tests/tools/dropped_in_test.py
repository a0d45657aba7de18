"""A method costs one file: a program of this build's objects and one more lists, explains, checks and runs its method."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

DROPPED_IN = os.path.join(ROOT, "tests", "strategies", "dropped_in")
SCENARIO = os.path.join(DROPPED_IN, "server_momentum.toml")
BUILD = os.path.dirname(PROGRAM)
METHOD_LIKE_IT = os.path.join("strategies", "baselines", "fedavg.cpp")
FOLDERS = ("actors", "runtime", "scenarios", "strategies", "tests", "tools")
KINDS = (".cpp", ".hpp", ".py", ".txt", ".cmake", ".toml")
TESTS_OF_IT = {"dropped_in_test.cpp", "dropped_in_test.py"}


def without(words, option):
    """The words of a command without an option and its value."""
    place = words.index(option)
    return words[:place] + words[place + 2:]


def files_that_name_it():
    """Sources, scenarios and build files outside its folder in which the method's name or key stands."""
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                path = os.path.join(folder, name)
                if folder == DROPPED_IN or not name.endswith(KINDS):
                    continue
                with open(path, encoding="utf-8") as file:
                    if re.search("server[-_]momentum", file.read()):
                        yield path


class DroppedIn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(os.path.join(BUILD, "build.ninja")):
            raise unittest.SkipTest(f"{BUILD} was not made by ninja")
        cls.scratch = tempfile.TemporaryDirectory()
        cls.program = os.path.join(cls.scratch.name, "mneme")
        made = os.path.join(cls.scratch.name, "server_momentum.o")
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
            like = next(one for one in json.load(file) if one["file"].endswith(METHOD_LIKE_IT))
        words = without(shlex.split(like["command"]), "-o")
        words[words.index("-c") + 1] = os.path.join(DROPPED_IN, "server_momentum.cpp")
        subprocess.run([*words, "-o", made], cwd=like["directory"], check=True)
        target = os.path.relpath(PROGRAM, BUILD)
        commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", target], capture_output=True, text=True,
                                  check=True).stdout.splitlines()
        link = without(shlex.split(commands[-1].removeprefix(": && ").removesuffix(" && :")), "-o")
        first_object = next(place for place, word in enumerate(link) if word.endswith(".o"))
        link.insert(first_object, made)
        subprocess.run([*link, "-o", cls.program], cwd=BUILD, check=True)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def said(self, *arguments):
        return subprocess.run([self.program, *arguments], cwd=ROOT, capture_output=True, text=True)

    def test_nothing_else_knows_of_it(self):
        self.assertEqual(sorted(os.listdir(DROPPED_IN)), ["server_momentum.cpp", "server_momentum.toml"])
        self.assertEqual({os.path.basename(path) for path in files_that_name_it()} - TESTS_OF_IT, set())

    def test_it_is_listed_and_explained(self):
        listed = self.said("list", "strategies").stdout
        self.assertIn("server-momentum", listed)
        self.assertIn("FedAvg with momentum on the server", listed)
        self.assertIn("fedprox", listed)
        explained = self.said("help", "server-momentum").stdout
        for text in ("server_momentum = 0.9", "number in [0, 1]", 'preset = "plain"'):
            self.assertIn(text, explained)

    def test_it_runs(self):
        folder = os.path.join(self.scratch.name, "run")
        done = self.said("run", SCENARIO, "--out", folder, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        self.assertEqual((summary["strategy"], summary["status"], summary["rounds"]), ("server-momentum", "done", 6))

    def test_its_errors_name_file_line_and_column(self):
        with open(SCENARIO, encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(self.scratch.name, "wrong.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("server_momentum =", "server_momentun ="))
        done = self.said("validate", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("wrong.toml:26:1: error: strategy.server_momentun", done.stderr)
        done = self.said("validate", SCENARIO, "--set", "model.trainable=head")
        self.assertEqual(done.returncode, 2)
        self.assertIn("the velocity is one of all weights", done.stderr)


if __name__ == "__main__":
    run_tests()
