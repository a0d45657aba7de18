"""The README's tables are what the program prints: readme_test.py compares, readme_test.py --update fills them in.

A table stands between `<!-- mneme list WHAT -->` and `<!-- end -->`.
"""
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, run_tests  # noqa: E402

README = os.path.join(ROOT, "README.md")
TABLE = re.compile(r"(<!-- mneme list (\w+) -->\n)(.*?)(<!-- end -->)", re.S)


def read():
    with open(README, encoding="utf-8") as file:
        return file.read()


def printed(what):
    done = mneme("list", "--markdown", what)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Readme(unittest.TestCase):
    maxDiff = None

    def test_the_tables_are_what_the_program_prints(self):
        tables = {what: table for _, what, table, _ in TABLE.findall(read())}
        self.assertEqual(sorted(tables), ["datasets", "models", "strategies"])
        for what, table in tables.items():
            self.assertEqual(table, printed(what), f"`mneme list {what}`; fill in with tests/tools/readme_test.py --update")

    def test_folders_and_files_that_it_names_exist(self):
        names = re.findall(r"`((?:tools|scenarios|tests|runtime|strategies|actors|\.ci)/[\w./-]*)`", read())
        self.assertGreater(len(names), 10)
        self.assertEqual([name for name in names if not os.path.exists(os.path.join(ROOT, name))], [])

    def test_the_example_scenario_is_valid(self):
        example = re.search(r"```toml\n(# my_scenario.*?)```", read(), re.S)
        self.assertIsNotNone(example)
        path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"mneme_readme_{os.getpid()}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(example.group(1))
        try:
            done = mneme("validate", path)
        finally:
            os.remove(path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def update():
    text = TABLE.sub(lambda match: match.group(1) + printed(match.group(2)) + match.group(4), read())
    with open(README, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        run_tests()
