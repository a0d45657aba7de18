"""tools/research/official accepts only an unmodified checkout at its commit; golden files name their origin."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools", "research", "official"))
from checkout import Refused, check_commit  # noqa: E402
from program import PROGRAM  # noqa: E402

REPOSITORY = "https://example.org/theirs"


def git(folder, *words):
    identity = ["-c", "user.name=n", "-c", "user.email=e"]
    return subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True,
                          text=True).stdout.strip()


class Checkout(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        git(self.folder, "init", "-q")
        self.code = os.path.join(self.folder, "code.py")
        with open(self.code, "w", encoding="utf-8") as file:
            file.write("rate = 0.1\n")
        git(self.folder, "add", "code.py")
        git(self.folder, "commit", "-qm", "first")
        self.first = git(self.folder, "rev-parse", "HEAD")

    def refusal(self, commit):
        with self.assertRaises(Refused) as refused:
            check_commit(self.folder, REPOSITORY, commit)
        return str(refused.exception)

    def test_the_recorded_commit_is_accepted_with_new_files(self):
        with open(os.path.join(self.folder, "pool.png"), "w", encoding="utf-8") as file:
            file.write("made by a run")
        check_commit(self.folder, REPOSITORY, self.first)

    def test_another_commit_is_refused_and_both_are_named(self):
        git(self.folder, "commit", "-qm", "second", "--allow-empty")
        text = self.refusal(self.first)
        self.assertIn(f"expected {self.first} of {REPOSITORY}", text)
        self.assertIn("checkout " + self.first, text)

    def test_changed_code_is_refused(self):
        with open(self.code, "a", encoding="utf-8") as file:
            file.write("rate = 0.2\n")
        self.assertIn("code.py", self.refusal(self.first))

    def test_a_folder_without_git_is_refused(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(Refused) as refused:
            check_commit(folder, REPOSITORY, self.first)
        self.assertIn("expected a clone of the official code", str(refused.exception))


class Golden(unittest.TestCase):
    def test_golden_files_name_the_official_program_and_the_script(self):
        adapters = set()
        for path in glob.glob(os.path.join(ROOT, "tests", "golden", "**", "*.json"), recursive=True):
            with open(path, encoding="utf-8") as file:
                record = json.load(file)
            made_by = str(record.get("made_by", "")) if isinstance(record, dict) else ""
            if not made_by.startswith("tools/research/official/"):
                continue
            adapters.add(record["made_by"])
            with open(os.path.join(ROOT, record["made_by"]), encoding="utf-8") as file:
                script = file.read()
            self.assertIn(f'COMMIT = "{record["commit"]}"', script, path)
            self.assertIn(f'REPOSITORY = "{record["repository"]}"', script, path)
        self.assertIn("tools/research/official/lander.py", adapters)

    def test_every_documented_method_has_steps_and_prints_both_sides(self):
        with open(os.path.join(ROOT, "docs", "fidelity.md"), encoding="utf-8") as file:
            listed = re.search(r"compares steps of (.*?)\.", file.read(), re.DOTALL).group(1)
        program = os.path.join(os.path.dirname(PROGRAM), "tests", "test_strategies")
        tests = subprocess.run([program, "--list-tests", "[official]"], check=True, capture_output=True,
                               text=True).stdout
        for method in re.findall(r"`([a-z-]+)`", listed):
            self.assertIn(f"[{method}]", tests)
        compare = os.path.join(ROOT, "tools", "research", "official", "compare.py")
        done = subprocess.run([sys.executable, compare, "stsa", "--tests", program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^estimated, task 2 read-out +\S+ +\S+ +\d\.\d\de[-+]\d\d$")
        self.assertIn("equal within the tests' bounds", done.stdout)


if __name__ == "__main__":
    unittest.main()
