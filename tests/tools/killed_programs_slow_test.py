"""Runs that are killed with SIGKILL between two slices of a program resume with equal results.

The programs are the image reconstruction of LGA's proxy (after the prototype gradients have arrived) and the training
of OSI-FL's generator, before any client has started.
"""
import glob
import os
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import mneme, run_tests  # noqa: E402
from resuming import check_equal, is_done, start  # noqa: E402

SCENARIOS = {"lga": ["tasks.count=2", "strategy.reconstruction_steps=400"],
             "osi-fl": ["strategy.denoiser_passes=200"]}
KILLS = 2


def states(run):
    """Files of completed slices, by name and modification time."""
    return {(path, os.stat(path).st_mtime_ns) for path in
            glob.glob(os.path.join(run, "checkpoint", "programs", "*.checkpoint"))}


class KilledPrograms(unittest.TestCase):
    def test_killed_programs_resume_from_saved_slices(self):
        for name, keys in SCENARIOS.items():
            with self.subTest(name):
                self.killed_and_resumed(["run", os.path.join("scenarios", "smoke", f"{name}.toml"), "--trace", "--set",
                                         "checkpoint.force=true", *(word for key in keys for word in ("--set", key))])

    def killed_and_resumed(self, scenario):
        with tempfile.TemporaryDirectory() as folder:
            expected, run = os.path.join(folder, "expected"), os.path.join(folder, "run")
            whole = mneme(*scenario, "--out", expected, "--threads", "1", "--quiet")
            self.assertEqual(whole.returncode, 0, whole.stderr)
            command, kills = [*scenario, "--out", run, "--threads", "1"], 0
            while kills < KILLS:
                known = states(run)
                process = start(*command)
                while process.poll() is None and not states(run) - known:
                    time.sleep(0.01)
                process.send_signal(signal.SIGKILL)
                process.communicate()
                if not states(run) - known:
                    break
                self.assertFalse(is_done(run))
                kills += 1
                command = ["resume", run, "--threads", str(1 + kills)]
            self.assertGreaterEqual(kills, 1, "the programs were over before their slices were written")
            done = mneme("resume", run, "--quiet", "--threads", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            check_equal(self, run, expected)
            self.assertFalse(os.path.exists(os.path.join(run, "checkpoint", "programs")))


if __name__ == "__main__":
    run_tests()
