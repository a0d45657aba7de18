"""Damaged inputs for every reader: each ends with code 0, 1 or 2 and a reason, soon, and in little memory."""
import os
import random
import resource
import shutil
import subprocess
import time

from mutations import mutated
from reader_cases import CASES

LIMIT_S = 20
ADDRESSES_BYTES = 4 << 30


def _limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_BYTES, ADDRESSES_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcome_of(words, environment=None, limited=True):
    """(code or None, stderr, peak bytes, seconds)"""
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment,
                               preexec_fn=_limit if limited else None)
    try:
        errors = process.communicate(timeout=LIMIT_S)[1]
        code = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        errors, code = process.communicate()[1], None
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # of the largest so far
    return code, errors.decode("utf-8", "replace"), peak, time.monotonic() - began


class ReaderSearch:
    def __init__(self, program, folder, only=None, limited=True):
        self.folder, self.limited = folder, limited
        self.cases = {name: make(os.path.join(folder, name), program) for name, make in CASES.items()
                      if only is None or name in only}
        self.counts = {name: 0 for name in self.cases}
        self.counts["found"] = 0
        self.peaks = {}
        for name, case in self.cases.items():
            code, errors, peak, _ = outcome_of(case.command(case.honest), limited=limited)
            if code != 0:
                raise SystemExit(f"the honest input of {name} is refused: {errors}")
            self.peak = peak

    def try_seed(self, seed):
        """One damaged input for each reader; None, or what was found."""
        reports = [report for name in self.cases if (report := self._try(name, seed))]
        return "\n".join(reports) or None

    def _try(self, name, seed):
        case = self.cases[name]
        damaged = mutated(case.honest, random.Random(f"{name} {seed}"))
        code, errors, peak, seconds = outcome_of(case.command(damaged), limited=self.limited)
        self.counts[name] += 1
        fault = None
        if code is None:
            fault = f"it did not end within {LIMIT_S} s"
        elif code not in (0, 1, 2):
            fault = f"it ended with code {code}: {errors[-600:]}"
        elif code != 0 and "error: " not in errors:
            fault = f"it ended with code {code} and gave no reason: {errors[-300:]}"
        elif peak > 2 * self.peak:
            fault = f"it took {peak >> 20} MiB, and the honest input {self.peak >> 20} MiB"
            self.peak = peak
        if not fault:
            return None
        self.counts["found"] += 1
        kept = os.path.join(self.folder, f"found-{name}-{seed}")
        with open(kept, "wb") as file:
            file.write(damaged)
        return f"{name}, seed {seed}: {fault}\n  the bytes are in {kept}"

    def clean_up(self):
        for name in self.cases:
            shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)
