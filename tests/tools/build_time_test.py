"""tools/build_time.py: remaining time of recorded builds.

tests/golden/build_logs: start, end (seconds) and output of each step, from .ninja_log after `tools/build release` of
builds that recompiled 45 to 91 steps on two busy cores, three steps at once.
"""
import glob
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools"))
import build_time  # noqa: E402

JOBS = 3


def recorded_builds():
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "build_logs", "*.tsv"))):
        with open(path, encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        yield os.path.basename(path), [(float(start), float(end), output) for start, end, output in rows]


class BuildTime(unittest.TestCase):
    def errors(self, rows, slower):
        """Relative errors from the first minute on, on a machine that is slower by this factor; 45 s are tolerated."""
        costs = build_time.read_costs()
        whole = slower * max(end for _, end, _ in rows)
        planned = {output for _, _, output in rows}
        for now in range(60 * slower, int(whole), 15):
            finished = {output for _, end, output in rows if slower * end <= now}
            left = build_time.seconds_left(planned, finished, now, JOBS, costs)
            excess = abs(left - (whole - now))
            yield 0.0 if excess < 45 * slower else excess / (whole - now)

    def test_the_estimate_is_within_30_percent_at_19_of_20_moments(self):
        builds = list(recorded_builds())
        self.assertEqual(len(builds), 3)
        for name, rows in builds:
            for slower in (1, 2):
                errors = sorted(self.errors(rows, slower))
                self.assertLess(errors[len(errors) * 19 // 20 - 1], 0.3, f"{name} x {slower}, at 19 of 20 moments")

    def test_costs_come_from_the_target_and_links_are_cheap(self):
        costs = {"mneme_a": 10.0, "mneme_a.gch": 50.0}
        header = "Building CXX object CMakeFiles/mneme_a.dir/cmake_pch.hxx.gch"
        source = "Building CXX object CMakeFiles/mneme_a.dir/Unity/unity_0_cxx.cxx.o"
        self.assertEqual(build_time.cost(source, costs), 10.0)
        self.assertEqual(build_time.cost(header, costs), 50.0)
        self.assertEqual(build_time.cost("Building CXX object CMakeFiles/new.dir/x.cpp.o", costs), 30.0)
        self.assertEqual(build_time.cost("Linking CXX executable mneme", costs), build_time.LINK_SECONDS)

    def test_a_build_without_pending_steps_has_no_time_left(self):
        self.assertEqual(build_time.seconds_left({"a"}, {"a"}, 100.0, JOBS, {"x": 1.0}), 0.0)

    def test_costs_are_medians_over_build_logs_without_answers_of_ccache(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, seconds in (("a", 10), ("b", 30), ("c", 20)):
                os.mkdir(os.path.join(folder, name))
                with open(os.path.join(folder, name, ".ninja_log"), "w", encoding="utf-8") as file:
                    file.write("# ninja log v5\n"
                               f"0\t{seconds * 1000}\t1\tCMakeFiles/x.dir/x.cpp.o\tf\n"
                               "0\t20000\t1\tCMakeFiles/y.dir/y.cpp.o\tf\n"
                               "0\t10\t1\tCMakeFiles/y.dir/z.cpp.o\tf\n"
                               "0\t900\t1\tprogram\tf\n")
            told = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "build_time.py"), "costs", "40",
                                   *(os.path.join(folder, name) for name in "abc")], capture_output=True, text=True,
                                  check=True).stdout
        self.assertEqual(told.splitlines()[1:], ["20.0\tx", "20.0\ty"])

    def test_a_folder_that_is_not_configured_has_no_plan(self):
        told = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "build_time.py"), "plan", "/nonexistent"],
                              capture_output=True, text=True, check=True)
        self.assertEqual((told.stdout, told.stderr), ("", ""))


if __name__ == "__main__":
    run_tests()
