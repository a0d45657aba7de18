"""A method needs only one file: a program linked from this build's objects plus one lists, explains, checks and runs
it."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, mneme, run_tests  # noqa: E402

DROPPED_IN = os.path.join(ROOT, "tests", "strategies", "dropped_in")
SCENARIO = os.path.join(DROPPED_IN, "server_momentum.toml")
BUILD = os.path.dirname(PROGRAM)
FOLDERS = ("actors", "runtime", "scenarios", "strategies", "tests", "tools")
KINDS = (".cpp", ".hpp", ".py", ".txt", ".cmake", ".toml")


def without(words, option):
    """Returns a command line without an option and its value."""
    place = words.index(option)
    return words[:place] + words[place + 2:]


def files_that_name_it():
    """Sources, scenarios and build files outside the method's folder that contain its name."""
    for top in FOLDERS:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                path = os.path.join(folder, name)
                if folder == DROPPED_IN or not name.endswith(KINDS):
                    continue
                with open(path, encoding="utf-8") as file:
                    if re.search("server-momentum", file.read()):
                        yield path


class DroppedIn(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(os.path.join(BUILD, "build.ninja")):
            raise unittest.SkipTest(f"{BUILD} was not made by ninja")
        cls.scratch = tempfile.TemporaryDirectory()
        cls.program = os.path.join(cls.scratch.name, "mneme")
        with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
            commands = json.load(file)
        added = [cls.compiled(commands, name) for name in ("server_momentum.cpp", "fedavgm.cpp")]
        target = os.path.relpath(PROGRAM, BUILD)
        asked = ["ninja", "-C", BUILD, "-t", "commands", "-s", target]
        commands = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
        link = without(shlex.split(commands[-1].removeprefix(": && ").removesuffix(" && :")), "-o")
        first_object = next(place for place, word in enumerate(link) if word.endswith(".o"))
        link[first_object:first_object] = added
        subprocess.run([*link, "-o", cls.program], cwd=BUILD, check=True)

    @classmethod
    def compiled(cls, commands, name):
        """Returns the method's object. The build compiles it with the flags of strategies/, for tests of all
        methods."""
        entry = next(entry for entry in commands if entry["file"].endswith(os.path.join("dropped_in", name)))
        words = shlex.split(entry["command"])
        made = os.path.join(entry["directory"], words[words.index("-o") + 1])
        if not os.path.exists(made):
            subprocess.run(words, cwd=entry["directory"], check=True)
        return made

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def said(self, *arguments):
        return mneme(*arguments, program=self.program)

    def test_no_other_file_names_the_dropped_in_method(self):
        self.assertEqual(sorted(os.listdir(DROPPED_IN)), ["fedavgm.cpp", "server_momentum.cpp", "server_momentum.toml"])
        self.assertEqual(list(files_that_name_it()), [os.path.join(ROOT, "tests", "tools", "dropped_in_test.py")])

    def test_the_dropped_in_method_is_listed_and_explained(self):
        listed = self.said("list", "strategies").stdout
        self.assertIn("server-momentum", listed)
        self.assertIn("FedAvg with momentum on the server", listed)
        self.assertIn("fedprox", listed)
        explained = self.said("help", "server-momentum").stdout
        for text in ("server_momentum = 0.9", "number in [0, 1]", 'preset = "plain"'):
            self.assertIn(text, explained)

    def summary(self, *arguments):
        with tempfile.TemporaryDirectory(dir=self.scratch.name) as folder:
            done = self.said("run", SCENARIO, "--out", os.path.join(folder, "run"), "--quiet", *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "run", "summary.json"), encoding="utf-8") as file:
                return json.load(file)

    def test_the_dropped_in_method_has_one_digest_for_any_number_of_threads(self):
        one, two = self.summary("--threads", "1"), self.summary("--threads", "2")
        self.assertEqual((one["strategy"], one["status"], one["rounds"]), ("server-momentum", "done", 6))
        self.assertEqual(one["run_digest"], two["run_digest"])

    def test_keys_presets_and_metrics_of_the_dropped_in_method_take_effect(self):
        asked, faster = self.summary(), self.summary("--set", "strategy.server_momentum=0.8")
        self.assertEqual((asked["momentum"], faster["momentum"]), (0.5, 0.8))
        self.assertNotEqual(asked["run_digest"], faster["run_digest"])
        plain = self.summary("--set", "strategy.preset=plain")  # the scenario's own keys override it
        self.assertEqual((plain["momentum"], plain["rounds"], plain["run_digest"]),
                         (0.5, 6, asked["run_digest"]))

    def test_a_failed_round_of_the_dropped_in_method_is_reported_like_a_built_in_ones(self):
        for method in ("fedavg", "server-momentum", "fedavgm"):
            with self.subTest(method), tempfile.TemporaryDirectory(dir=self.scratch.name) as folder:
                scenario, out = os.path.join(folder, "diverging.toml"), os.path.join(folder, "run")
                with open(SCENARIO, encoding="utf-8") as file:
                    text = file.read().split("[strategy]")[0]
                with open(scenario, "w", encoding="utf-8") as file:
                    file.write(f"{text}[training]\nlearning_rate = 1e12\nweight_decay = 1e3\nepochs = 20\n"
                               f'[strategy]\nname = "{method}"\n')
                done = self.said("run", scenario, "--out", out)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                reason = r"client \d, round 1, job \d+\.0\.0: training diverged"
                self.assertRegex(done.stderr, f"error: {reason}")
                self.assertIn(f"resume with `mneme resume {out}`", done.stderr)
                self.assertRegex(done.stdout, f"status +failed: {reason}")
                with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                    summary = json.load(file)
                self.assertEqual((summary["strategy"], summary["status"]), (method, "failed"))

    def refusal(self, was, now):
        """Validates the scenario with `was` replaced by `now`. Returns the error."""
        with open(SCENARIO, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(was, text)
        path = os.path.join(self.scratch.name, "wrong.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(was, now))
        done = self.said("validate", path)
        self.assertEqual(done.returncode, 2, done.stdout)
        return done.stderr

    def test_errors_of_the_dropped_in_method_name_location_and_fix(self):
        for was, now, place, fix in (
                ("server_momentum =", "server_momentun =", "wrong.toml:26:1", "server_momentum"),
                ("server_momentum = 0.5", "server_momentum = 1.5", "wrong.toml:26:19", "[0, 1]"),
                ('"server-momentum"', '"server-momentom"', "wrong.toml:25:8", 'did you mean "server-momentum"'),
                ("server_momentum = 0.5", 'preset = "plane"', "wrong.toml:26:10", 'did you mean "plain"'),
                ("hidden = [16]", 'trainable = "head"', "wrong.toml:22:13", "the velocity is one of all weights")):
            with self.subTest(now=now):
                said = self.refusal(was, now)
                self.assertIn(place, said)
                self.assertIn(fix, said)


if __name__ == "__main__":
    run_tests()
