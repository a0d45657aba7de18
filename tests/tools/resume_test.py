"""Runs that are killed, interrupted or damaged, and continued with `mneme resume`."""
import os
import shutil
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import mneme, run_tests  # noqa: E402
from resuming import Torture, check_equal, checkpoints, content, is_done, start  # noqa: E402

SCENARIO = os.path.join("scenarios", "smoke", "fedprox.toml")  # late uploads are kept over rounds and tasks
LONG = ("rounds.per_task=60", "checkpoint.force=true")


def settings(*all_of_them):
    return [word for one in all_of_them for word in ("--set", one)]


class Resume(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.expected = os.path.join(scratch.name, "expected")
        done = mneme("run", SCENARIO, *settings(*LONG), "--out", cls.expected, "--quiet")
        assert done.returncode == 0, done.stderr

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.run_folder = os.path.join(self.scratch.name, "run")

    def interrupted(self, how):
        """Starts a run and sends it a signal after its second checkpoint."""
        process = start("run", SCENARIO, *settings(*LONG), "--out", self.run_folder)
        while process.poll() is None and len(checkpoints(self.run_folder)) < 2:
            time.sleep(0.02)
        process.send_signal(how)
        _, errors = process.communicate()
        return process.returncode, errors

    def resumed(self, *options):
        return mneme("resume", self.run_folder, "--quiet", *options)

    def test_a_run_killed_at_random_moments_resumes_to_the_same_digest(self):
        Torture(self, self.scratch.name, "smoke/fedprox.toml", ["rounds.per_task=20"]).kill(4, 4)

    def test_a_killed_run_with_shared_links_and_traces_resumes_to_the_same_digest(self):
        Torture(self, self.scratch.name, "smoke/devices.toml", ["rounds.per_task=20"]).kill(4, 4)

    def test_an_interrupted_run_does_not_wait_for_a_long_job(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            out = os.path.join(self.scratch.name, how.name)
            process = start("run", SCENARIO, *settings("training.epochs=1000000", "data.rows=20000"), "--out", out)
            while process.poll() is None and not os.path.exists(os.path.join(out, "checkpoint", "run.json")):
                time.sleep(0.02)
            time.sleep(0.2)
            process.send_signal(how)
            _, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 130, errors)
            self.assertIn(f"resume with `mneme resume {out}`", errors)
            self.assertIn(b'"interrupted"', content(out, "summary.json"))

    def test_signals_take_a_checkpoint_and_print_how_to_resume(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            shutil.rmtree(self.run_folder, ignore_errors=True)
            code, errors = self.interrupted(how)
            self.assertEqual(code, 130, errors)
            self.assertIn(f"resume with `mneme resume {self.run_folder}`", errors)
            self.assertIn(b'"interrupted"', content(self.run_folder, "summary.json"))
        done = self.resumed("--threads", "1")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        check_equal(self, self.run_folder, self.expected)
        again = mneme("resume", self.run_folder)
        self.assertEqual(again.returncode, 0)
        self.assertIn("is done; nothing to resume", again.stderr)

    def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(self):
        self.interrupted(signal.SIGKILL)
        newest = checkpoints(self.run_folder)[-1]
        os.truncate(newest, os.path.getsize(newest) // 2)
        done = mneme("resume", self.run_folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"warning: {newest}: this checkpoint is incomplete", done.stdout)
        self.assertIn("continues after round", done.stdout)
        check_equal(self, self.run_folder, self.expected)

    def test_another_scenario_is_refused(self):
        self.interrupted(signal.SIGTERM)
        path = os.path.join(self.run_folder, "scenario.toml")
        text = content(self.run_folder, "scenario.toml").decode()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("mu = 0.1", "mu = 0.2"))
        done = self.resumed()
        self.assertEqual(done.returncode, 2)
        self.assertIn("belongs to another scenario", done.stderr)
        self.assertFalse(is_done(self.run_folder))

    def test_a_folder_in_use_is_refused(self):
        process = start("run", SCENARIO, *settings("rounds.per_task=100000"), "--out", self.run_folder)
        while process.poll() is None and not checkpoints(self.run_folder):
            time.sleep(0.02)
        done = self.resumed()
        process.kill()
        process.communicate()
        self.assertEqual(done.returncode, 2)
        self.assertIn("another process writes into", done.stderr)


if __name__ == "__main__":
    run_tests()
