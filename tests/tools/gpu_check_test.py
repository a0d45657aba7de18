"""tools/gpu_check with fake programs: commands, evaluation of their output, failures."""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

NVIDIA_SMI = "echo 'GPU 0: NVIDIA Canned (UUID: GPU-1)'"
BUILD = 'echo "$@" >>"$CALLS"; echo "building $*"; [ "$BROKEN" != build ]'
TESTS = """
echo "$(basename "$0")" "$@" "required: $MNEME_DEVICE_REQUIRED" >>"$CALLS"
case $BROKEN in
  tests) seq 1 30; echo 'test cases: 2 | 1 passed | 1 failed'; exit 42 ;;
  skips) echo 'test cases: 2 | 1 passed | 1 skipped' ;;
  *) echo 'All tests passed (34 assertions in 2 test cases)' ;;
esac
"""
BENCH = """
import json, os, sys
with open(os.environ["CALLS"], "a") as file:
    print("bench", *sys.argv[1:], file=file)
report = {"benchmarks": [{"name": "b1", "contenders": [{"label": "mneme on cuda:0", "wall_rate": 1234.5}],
                          "verdicts": [{"label": "to the loop", "measured": {"median": 12.345}}]}]}
if os.environ.get("BROKEN") == "bench":
    report = {}
with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
    json.dump(report, file)
"""
MNEME = """
import json, os, sys, time
with open(os.environ["CALLS"], "a") as file:
    print("mneme", *sys.argv[1:], file=file)
broken = os.environ.get("BROKEN")
resumed = sys.argv[1] == "resume"
out = sys.argv[2] if resumed else sys.argv[sys.argv.index("--out") + 1]
threads = sys.argv[sys.argv.index("--threads") + 1]
os.makedirs(out, exist_ok=resumed)
if "checkpoint.every=1" in sys.argv:
    os.mkdir(os.path.join(out, "checkpoint"))
    with open(os.path.join(out, "checkpoint", "1.checkpoint"), "w") as file:
        file.write("{}")
    time.sleep(60)  # until it is killed
digest = threads * 32 if broken == "digest" else "e" * 32 if broken == "resume" and resumed else "d" * 32
with open(os.path.join(out, "summary.json"), "w") as file:
    json.dump({"client_rounds": 40, "wall_seconds": 2.0, "run_digest": digest}, file)
"""


class GpuCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = os.path.join(folder.name, "tree")
        self.programs = os.path.join(folder.name, "programs")
        self.calls = os.path.join(folder.name, "calls")
        for made in ("tools/bench", "build/cuda/tests", "scenarios/smoke"):
            os.makedirs(os.path.join(self.tree, made))
        os.mkdir(self.programs)
        shutil.copy(os.path.join(ROOT, "tools", "gpu_check"), os.path.join(self.tree, "tools"))
        self.stand_in(self.programs, "nvidia-smi", NVIDIA_SMI)
        for program in ("test_training", "test_run"):
            self.stand_in(self.tree, f"build/cuda/tests/{program}", TESTS)
        for name in ("fedavg", "lga"):
            with open(os.path.join(self.tree, "scenarios", "smoke", f"{name}.toml"), "w", encoding="utf-8"):
                pass
        self.stand_in(self.tree, "tools/build", BUILD)
        self.stand_in(self.tree, "tools/bench/run", BENCH, sys.executable)
        self.stand_in(self.tree, "build/cuda/mneme", MNEME, sys.executable)

    def stand_in(self, folder, name, text, interpreter="/bin/sh"):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!{interpreter}\n{text}\n")
        os.chmod(path, 0o755)

    def check(self, *arguments, broken=""):
        environment = {**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}", "CALLS": self.calls,
                       "BROKEN": broken}
        return subprocess.run([sys.executable, os.path.join(self.tree, "tools", "gpu_check"), *arguments],
                              capture_output=True, text=True, env=environment)

    def called(self):
        with open(self.calls, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_all_steps_give_one_table(self):
        report = os.path.join(self.tree, "report.json")
        done = self.check("--json", report)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "GPU 0: NVIDIA Canned (UUID: GPU-1)")
        self.assertRegex(done.stdout, r"(?m)^build +passed +\d+\.\d   built in: \d+ s$")
        self.assertRegex(done.stdout, r"(?m)^tests +passed +\d+\.\d   passed: 4 cases$")
        self.assertRegex(done.stdout, r"(?m)^scenarios +passed +\d+\.\d   one digest each: 2 scenarios with ")
        self.assertIn("killed and resumed: 2 of them, to the same digest", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^bench +passed +\d+\.\d   b1, mneme on cuda:0: 1,234 client-rounds a sec")
        self.assertIn("b1, to the loop: 12.35 x", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^resnet18 +passed +\d+\.\d   on the device: 10,000 images a second$")
        self.assertIn("digest with one thread and with four: equal: dddddddd", done.stdout)
        with open(report, encoding="utf-8") as file:
            told = json.load(file)
        self.assertEqual([step["name"] for step in told["steps"]], ["build", "tests", "scenarios", "bench", "resnet18"])
        self.assertEqual(told["steps"][4]["figures"][0]["value"], 40 * 500 / 2.0)
        self.assertEqual(told["steps"][4]["figures"][1]["value"], 40 * 100 / 2.0)

        calls = self.called()
        self.assertEqual(calls[:5], ["cuda mneme bench_loops", "cuda test_training",
                                     "test_training [gpu] required: 1", "cuda test_run",
                                     "test_run [gpu] required: 1"])
        runs = calls[5:13]
        for name in ("fedavg", "lga"):
            self.assertEqual([call.split()[1:5] for call in runs if f"/{name}." in call],
                             [["run", f"scenarios/smoke/{name}.toml", "--threads", "1"],
                              ["resume", f"build/gpu_check/scenarios/{name}.killed", "--threads", "1"],
                              ["run", f"scenarios/smoke/{name}.toml", "--threads", "1"],
                              ["run", f"scenarios/smoke/{name}.toml", "--threads", "3"]])
        self.assertTrue(calls[13].startswith("bench b1 b2c --device cuda:0 --programs build/cuda "), calls[13])
        devices = [[word for word in call.split() if word.startswith("worker.device")] for call in calls[14:]]
        self.assertEqual(devices, [['worker.device="cuda:0"'], ['worker.device="cuda:0"'], ['worker.device="cpu"']])

    def test_existing_programs_are_used_without_a_build(self):
        self.assertEqual(self.check("tests", "--built").returncode, 0)
        self.assertEqual(self.called(), ["test_training [gpu] required: 1", "test_run [gpu] required: 1"])

    def test_a_named_step_runs_alone(self):
        self.assertEqual(self.check("build").returncode, 0)
        self.assertEqual(self.called(), ["cuda mneme bench_loops"])

    def test_a_failed_step_is_named_and_the_others_run(self):
        done = self.check("tests", "bench", broken="tests")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tests failed: build/cuda/tests/test_training ended with 42; the end of "
                      "build/gpu_check/tests.log:\n12\n13\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^tests +FAILED .* build/cuda/tests/test_training ended with 42$")
        self.assertRegex(done.stdout, r"(?m)^bench +passed")

    def test_skipped_tests_on_a_machine_with_a_device_fail(self):
        done = self.check("tests", broken="skips")
        self.assertEqual(done.returncode, 1)
        self.assertIn("2 tests were skipped, though there is a device", done.stdout)

    def test_a_digest_that_depends_on_threads_fails(self):
        done = self.check("resnet18", broken="digest")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"one thread gave the digest {'1' * 32}, four gave {'4' * 32}", done.stdout)

    def test_scenarios_with_several_digests_are_named(self):
        done = self.check("scenarios", broken="digest")
        self.assertEqual(done.returncode, 1)
        self.assertIn("scenarios failed: 2 of 2 scenarios failed or have several digests", done.stdout)
        self.assertIn("scenarios/smoke/lga.toml: 1 threads 11111111, 3 threads 33333333, killed and resumed 11111111",
                      done.stdout)
        done = self.check("scenarios", broken="resume")
        self.assertIn("smoke/fedavg.toml: 1 threads dddddddd, 3 threads dddddddd, killed and resumed eeeeeeee",
                      done.stdout)

    def test_a_step_that_exceeds_its_time_is_killed_and_named(self):
        loader = importlib.machinery.SourceFileLoader("gpu_check", os.path.join(self.tree, "tools", "gpu_check"))
        checking = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
        loader.exec_module(checking)
        checking.STEP_SECONDS_MAX = 0  # a command still gets one second
        with self.assertRaisesRegex(checking.Failure, "sh was ended: the step took more than 0 s"):
            checking.Step("tests").run("sh", "-c", "sleep 1000 & wait")

    def test_a_report_without_results_fails(self):
        done = self.check("bench", broken="bench")
        self.assertEqual(done.returncode, 1)
        self.assertIn("bench failed: a report lacks 'benchmarks'", done.stdout)

    def test_without_a_device_gpu_check_reports_it_and_passes(self):
        self.stand_in(self.programs, "nvidia-smi", "echo 'No devices were found'")
        report = os.path.join(self.tree, "report.json")
        done = self.check("--json", report)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "gpu_check: this machine has no CUDA device (No devices were found); "
                                      "nothing was checked\n")
        self.assertFalse(os.path.exists(self.calls))
        with open(report, encoding="utf-8") as file:
            self.assertEqual(json.load(file), {"device": None, "steps": []})

    def test_an_unknown_step_is_bad_usage(self):
        done = self.check("resnet")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown step 'resnet'; expected one of build, tests, scenarios, bench, resnet18", done.stderr)

    def test_test_programs_for_devices_are_built(self):
        found = set()
        for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
            for name in names:
                if name.endswith("_test.cpp"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        if "[gpu]" in file.read():
                            found.add("test_" + os.path.basename(folder))
        with open(os.path.join(ROOT, "tools", "gpu_check"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn(f"TEST_PROGRAMS = ({', '.join(repr(name) for name in sorted(found, reverse=True))})"
                      .replace("'", '"'), text)


if __name__ == "__main__":
    run_tests()
