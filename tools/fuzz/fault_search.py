"""Every call that changes a file fails once, in a run of a scenario: the run goes on or ends with a reason, and what it
leaves resumes to the digest of the undisturbed run."""
import json
import os
import random
import shutil
import subprocess
import tempfile

from ways_to_run import facts_of, run_program

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCENARIOS = ["fedavg", "async", "stsa"]
NO_SPACE, IO_ERROR = "28", "5"
FAULTS = [NO_SPACE, IO_ERROR, "short", "kill", "term"]


def built_injector(folder):
    """The library that is preloaded; None where there is no C compiler."""
    out = os.path.join(folder, "failing_calls.so")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", out, os.path.join(HERE, "failing_calls.c"), "-ldl"],
                   check=True)
    return out


class FaultSearch:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        os.makedirs(folder, exist_ok=True)
        self.injector = built_injector(folder)
        if self.injector is None:
            raise SystemExit("no C compiler, which makes the library that is preloaded")
        self.counts = {"calls": 0, "went on": 0, "resumed": 0, "refused": 0, "found": 0}
        self.calls = {name: self._undisturbed(name) for name in SCENARIOS}
        self.plan = [(name, fault, at) for name in SCENARIOS for fault in FAULTS
                     for at in range(1, self.calls[name][0] + 1)]
        random.Random(1).shuffle(self.plan)

    def try_seed(self, seed):
        """The call of this number in a shuffled list of all: None, or what was found."""
        if seed > len(self.plan):
            return None
        self.counts["calls"] += 1
        fault = self._fault_of(*self.plan[seed - 1])
        if not fault:
            return None
        self.counts["found"] += 1
        name, kind, at = self.plan[seed - 1]
        return f"seed {seed}, {name}, fault {kind} at call {at}: {fault}"

    def _words(self, name, out):
        return [self.program, "run", os.path.join(ROOT, "scenarios", "smoke", name + ".toml"), "--quiet", "--trace",
                "--out", out, "--threads", "1", "--set", "checkpoint.force=true"]

    def _environment(self, at, fault, log=""):
        return {**os.environ, "LD_PRELOAD": self.injector, "MNEME_FAULT_AT": str(at), "MNEME_FAULT": fault,
                "MNEME_FAULT_LOG": log}

    def _undisturbed(self, name):
        """(calls, facts)"""
        out, log = os.path.join(self.folder, name), os.path.join(self.folder, "calls")
        shutil.rmtree(out, ignore_errors=True)
        code, errors, _ = run_program(self._words(name, out), environment=self._environment(0, NO_SPACE, log))
        if code != 0:
            raise SystemExit(f"{name} fails undisturbed: {errors}")
        with open(log, encoding="utf-8") as file:
            return int(file.read()), self._facts(out)

    @staticmethod
    def _facts(out):
        facts = facts_of(out)
        with open(os.path.join(out, "events.csv"), encoding="utf-8") as file:
            facts["events"] = file.read()
        return facts

    def _fault_of(self, name, kind, at):
        out = tempfile.mkdtemp(dir=self.folder) + "/run"
        try:
            code, errors, _ = run_program(self._words(name, out), environment=self._environment(at, kind))
            return self._end_of(name, kind, out, code, errors)
        finally:
            shutil.rmtree(os.path.dirname(out))

    def _end_of(self, name, kind, out, code, errors):
        if code is None:
            return "the run does not end"
        if code == -9 and kind == "kill" or code == 130 and kind == "term":
            return self._resumed(name, out)
        if code not in (0, 1, 2):
            return f"the run ended with code {code}: {errors[-300:]}"
        if code == 0:
            self.counts["went on"] += 1
            return self._wrong(name, out)
        if "error: " not in errors:
            return f"the run ended with code {code} and gave no reason: {errors[-300:]}"
        if code == 2:
            self.counts["refused"] += 1
            return None
        return self._resumed(name, out)

    def _wrong(self, name, out):
        try:
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                status = json.load(file)["status"]
            facts = self._facts(out)
        except (OSError, ValueError) as why:
            return f"code 0, but {why}"
        differing = sorted(key for key in facts if facts[key] != self.calls[name][1][key])
        return f"code 0 and status {status}, but others: {differing}" if differing else None

    def _resumed(self, name, out):
        if not os.path.exists(os.path.join(out, "scenario.toml")):
            self.counts["refused"] += 1  # the run never began
            code, errors, _ = run_program(self._words(name, out))
            return None if code == 0 else f"the folder that is left blocks a run: {errors[-300:]}"
        code, errors, _ = run_program([self.program, "resume", out, "--quiet", "--threads", "2"])
        if code != 0:
            return f"resume ends with code {code}: {errors[-300:]}"
        self.counts["resumed"] += 1
        return self._wrong(name, out)
