"""Fault injection: at each call that changes a file, the call fails, the process is killed, or a signal arrives."""
import os
import random
import shutil

from disturbed_runs import SCENARIOS, DisturbedRuns
from fault_subjects import SUBJECTS

NO_SPACE, IO_ERROR, QUOTA, TOO_LARGE, READ_ONLY = "28", "5", "122", "27", "30"
FAULTS = [NO_SPACE, IO_ERROR, QUOTA, TOO_LARGE, READ_ONLY, "short", "kill", "term"]


class FaultSearch(DisturbedRuns):
    def __init__(self, program, folder):
        super().__init__(program, folder, "failing_calls")
        log = os.path.join(folder, "calls")
        calls = {name: self._undisturbed(name, self._orders(0, NO_SPACE, log), log) for name in SCENARIOS}
        self.plan = [(name, "fault", fault, "at call", at) for name in SCENARIOS for fault in FAULTS
                     for at in range(1, calls[name] + 1)]
        self.subjects = {}
        for name, made in SUBJECTS.items():
            subject = self.subjects[name] = made(os.path.join(folder, name), self.programs.run)
            subject.undisturbed(self._orders(0, NO_SPACE, log))
            with open(log, encoding="utf-8") as file:
                counted = int(file.read()) + subject.further_calls
            self.plan += [(name, "fault", fault, "at call", at) for fault in FAULTS for at in range(1, counted + 1)]
        random.Random(1).shuffle(self.plan)

    def _orders(self, at, fault, log=""):
        return [f"MNEME_FAULT_AT={at}", f"MNEME_FAULT={fault}", f"MNEME_FAULT_LOG={log}"]

    def _fault_of(self, name, _fault, kind, _at, at):
        out = self._fresh_folder()
        if name in self.subjects:
            return self._fault_of_subject(self.subjects[name], out, kind, at)
        try:
            ended = self.programs.run(self._words(name, out), self._orders(at, kind))
            return self._end_of(name, out, (ended.code, ended.errors), {"kill": [-9], "term": [130]}.get(kind, ()))
        finally:
            shutil.rmtree(os.path.dirname(out))

    def _fault_of_subject(self, subject, out, kind, at):
        os.makedirs(out)
        try:
            ended = self.programs.run(subject.words(out), self._orders(at, kind) + subject.settings(out))
            if ended.code not in (0, 1, 2) and ended.code not in {"kill": [-9], "term": [130, -15]}.get(kind, ()):
                return f"it ended with code {ended.code}: {ended.errors[-300:]}"
            if ended.code in (1, 2) and "error: " not in ended.errors:
                return f"it ended with code {ended.code} and gave no reason: {ended.errors[-300:]}"
            self.counts["went on" if ended.code == 0 else "refused"] += 1
            return subject.check(out, ended.code)
        finally:
            shutil.rmtree(os.path.dirname(out), ignore_errors=True)
