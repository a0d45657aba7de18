"""The tables in README and docs/ equal the program's output: readme_test.py compares, --update writes them.

A table stands between `<!-- mneme list WHAT -->` and `<!-- end -->`.
"""
import glob
import os
import re
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, needs_data, run_tests  # noqa: E402

README = os.path.join(ROOT, "README.md")
TEXTS = [README, *(os.path.join(ROOT, name) for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
         *sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))]
TABLE = re.compile(r"(<!-- mneme list (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


def read(path=README):
    with open(path, encoding="utf-8") as file:
        return file.read()


def example_in(language, path):
    """Returns the first code block in this language on a page."""
    return re.search(rf"```{language}\n(.*?)```", read(path), re.S).group(1)


def printed(what):
    done = mneme("list", "--markdown", what)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Readme(unittest.TestCase):
    maxDiff = None

    def test_the_readmes_tables_are_the_programs_output(self):
        tables = {what: table for path in TEXTS for _, what, table, _ in TABLE.findall(read(path))}
        self.assertEqual(sorted(tables), ["datasets", "models", "strategies"])
        for what, table in tables.items():
            self.assertEqual(table, printed(what), f"{what}: tests/tools/readme_test.py --update fills it in")

    def test_folders_and_files_named_in_the_readme_exist(self):
        for path in TEXTS:
            text, name = read(path), os.path.relpath(path, ROOT)
            named = re.findall(r"`((?:tools|scenarios|tests|runtime|strategies|actors|docs|\.ci)/[\w./-]*)`", text)
            linked = [os.path.join(os.path.dirname(name), link) for link in re.findall(r"\]\(([\w./-]+)\)", text)]
            with self.subTest(name):
                if name == "README.md":  # pages of docs/ may name none
                    self.assertGreater(len(named), 1)
                self.assertEqual([one for one in named + linked if not os.path.exists(os.path.join(ROOT, one))], [])

    def test_the_readme_has_at_most_1200_words(self):
        self.assertLessEqual(len(read().split()), 1200, "additional text belongs in docs/")

    def test_the_example_scenarios_are_valid(self):
        for page in (README, os.path.join(ROOT, "docs", "scenarios.md")):
            example = example_in("toml", page)
            needs_data(self, re.search(r'name = "([^"]+)"', example).group(1))
            with self.subTest(page), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "my_scenario.toml")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(example)
                done = mneme("validate", path)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_readmes_example_method_is_tested(self):
        lines = textwrap.indent(example_in("cpp", README), " " * 4)
        self.assertIn(lines, read(os.path.join(ROOT, "tests", "strategies", "dropped_in", "server_momentum.cpp")))


def update():
    for path in TEXTS:
        text = TABLE.sub(lambda match: match.group(1) + printed(match.group(2)) + match.group(4), read(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        run_tests()
