"""Damaged inputs for every reader: each ends with code 0, 1 or 2 and a reason, soon, and in little memory."""
import os
import random

from mutations import mutated
from reader_cases import CASES
from started_programs import StartedPrograms

LIMIT_S = 20
INTERRUPTED = 130
ADDRESSES_BYTES = 4 << 30
SELDOM, SELDOM_EVERY = "forged_memories_of_", 20  # readers that take seconds have a turn with every so many seeds


class ReaderSearch:
    def __init__(self, program, folder, only=None, limited=True, before=""):
        self.folder, self.all_readers = folder, only is None
        self.programs = StartedPrograms(program, folder, LIMIT_S, ADDRESSES_BYTES if limited else 0, before)
        self.program, self.cases = program, {}  # those that have had a turn
        self.counts = {name: 0 for name in CASES if only is None or name in only}
        self.readers = list(self.counts)
        self.counts["found"] = 0
        self.honest_peaks, self.peaks = {}, {}  # bytes, by reader

    def _case(self, name):
        if name not in self.cases:
            case = self.cases[name] = CASES[name](os.path.join(self.folder, name), self.program)
            outcome = self.programs.run(case.command(case.honest))
            if outcome.code != 0:
                raise SystemExit(f"the honest input of {name} is refused: {outcome.errors}")
            self.honest_peaks[name] = self.peaks[name] = outcome.peak_bytes
        return self.cases[name]

    def summary(self):
        """The most memory that a damaged input took, as a share of what the honest one takes."""
        return "peak memory in parts of the honest input's: " + ", ".join(
            f"{name} {self.peaks[name] / self.honest_peaks[name]:.2f}" for name in self.cases)

    def try_seed(self, seed):
        """One damaged input for each reader; None, or what was found."""
        reports = [self._try(name, seed) for name in self.readers if self._has_a_turn(name, seed)]
        reports = [report for report in reports if report]
        return "\n".join(reports) or None

    def _has_a_turn(self, name, seed):
        return not (self.all_readers and name.startswith(SELDOM) and seed % SELDOM_EVERY)

    def _try(self, name, seed):
        case = self._case(name)
        damaged = mutated(case.honest, random.Random(f"{name} {seed}"))
        ended = self.programs.run(case.command(damaged))
        self.counts[name] += 1
        fault = None
        if ended.code is None:
            fault = f"it did not end within {LIMIT_S} s"
        elif ended.code == INTERRUPTED and case.words[0] == "resume":
            pass  # damage to a number of rounds makes a long run of a short one; it ends when it is asked to
        elif ended.code not in (0, 1, 2):
            fault = f"it ended with code {ended.code}: {ended.errors[-600:]}"
        elif ended.code not in (0, INTERRUPTED) and "error: " not in ended.errors:
            fault = f"it ended with code {ended.code} and gave no reason: {ended.errors[-300:]}"
        elif ended.peak_bytes > max(2 * self.honest_peaks[name], self.peaks[name]):
            fault = f"it took {ended.peak_bytes >> 20} MiB, and the honest input {self.honest_peaks[name] >> 20} MiB"
        self.peaks[name] = max(self.peaks[name], ended.peak_bytes)
        if not fault:
            return None
        self.counts["found"] += 1
        kept = os.path.join(self.folder, f"found-{name}-{seed}")
        with open(kept, "wb") as file:
            file.write(damaged)
        return f"{name}, seed {seed}: {fault}\n  the bytes are in {kept}"

    def close(self):
        self.programs.close()
