"""Forbidden uses of co_await in a method fail to compile, with a message that states the fix."""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

# In each source, the last coroutine is invalid.
TASKS = """#include "runtime/base/task.hpp"
mneme::task<int> inner() { co_return 1; }
mneme::task<int> named() { auto a = inner(); auto x = co_await a; co_return x; }
mneme::task<int> unnamed() { WRONG; co_return x; }
"""
JOBS = """#include "runtime/method/context.hpp"
mneme::task<double> named(mneme::context& ctx) {
  auto training = ctx.train({.net = nullptr}); auto trained = co_await training; co_return trained.loss_mean; }
mneme::task<double> unnamed(mneme::context& ctx) {
  auto trained = co_await ctx.train({.net = nullptr}); co_return trained.loss_mean; }
"""
ADVICE = "and then, on a line of its own, `auto trained = co_await training;`"
COMPILERS = [path for path in map(shutil.which, ("c++", "clang++")) if path]


def build_flags():
    """Returns the command with which the build compiles a method, without the output file."""
    with open(os.path.join(os.path.dirname(PROGRAM), "compile_commands.json"), encoding="utf-8") as file:
        entry = next(entry for entry in json.load(file) if entry["file"].endswith("strategies/baselines/fedavg.cpp"))
    words = [word for word in shlex.split(entry["command"]) if not word.endswith("ccache")]
    return words[:words.index("-o")], entry["directory"]


class Awaits(unittest.TestCase):
    def check_refused(self, command, text, folder=ROOT):
        """Expects a single compiler error, which states the fix and points to the last line."""
        done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], cwd=folder, input=text,
                              capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(ADVICE, done.stderr)
        self.assertIn(f"<stdin>:{text.count(chr(10))}:", done.stderr)
        self.assertEqual(done.stderr.count("error:"), 1, done.stderr)

    def test_awaiting_an_unnamed_task_fails_to_compile_with_the_fix(self):
        for compiler in COMPILERS:
            for wrong in ("auto x = co_await inner()", "auto a = inner(); auto x = co_await std::move(a)"):
                with self.subTest(compiler, wrong=wrong):
                    self.check_refused([compiler, "-std=c++20", f"-I{ROOT}"], TASKS.replace("WRONG", wrong))

    def test_awaiting_an_unnamed_job_fails_to_compile_with_the_fix(self):
        command, folder = build_flags()
        self.check_refused(command, JOBS, folder)

    def configured(self, line):
        """Returns the message of the build's check for a method with this line."""
        with tempfile.TemporaryDirectory() as folder:
            method, script = os.path.join(folder, "method.cpp"), os.path.join(folder, "check.cmake")
            with open(method, "w", encoding="utf-8") as file:
                file.write(f"// A co_await in words; co_await f().\n    {line}\n")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"set(PROJECT_SOURCE_DIR {folder})\ninclude({ROOT}/tools/cmake/sources.cmake)\n"
                           f"mneme_check_awaits({method})\n")
            done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True)
        return done.returncode, " ".join(done.stderr.split())

    def test_the_build_accepts_awaits_that_are_statements(self):
        for line in ("auto x = co_await name;", "const auto& x = co_await name; // of co_await", "x = co_await name;",
                     "auto [a, b] = co_await both;", "co_await name;", 'say("co_await f()");'):
            with self.subTest(line):
                self.assertEqual(self.configured(line), (0, ""))

    def test_the_build_refuses_awaits_inside_expressions_by_name(self):
        for line in ("f({.size = 1}, co_await name);", "co_return result{.rows = co_await name};",
                     "auto x = yes ? co_await a : b;", "if (co_await name > 2)", "auto x{co_await name};"):
            with self.subTest(line):
                status, said = self.configured(line)
                self.assertNotEqual(status, 0)
                self.assertIn("method.cpp: an await stands alone on its line", said)
                self.assertIn(line, said)


if __name__ == "__main__":
    run_tests()
