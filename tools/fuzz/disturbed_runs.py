"""Base class of searches that disturb a run. The run must continue or fail with a reason, and resuming it must give the
digest of the undisturbed run."""
import json
import os
import shutil
import tempfile

from started_programs import ADDRESSES_BYTES, StartedPrograms, built_library
from ways_to_run import INTERRUPTED, LIMIT_S, facts_of

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCENARIOS = ["fedavg", "async", "stsa"]


class DisturbedRuns:
    """Base class. A search has a `plan`, a list of disturbances, and `_fault_of(*disturbance)`; `library` may be
    preloaded."""

    def __init__(self, program, folder, library=None):
        self.program, self.folder = program, folder
        os.makedirs(folder, exist_ok=True)
        self.injector = built_library(library, folder) if library else None
        if library and self.injector is None:
            raise SystemExit("no C compiler, which makes the library that is preloaded")
        self.programs = StartedPrograms(program, folder, LIMIT_S, ADDRESSES_BYTES, self.injector or "")
        self.counts = {"disturbed": 0, "went on": 0, "resumed": 0, "refused": 0, "found": 0}
        self.undisturbed = {}  # results by scenario
        self.plan = []

    def try_seed(self, seed):
        """Runs the disturbance with this number in the plan. Returns a description of the fault, or None."""
        if seed > len(self.plan):
            return None
        self.counts["disturbed"] += 1
        fault = self._fault_of(*self.plan[seed - 1])
        if not fault:
            return None
        self.counts["found"] += 1
        return f"seed {seed}, {' '.join(map(str, self.plan[seed - 1]))}: {fault}"

    def _words(self, name, out):
        return ["run", os.path.join(ROOT, "scenarios", "smoke", name + ".toml"), "--quiet", "--trace",
                "--out", out, "--threads", "1", "--set", "checkpoint.force=true"]

    def _undisturbed(self, name, orders=(), log=None):
        """Runs the scenario undisturbed and stores its results. Returns the counts of the preloaded library."""
        out = os.path.join(self.folder, name)
        shutil.rmtree(out, ignore_errors=True)
        ended = self.programs.run(self._words(name, out), orders)
        if ended.code != 0:
            raise SystemExit(f"{name} fails undisturbed: {ended.errors}")
        self.undisturbed[name] = self._facts(out)
        if log is None:
            return 0
        with open(log, encoding="utf-8") as file:
            return int(file.read())

    @staticmethod
    def _facts(out):
        facts = facts_of(out)
        with open(os.path.join(out, "events.csv"), encoding="utf-8") as file:
            facts["events"] = file.read()
        return facts

    def _fresh_folder(self):
        """Returns a new run folder. Its parent must be removed afterwards."""
        return os.path.join(tempfile.mkdtemp(dir=self.folder), "run")

    def _end_of(self, name, out, ended, allowed=()):
        """Checks the outcome (code, errors) of a run. Returns a description of the fault, or None. allowed: exit codes
        of interrupted runs"""
        code, errors = ended
        if code is None or (code == INTERRUPTED and code not in allowed):
            return "the run does not end"
        if code in allowed:
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
        differing = sorted(key for key in facts if facts[key] != self.undisturbed[name][key])
        return f"code 0 and status {status}, but others: {differing}" if differing else None

    def _resumed(self, name, out):
        if not os.path.exists(os.path.join(out, "scenario.toml")):
            self.counts["refused"] += 1  # the run did not start
            again = self.programs.run(self._words(name, out))
            return None if again.code == 0 else f"the folder that is left blocks a run: {again.errors[-300:]}"
        resumed = self.programs.run(["resume", out, "--quiet", "--threads", "2"])
        if resumed.code != 0:
            return f"resume ends with code {resumed.code}: {resumed.errors[-300:]}"
        self.counts["resumed"] += 1
        return self._wrong(name, out)

    def close(self):
        self.programs.close()
