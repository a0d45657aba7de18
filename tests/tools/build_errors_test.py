"""tools/build prints complete error messages of compilers and CMake without command lines, and reports its progress."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

# A tree with the real check of registration lines and the real compiler; nothing needs to be downloaded.
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
include(tools/cmake/sources.cmake)
mneme_registered(strategy_registration ${PROJECT_SOURCE_DIR}/method.cpp)
add_library(small OBJECT method.cpp other.cpp)
"""
BOOTSTRAP = "#!/bin/sh\necho MNEME_CAF=/x MNEME_CAF_TSAN=/x MNEME_TORCH=/x MNEME_CATCH2=/x MNEME_STEPS=0\n"
LINE = "struct strategy_registration { int name; };\nconst strategy_registration line{1};\n"


class BuildErrors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="a tree ")
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        os.makedirs(os.path.join(self.tree, "tools", "cmake"))
        for name in ("tools/build", "tools/build_time.py", "tools/build_costs.tsv", "tools/steps.sh",
                     "tools/cmake/sources.cmake", "CMakePresets.json"):
            shutil.copy(os.path.join(ROOT, name), os.path.join(self.tree, name))
        self.write("tools/bootstrap", BOOTSTRAP)
        os.chmod(os.path.join(self.tree, "tools", "bootstrap"), 0o755)
        self.write("CMakeLists.txt", CMAKE)
        self.write("method.cpp", LINE)
        self.write("other.cpp", "int other() { return 1; }\n")

    def write(self, name, text):
        with open(os.path.join(self.tree, name), "w", encoding="utf-8") as file:
            file.write(text)

    def build(self, target="small"):
        command = [os.path.join(self.tree, "tools", "build"), "release", target]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})

    def built(self):
        done = self.build()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")

    def failed(self):
        done = self.build()
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertNotIn("-DCMAKE_", done.stderr)
        self.assertNotIn("--regenerate-during-build", done.stderr)
        self.assertNotIn(" -o ", done.stderr)
        self.assertIn("build: build/release failed; the full output is in build/release.log", done.stderr)
        return done.stderr

    def test_compiler_messages_are_printed_without_the_command(self):
        self.built()
        self.write("other.cpp", "int other() { return 1 }\n")
        said = self.failed()
        self.assertIn("FAILED: CMakeFiles/small.dir/other.cpp.o", said)
        self.assertRegex(said, r"other\.cpp:1:23: error: expected ';' before '}' token")
        self.assertIn("int other() { return 1 }", said)

    def test_a_removed_registration_line_prints_cmakes_whole_message(self):
        self.built()
        self.write("method.cpp", "int method() { return 1; }\n")
        said = " ".join(self.failed().split())
        self.assertIn("CMake Error at tools/cmake/sources.cmake:", said)
        self.assertIn("method.cpp has no registration line: nobody could choose what it holds. Its last statement "
                      "should read: const strategy_registration line{{.name = \"...\", ...}};", said)
        self.assertIn("CMakeLists.txt:4 (mneme_registered)", said)
        self.assertNotIn("FAILED:", said)

    def test_a_new_file_without_registration_line_prints_cmakes_whole_message(self):
        self.write("method.cpp", "int method() { return 1; }\n")
        done = self.build()
        self.assertEqual(done.returncode, 1)
        said = " ".join(done.stderr.split())
        self.assertIn("method.cpp has no registration line: nobody could choose what it holds. Its last", said)
        self.assertNotIn("-- The CXX compiler", said)

    def test_an_unknown_target_is_named(self):
        done = self.build("nothing")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unknown target 'nothing'", done.stderr)

    def test_a_file_with_unique_names_joins_the_unity_build(self):
        self.write("CMakeLists.txt", CMAKE + "mneme_unity(small)\n")
        self.write("method.cpp", LINE.replace(" line{", " method_line{"))
        self.built()
        unity = os.path.join(self.tree, "build", "release", "CMakeFiles", "small.dir", "Unity", "unity_0_cxx.cxx")
        with open(unity, encoding="utf-8") as file:
            self.assertIn("method.cpp", file.read())
        self.write("method.cpp", LINE)
        self.built()
        with open(unity, encoding="utf-8") as file:
            self.assertNotIn("method.cpp", file.read())
        self.write("method.cpp", "namespace mneme::small_method {\n" + LINE + "}\n")
        self.built()
        with open(unity, encoding="utf-8") as file:
            self.assertIn("method.cpp", file.read())


STEP = """. "$1"
half() { echo "50 $1"; }
step_begin 2 3 "building it" 400 60 half
step_began=$((SECONDS - 120))
step_text 120
step_progress=
step_text 120
step_text 380
step_text 1000
step_end
"""


class Steps(unittest.TestCase):
    def test_the_remaining_time_follows_from_the_progress_or_the_estimate(self):
        command = ["bash", "-c", STEP, "bash", os.path.join(ROOT, "tools", "steps.sh")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.splitlines(), [
            "2 of 3: building it, 50 %, about 3 min left",        # 120 s of the step, and 60 after it
            "2 of 3: building it, about 6 min left",              # 400 - 120 + 60
            "2 of 3: building it, about 2 min left",              # a tenth of 380, and 60
            "2 of 3: building it, about 3 min left"])
        self.assertEqual(done.stderr, "2 of 3: building it: 120 s\n")


if __name__ == "__main__":
    run_tests()
