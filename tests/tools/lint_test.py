"""tools/lint: each tool finds a planted violation in a small repository, and none in a clean one."""
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

COPIED = [".clang-format", "pyproject.toml", "tools/lint", "tools/bootstrap", "tools/packages.sh", "tools/steps.sh",
          "tools/wheels/lint.txt"]
CLEAN = {"tools/tidy.py": "", "tools/one.sh": "#!/usr/bin/env bash\necho \"$1\"\n", "runtime/one.cpp": "int one = 1;\n",
         "tools/python/mneme/__init__.py": "def one() -> int:\n    return 1\n"}
PLANTED = {  # name of the check in the output: (file, its text, the finding)
    "layout rules": ("tools/tidy.py", "raise SystemExit('a rule is broken')\n", "a rule is broken"),
    "format of C++": ("runtime/one.cpp", "int one=1;\n", "[-Wclang-format-violations]"),
    "Python": ("tools/two.py", "import os\n", "F401"),
    "types of the Python package": ("tools/python/mneme/__init__.py", "def one() -> int:\n    return 'one'\n",
                                    "[return-value]"),
    "shell scripts": ("tools/one.sh", "#!/usr/bin/env bash\necho $1\n", "SC2086"),
}
# tools/test --bare sets an empty HOME; the tools stay where tools/bootstrap --lint stored them.
DEPS = os.environ.get("MNEME_DEPS") or os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".cache", "mneme")


def has_tools():
    with open(os.path.join(ROOT, "tools", "wheels", "lint.txt"), "rb") as file:
        done = subprocess.run(["cksum"], stdin=file, capture_output=True, text=True, check=True)
    return shutil.which("shellcheck") and os.path.isdir(os.path.join(DEPS, "lint-" + done.stdout.split()[0]))


@unittest.skipUnless(has_tools(), "tools/bootstrap --lint was not run")
class Lint(unittest.TestCase):
    def lint(self, changes):
        """Result of tools/lint in a repository with the clean files and these changes."""
        with tempfile.TemporaryDirectory() as folder:
            for name in COPIED:
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                shutil.copy2(os.path.join(ROOT, name), os.path.join(folder, name))
            for name, text in {**CLEAN, **changes}.items():
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            for command in (["git", "init", "--quiet"], ["git", "add", "."]):
                subprocess.run(command, cwd=folder, check=True)
            return subprocess.run([os.path.join(folder, "tools", "lint")], capture_output=True, text=True, cwd=folder,
                                  env={**os.environ, "MNEME_DEPS": DEPS})

    def test_a_clean_tree_passes_every_check(self):
        done = self.lint({})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("lint: ")],
                         [f"lint: {name}: passed" for name in PLANTED])

    def test_every_tool_finds_a_planted_violation(self):
        done = self.lint({file: text for file, text, _ in PLANTED.values()})
        self.assertEqual(done.returncode, 1)
        for name, (file, _, finding) in PLANTED.items():
            with self.subTest(name):
                self.assertIn(f"lint: {name}: FAILED", done.stdout)
                self.assertIn(finding, done.stdout + done.stderr)
                self.assertTrue(name == "layout rules" or os.path.basename(file) in done.stdout + done.stderr)


if __name__ == "__main__":
    run_tests()
