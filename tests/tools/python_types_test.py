"""Types of the package: mypy finds faults in a method in Python, also in what `yield` returns, and none in a clean
one."""
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

CLEAN = '''import mneme


class Corrected(mneme.Method):
    name = "corrected"

    def client_round(self, ctx: mneme.ClientContext, broadcast: mneme.Broadcast) -> mneme.Round[mneme.Outcome]:
        found = yield ctx.train(result="gradient")
        trained = yield ctx.train(start=broadcast.weights - found.gradients, views=2)
        return mneme.Upload(trained.weights, rows=trained.rows)


class Paired(mneme.Method):
    name = "paired"

    def client_round(self, ctx: mneme.ClientContext,
                     broadcast: mneme.Broadcast) -> mneme.Round[tuple[mneme.Outcome, mneme.Outcome]]:
        first, second = yield ctx.train(), ctx.extract()
        return mneme.Upload(first.weights, tensors={"mean": second.features.mean(0)})
'''
PLANTED = (  # (clean text, text with a fault, part of mypy's message)
    ('result="gradient"', 'result="gradiant"', 'incompatible type "Literal[\'gradiant\']"'),
    ("start=broadcast", "begin=broadcast", 'Unexpected keyword argument "begin" for "train"'),
    ("views=2", "views=3", 'incompatible type "Literal[3]"'),
    ("rows=trained.rows", "rows=trained.row", '"Outcome" has no attribute "row"'),
    ("second.features", "second.feature", '"Outcome" has no attribute "feature"'),
)
# tools/test --bare sets an empty HOME; the tools stay where tools/bootstrap --lint stored them.
DEPS = os.environ.get("MNEME_DEPS") or os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".cache", "mneme")


def mypy_path():
    """mypy of tools/bootstrap --lint, or of the system; None without either."""
    with open(os.path.join(ROOT, "tools", "wheels", "lint.txt"), "rb") as file:
        done = subprocess.run(["cksum"], stdin=file, capture_output=True, text=True, check=True)
    path = os.path.join(DEPS, "lint-" + done.stdout.split()[0], "bin", "mypy")
    return path if os.path.exists(path) else shutil.which("mypy")


@unittest.skipUnless(mypy_path(), "no mypy (tools/bootstrap --lint)")
class Types(unittest.TestCase):
    def check(self, text):
        """Returns mypy's messages about a file with this text."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "method.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = subprocess.run([mypy_path(), "--config-file", os.path.join(ROOT, "pyproject.toml"), "--cache-dir",
                                   os.path.join(folder, "cache"), "--follow-imports", "silent", path], cwd=folder,
                                  env={**os.environ, "MYPYPATH": os.path.join(ROOT, "tools", "python")},
                                  capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        return done.stdout

    def test_a_clean_method_has_no_fault(self):
        self.assertIn("Success", self.check(CLEAN))

    def test_planted_faults_are_found_at_their_lines(self):
        text = CLEAN
        for clean, fault, _ in PLANTED:
            self.assertEqual(text.count(clean), 1, clean)
            text = text.replace(clean, fault)
        messages = self.check(text)
        for _, fault, message in PLANTED:
            line = 1 + text[:text.index(fault)].count("\n")
            self.assertRegex(messages, rf"method\.py:{line}: error: .*{re.escape(message)}")
        self.assertIn(f"Found {len(PLANTED)} errors", messages)


if __name__ == "__main__":
    run_tests()
