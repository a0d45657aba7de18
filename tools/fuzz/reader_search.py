"""Damaged inputs for every reader: each ends with code 0, 1 or 2 and a reason, soon, and in little memory."""
import os
import random

from mutations import mutated
from reader_cases import CASES
from started_programs import StartedPrograms

LIMIT_S = 60
INTERRUPTED = 130
ADDRESSES_BYTES = 4 << 30
TOGETHER = 20  # damaged inputs that one process reads, where its command takes several
SELDOM, SELDOM_EVERY = "forged_memories_of_", 20  # readers that take seconds have a turn with every so many seeds


class ReaderSearch:
    seeds_at_once = TOGETHER

    def __init__(self, program, folder, only=None, limited=True, before=""):
        self.folder, self.all_readers = folder, only is None
        self.programs = StartedPrograms(program, folder, LIMIT_S, ADDRESSES_BYTES if limited else 0, before)
        self.program, self.cases = program, {}  # those that have had a turn: places for so many damaged inputs
        self.counts = {name: 0 for name in CASES if only is None or name in only}
        self.readers = list(self.counts)
        self.counts["found"] = 0
        self.honest_peaks, self.peaks = {}, {}  # bytes, by reader

    def _places(self, name):
        if name not in self.cases:
            made = CASES[name]
            places = [made(os.path.join(self.folder, name, "0"), self.program)]
            if places[0].takes_several:
                places += [made(os.path.join(self.folder, name, str(at)), self.program) for at in range(1, TOGETHER)]
            outcome = self._read(places, [place.honest for place in places])
            if outcome.code != 0:
                raise SystemExit(f"the honest input of {name} is refused: {outcome.errors}")
            self.cases[name] = places
            self.honest_peaks[name] = self.peaks[name] = outcome.peak_bytes
        return self.cases[name]

    def _read(self, places, inputs):
        """One process reads an input at each place."""
        words = [place.command(damaged) for place, damaged in zip(places, inputs)]
        return self.programs.run(words[0] + [word for more in words[1:] for word in more[1:]])

    def summary(self):
        """The most memory that a damaged input took, as a share of what the honest one takes."""
        return "peak memory in parts of the honest input's: " + ", ".join(
            f"{name} {self.peaks[name] / self.honest_peaks[name]:.2f}" for name in self.cases)

    def try_seed(self, seed, count=1):
        """One damaged input for each reader and each of so many seeds; None, or what was found."""
        reports = []
        for name in self.readers:
            seeds = [at for at in range(seed, seed + count) if self._has_a_turn(name, at)]
            if seeds:
                reports += self._try(name, seeds)
        return "\n".join(reports) or None

    def _has_a_turn(self, name, seed):
        return not (self.all_readers and name.startswith(SELDOM) and seed % SELDOM_EVERY)

    def _try(self, name, seeds):
        places = self._places(name)
        if len(seeds) > len(places):
            return [report for seed in seeds for report in self._try(name, [seed])]
        inputs = [mutated(places[0].honest, random.Random(f"{name} {seed}")) for seed in seeds]
        before = self.peaks[name]
        fault = self._fault_of(name, places, inputs)
        if fault and len(seeds) > 1:
            self.peaks[name] = before
            alone = [report for seed in seeds for report in self._try(name, [seed])]
            return alone or [f"{name}, seeds {seeds[0]} to {seeds[-1]} together, and none of them alone: {fault}"]
        self.counts[name] += len(seeds)
        if not fault:
            return []
        self.counts["found"] += 1
        kept = os.path.join(self.folder, f"found-{name}-{seeds[0]}")
        with open(kept, "wb") as file:
            file.write(inputs[0])
        return [f"{name}, seed {seeds[0]}: {fault}\n  the bytes are in {kept}"]

    def _fault_of(self, name, places, inputs):
        ended = self._read(places, inputs)
        before, self.peaks[name] = self.peaks[name], max(self.peaks[name], ended.peak_bytes)
        if ended.code is None:
            return f"it did not end within {LIMIT_S} s"
        if ended.code == INTERRUPTED and places[0].words[0] == "resume":
            return None  # damage to a number of rounds makes a long run of a short one; it ends when it is asked to
        if ended.code not in (0, 1, 2):
            return f"it ended with code {ended.code}: {ended.errors[-600:]}"
        if ended.code != 0:
            silent = [place for place, _ in zip(places, inputs) if not place.is_answered(ended.errors, len(inputs))]
            if silent:
                return f"it ended with code {ended.code} and gave no reason: {ended.errors[-300:]}"
        if ended.peak_bytes > max(2 * self.honest_peaks[name], before):
            return f"it took {ended.peak_bytes >> 20} MiB, and the honest input {self.honest_peaks[name] >> 20} MiB"
        return None

    def close(self):
        self.programs.close()
