"""docs/method_api.md: its C++ blocks, concatenated, are a method that compiles, and all names in it exist."""
import json
import os
import re
import shlex
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

PAGE = os.path.join(ROOT, "docs", "method_api.md")
METHOD_LIKE_IT = os.path.join("strategies", "baselines", "fedavg.cpp")


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def header(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


class MethodApi(unittest.TestCase):
    def test_the_code_blocks_form_a_method_that_compiles(self):
        commands = os.path.join(os.path.dirname(PROGRAM), "compile_commands.json")
        if not os.path.exists(commands):
            self.skipTest(f"no {commands}")
        with open(commands, encoding="utf-8") as file:
            entry = next(found for found in json.load(file) if found["file"].endswith(METHOD_LIKE_IT))
        words = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
        words = words[:words.index("-o")] + ["-fsyntax-only", "-Werror", "-x", "c++", "-"]
        blocks = re.findall(r"```cpp\n(.*?)```", page(), re.S)
        self.assertGreater(len(blocks), 5)
        done = subprocess.run(words, cwd=entry["directory"], input="".join(blocks), capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_headers_in_the_table_exist(self):
        names = re.findall(r"`(\w+\.hpp)`", page().split("```cpp")[0])
        self.assertGreater(len(names), 8)
        for name in names:
            self.assertTrue(os.path.exists(os.path.join(ROOT, "runtime", "method", name)), name)

    def test_the_table_has_every_kind_of_job(self):
        asked = set(re.findall(r"pending<\w+> (\w+)\(\w+_job&& job\)", header("runtime/method/context.hpp")))
        self.assertIn("train", asked)
        self.assertEqual(asked, set(re.findall(r"\| `ctx\.(\w+)\(", page())))

    def test_every_method_requirement_is_documented(self):
        struct = header("runtime/method/method_needs.hpp").split("struct method_needs {")[1]
        needs = re.findall(r"^  [\w:<>, ]+ (\w+)(?:\{\}| = [\w:.]+)?;", struct, re.M)
        self.assertIn("round_barrier", needs)
        missing = [name for name in needs if f"`{name}`" not in page() and f"::{name}`" not in page()]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    run_tests()
