"""Folders and files of a run are moved, removed, replaced or closed to it while it goes on: it ends as if nothing had
been, or says what is wrong and ends with code 1, and what is put back goes on."""
import os
import random
import shutil
import subprocess
import time

from disturbed_runs import SCENARIOS, DisturbedRuns
from signal_search import SignalSearch

PLANNED = 20_000
TARGETS = ["", "checkpoint", "scenario.toml", "checkpoint/run.json", "metrics.jsonl", "events.csv",
           "accuracy_matrix.csv", "partition.csv", "checkpoint/newest", "summary.json.part", "metrics.jsonl.part"]
ACTS = ["moved", "removed", "emptied", "linked", "a pipe", "a folder", "read-only"]


class MoveSearch(DisturbedRuns):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        draw, seconds = random.Random(1), {}
        for name in SCENARIOS:
            began = time.monotonic()
            self._undisturbed(name)
            seconds[name] = time.monotonic() - began
        for _ in range(PLANNED):
            name = draw.choice(SCENARIOS)
            self.plan.append((name, draw.choice(TARGETS), draw.choice(ACTS), "after",
                              round(draw.uniform(0.3, 1.0) * seconds[name], 3), "s"))

    def _fault_of(self, name, target, act, _after, seconds, _s):
        out = self._fresh_folder()
        beside = os.path.join(os.path.dirname(out), "beside")
        try:
            process = subprocess.Popen([self.program, *self._words(name, out)], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, errors="replace")
            time.sleep(seconds)
            try:
                self._disturb(self._place(out, target), act, beside)
            except OSError:
                pass  # it was not there, or not yet
            code, errors = SignalSearch._ended(process)
            return self._judged(name, out, target, act, beside, code, errors)
        finally:
            shutil.rmtree(os.path.dirname(out), ignore_errors=True)

    @staticmethod
    def _place(out, target):
        if target != "checkpoint/newest":
            return os.path.join(out, target) if target else out
        folder = os.path.join(out, "checkpoint")
        return os.path.join(folder, max(name for name in os.listdir(folder) + [""] if not name.endswith(".part")))

    @staticmethod
    def _disturb(place, act, beside):
        if act == "read-only":
            return os.chmod(place, 0o500 if os.path.isdir(place) else 0o400)
        if act == "emptied" and not os.path.isdir(place):
            return os.truncate(place, 0)
        os.rename(place, beside)
        if act == "removed":
            shutil.rmtree(beside) if os.path.isdir(beside) else os.remove(beside)
        elif act == "linked":
            os.symlink(beside, place)
        elif act == "a pipe":
            os.mkfifo(place)
        elif act == "a folder":
            os.mkdir(place)
        return None

    def _judged(self, name, out, target, act, beside, code, errors):
        if code is None:
            return "the run does not end"
        if code not in (0, 1):
            return f"the run ended with code {code}: {errors[-300:]}"
        if code == 1 and "error: " not in errors:
            return f"the run gave no reason: {errors[-300:]}"
        if code == 0:
            self.counts["went on"] += 1
            if target == "" and not os.path.exists(os.path.join(out, "summary.json")):
                return None if os.path.exists(os.path.join(beside, "summary.json")) else "code 0, and no summary"
            return self._wrong(name, out) if act == "read-only" else None
        if act == "moved" and target == "" and "resume with" in errors:
            return self._resumed(name, beside)
        self.counts["refused"] += 1
        return None
