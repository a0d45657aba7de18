"""The examples of "Common tasks" in docs/python.md have fewer than ten lines and run in order."""
import contextlib
import io
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

from program import ROOT  # noqa: E402


def examples():
    """Returns (line of the page, sentence before it, code) of each example of the section."""
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        page = file.read()
    begin = page.index("## Common tasks\n")
    section = page[begin:page.index("\n## ", begin + 1)]
    return [(page[:begin + found.start(2)].count("\n"), found[1].strip(), found[2])
            for found in re.finditer(r"([^\n]*)\n\n```python\n(.*?)```", section, re.DOTALL)]


class Examples(unittest.TestCase):
    def test_ten_examples_run(self):
        begin, *tasks = examples()
        self.assertEqual(len(tasks), 10)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            names = {"__name__": "example"}
            for line, title, code in [begin, *tasks]:
                with self.subTest(title):
                    lines = [text for text in code.splitlines() if text.strip()]
                    self.assertLess(len(lines), 10)
                    printed = io.StringIO()
                    path = os.path.join(folder, f"example_{line}.py")
                    with open(path, "w", encoding="utf-8") as file:  # a method's digest reads its source
                        file.write("\n" * line + code)
                    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                        exec(compile("\n" * line + code, path, "exec"), names)  # noqa: S102
                    if "run" in names:
                        self.assertEqual(names["run"].status, "done")
                    if "print(" in code:
                        self.assertTrue(printed.getvalue().strip())
            os.chdir(before)  # a folder that is in use cannot be removed everywhere


if __name__ == "__main__":
    python_package.run_tests()
