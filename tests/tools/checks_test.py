"""Parts of tools/test: the list of skips, clang's command, the shell scripts."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "checks"))
import clang_check  # noqa: E402

CHECKS = os.path.join(ROOT, "tools", "checks")
DASHES, DOTS = 79 * "-", 79 * "."
REPORT = f"""<?xml version="1.0" encoding="UTF-8"?>
<testsuite>
  <testcase name="runtime/data: idx_test" status="run"><system-out>Filters: [#idx_test]
{DASHES}
MNIST is read as published, with a name that
  takes two lines
{DASHES}
a_test.cpp:42
{DOTS}

a_test.cpp:43: SKIPPED:
explicitly with message:
  data set 'mnist' not found below $MNEME_DATA

{DASHES}
USPS too
{DASHES}
a_test.cpp:52
{DOTS}

a_test.cpp:53: SKIPPED:
explicitly with message:
  data set 'usps' not found

===============================================================================
test cases: 3 | 1 passed | 2 skipped
</system-out></testcase>
  <testcase name="runtime/data: passes" status="run"><system-out>SKIPPED: never said</system-out></testcase>
  <testcase name="tools: agreement" status="notrun"><skipped message="SKIP_RETURN_CODE=4"/>
    <system-out>OK
skipped: data set 'usps' not found
</system-out></testcase>
  <testcase name="tools: silent" status="notrun"><skipped message="SKIP_RETURN_CODE=4"/></testcase>
</testsuite>
"""


class Checks(unittest.TestCase):
    def test_skips_are_listed_with_their_reasons(self):
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.xml")
            with open(report, "w", encoding="utf-8") as file:
                file.write(REPORT)
            program = os.path.join(CHECKS, "skips.py")
            done = subprocess.run([sys.executable, program, report], capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines(),
                         ["skipped tests: 4",
                          "  runtime/data: idx_test: MNIST is read as published, with a name that takes two lines: "
                          "data set 'mnist' not found below $MNEME_DATA",
                          "  runtime/data: idx_test: USPS too: data set 'usps' not found",
                          "  tools: agreement: data set 'usps' not found", "  tools: silent: SKIP_RETURN_CODE=4"])

    def test_clang_gets_the_flags_of_the_build_and_writes_nothing(self):
        entry = {"file": "/x/a.cpp", "directory": "/x",
                 "command": "/bin/ccache /bin/c++ -DA=\\\"b\\\" -I/x -isystem /y -O2 -fpch-preprocess -std=c++20 "
                            "-Winvalid-pch -include /b/cmake_pch.hxx -include own.hpp -o a -c /x/a.cpp"}
        self.assertEqual(clang_check.clang_command(entry),
                         ["clang-tidy-19", "--quiet", "/x/a.cpp", "--", '-DA="b"', "-I/x", "-isystem", "/y",
                          "-std=c++20", "-include", "own.hpp", "-Wno-unknown-warning-option"])

    def test_sources_of_a_unity_build_are_found_by_their_own_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            both = os.path.join(folder, "unity_0_cxx.cxx")
            with open(both, "w", encoding="utf-8") as file:
                file.write("/* made by CMake */\n\n#include \"/x/a.cpp\"\n\n#include \"/x/b.cpp\"\n")
            commands = os.path.join(folder, "compile_commands.json")
            with open(commands, "w", encoding="utf-8") as file:
                json.dump([{"file": both, "directory": "/x", "command": f"c++ -DA -c {both}"},
                           {"file": "/x/c.cpp", "directory": "/x", "command": "c++ -DC -c /x/c.cpp"}], file)
            entries = clang_check.entries_of(commands)
        self.assertEqual({path: entry["file"] for path, entry in entries.items()},
                         {path: path for path in ("/x/a.cpp", "/x/b.cpp", "/x/c.cpp")})
        self.assertEqual(clang_check.clang_command(entries["/x/b.cpp"])[-4:],
                         ["/x/b.cpp", "--", "-DA", "-Wno-unknown-warning-option"])

    @unittest.skipUnless(shutil.which(clang_check.TIDY), f"no {clang_check.TIDY}")
    def test_a_planted_violation_of_clang_tidy_is_found(self):
        with tempfile.TemporaryDirectory(dir=ROOT, prefix="planted-") as folder:
            entries = []
            for name, text in (("good", "double half = 0.5;\n"), ("wrong", "int p = q;\n"),
                               ("bad", "double half(int n) { return n / 2; }\n")):
                source = os.path.join(folder, name + ".cpp")
                with open(source, "w", encoding="utf-8") as file:
                    file.write(text)
                entries.append({"file": source, "directory": folder, "command": f"g++ -std=c++20 -c {source}"})
            found = {os.path.basename(entry["file"]): clang_check.check(entry, {}) for entry in entries}
        self.assertEqual({name: status != 0 for name, (_, status, _) in found.items()},
                         {"good.cpp": False, "bad.cpp": True, "wrong.cpp": True})
        self.assertIn("[bugprone-integer-division", found["bad.cpp"][2])
        self.assertIn("use of undeclared identifier 'q'", found["wrong.cpp"][2])

    def test_a_source_that_needs_precompiled_headers_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            header = os.path.join(folder, "cmake_pch.hxx")
            entries = []
            for name, text in (("good", "#include <vector>\nstd::vector<int> of;"), ("bad", "std::vector<int> of;")):
                source = os.path.join(folder, name + ".cpp")
                with open(source, "w", encoding="utf-8") as file:
                    file.write(text)
                entries.append({"file": source, "directory": folder, "command": f"g++ -include {header} -c {source}"})
            commands = os.path.join(folder, "compile_commands.json")
            with open(commands, "w", encoding="utf-8") as file:
                json.dump(entries, file)
            program = os.path.join(CHECKS, "includes_check.py")
            done = subprocess.run([sys.executable, program, commands, "2"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad.cpp: does not include what it uses", done.stdout)
        self.assertNotIn("good.cpp:", done.stdout)

    def test_an_inline_function_defined_by_two_headers_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            commands = os.path.join(folder, "compile_commands.json")
            with open(commands, "w", encoding="utf-8") as file:
                source = os.path.join(folder, "part", "a.cpp")
                json.dump([{"file": source, "directory": folder, "command": f"g++ -std=c++20 -c {source}"}], file)

            def check(second):
                os.makedirs(os.path.join(folder, "part"), exist_ok=True)
                for name, text in (("first", "inline int size() { return 1; }"), ("second", second)):
                    with open(os.path.join(folder, "part", name + ".hpp"), "w", encoding="utf-8") as file:
                        file.write(f"#pragma once\nnamespace mneme {{\n{text}\n}}\n")
                program = os.path.join(CHECKS, "one_definition.py")
                return subprocess.run([sys.executable, program, commands, "part"], cwd=folder, capture_output=True,
                                      text=True)

            self.assertEqual(check("inline int size(int of) { return of; }").returncode, 0)
            done = check("inline int size() { return 2; }")
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout, r"part/second\.hpp:3:12: error: redefinition of .*size\(\)")

    def test_unknown_arguments_are_refused(self):
        for script in ("bootstrap", "test"):
            arguments = ["--nonsense"] if script == "bootstrap" else ["--extra", "more"]
            done = subprocess.run([os.path.join(ROOT, "tools", script), *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    run_tests()
