"""Every call that changes a file fails once, or the process ends there, or a signal comes."""
import os
import random
import shutil

from disturbed_runs import SCENARIOS, DisturbedRuns

NO_SPACE, IO_ERROR = "28", "5"
FAULTS = [NO_SPACE, IO_ERROR, "short", "kill", "term"]


class FaultSearch(DisturbedRuns):
    def __init__(self, program, folder):
        super().__init__(program, folder, "failing_calls")
        log = os.path.join(folder, "calls")
        calls = {name: self._undisturbed(name, self._orders(0, NO_SPACE, log), log) for name in SCENARIOS}
        self.plan = [(name, "fault", fault, "at call", at) for name in SCENARIOS for fault in FAULTS
                     for at in range(1, calls[name] + 1)]
        random.Random(1).shuffle(self.plan)

    def _orders(self, at, fault, log=""):
        return [f"MNEME_FAULT_AT={at}", f"MNEME_FAULT={fault}", f"MNEME_FAULT_LOG={log}"]

    def _fault_of(self, name, _fault, kind, _at, at):
        out = self._fresh_folder()
        try:
            ended = self.programs.run(self._words(name, out), self._orders(at, kind))
            return self._end_of(name, out, (ended.code, ended.errors), {"kill": [-9], "term": [130]}.get(kind, ()))
        finally:
            shutil.rmtree(os.path.dirname(out))
