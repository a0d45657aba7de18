"""Kills runs at random moments, resumes them, and compares their results with those of an uninterrupted run."""
import glob
import json
import os
import random
import signal
import subprocess
import time

from program import PROGRAM, ROOT, mneme

# Values that depend on a clock, on the machine, or on the number of workers.
OF_TIME = ["wall_seconds", "cpu_seconds", "client_rounds_per_second", "worker_busy_share", "peak_rss_bytes"]
OF_WORKERS = ["fused_width_mean", "trace_digest"]
FILES = ["metrics.jsonl", "accuracy_matrix.csv", "accuracy_per_class.csv", "events.csv", "partition.csv",
         "model.safetensors", "accuracy.svg", "timeline.jsonl"]
DRAWS_SEED = 20260101


def content(folder, name):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def summary(folder):
    """Returns summary.json without these values; None if there is none."""
    text = content(folder, "summary.json")
    return {key: value for key, value in json.loads(text).items() if key not in OF_TIME + OF_WORKERS} if text else None


def is_done(folder):
    found = summary(folder)
    return found is not None and found["status"] == "done"


def check_equal(test, folder, expected):
    test.assertEqual(summary(folder), summary(expected))
    for name in FILES:
        test.assertEqual(content(folder, name), content(expected, name), name)


def start(*arguments):
    return subprocess.Popen([PROGRAM, *arguments, "--quiet"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def checkpoints(folder):
    return sorted(glob.glob(os.path.join(folder, "checkpoint", "*.checkpoint")))


class Torture:
    """Kills runs of one scenario. If a run ends before it is killed, a new one starts."""

    def __init__(self, test, folder, scenario, settings=()):
        self.test, self.folder = test, folder
        self.arguments = ["run", os.path.join("scenarios", scenario), "--trace"]
        for one in ("checkpoint.force=true", *settings):
            self.arguments += ["--set", one]
        self.draws = random.Random(DRAWS_SEED)
        self.runs = self.kills = self.past_start = 0
        self.expected = os.path.join(folder, "expected")
        began = time.monotonic()
        done = mneme(*self.arguments, "--out", self.expected, "--quiet")
        self.seconds = time.monotonic() - began
        test.assertEqual(done.returncode, 0, done.stderr)

    def command(self, run):
        """Returns the command that starts or resumes the run."""
        threads = ["--threads", str(self.draws.randint(1, 3))]
        if os.path.exists(os.path.join(run, "scenario.toml")):
            return ["resume", run, *threads]
        if os.path.isdir(run):  # killed before the run started
            for path, _, names in os.walk(run, topdown=False):
                for name in names:
                    os.remove(os.path.join(path, name))
                os.rmdir(path)
        return [*self.arguments, "--out", run, *threads]

    def kill_once(self, run):
        """Starts one process and kills it with SIGKILL after a random time, unless it has ended."""
        process = start(*self.command(run))
        try:
            _, errors = process.communicate(timeout=self.draws.uniform(0.0, 0.9 * self.seconds))
            self.test.assertEqual(process.returncode, 0, errors)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            self.kills += 1
            self.past_start += bool(checkpoints(run))

    def finish(self, run):
        if not is_done(run):
            process = start(*self.command(run))
            _, errors = process.communicate()
            self.test.assertEqual(process.returncode, 0, errors)
        check_equal(self.test, run, self.expected)
        self.runs += 1

    def kill(self, times, kills_of_run):
        """Kills `times` times, each run at most `kills_of_run` times, and lets every run finish."""
        while self.kills < times:
            run = os.path.join(self.folder, f"run{self.runs}")
            last = min(times, self.kills + kills_of_run)
            while self.kills < last and not is_done(run):
                self.kill_once(run)
            self.finish(run)
        print(f"{self.arguments[1]}: {self.kills} kills, {self.past_start} of them after a checkpoint, "
              f"{self.runs} runs, all with digest {summary(self.expected)['run_digest']}")
