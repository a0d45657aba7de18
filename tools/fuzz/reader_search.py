"""Runs every reader on damaged inputs. Each must end with code 0, 1 or 2 and a reason, in limited time and
memory."""
import os
import random

from mutations import mutated
from reader_cases import CASES, ReaderCase
from started_programs import StartedPrograms

INTERRUPTED = 130
ADDRESSES_BYTES = 4 << 30
TOGETHER = 20  # damaged inputs per process, at most: in one command that takes several, or in consecutive commands
FORGED, FORGED_EVERY = "forged_memories_of_", 4  # one case per method; each is used only for every fourth seed


class ReaderSearch:
    def __init__(self, program, folder, only=None, limited=True, before="", count=TOGETHER):
        self.seeds_at_once = min(TOGETHER, count)
        self.folder, self.all_readers = folder, only is None
        self.programs = StartedPrograms(program, folder, ReaderCase.limit_s, ADDRESSES_BYTES if limited else 0, before)
        self.program, self.cases = program, {}  # cases used so far, with a folder per damaged input
        self.counts = {name: 0 for name in CASES if only is None or name in only}
        self.readers = list(self.counts)
        self.counts |= {"long runs": 0, "found": 0}
        self.honest_peaks, self.peaks = {}, {}  # bytes, by reader

    def _places(self, name):
        if name not in self.cases:
            made = CASES[name]
            places = [made(os.path.join(self.folder, name, "0"), self.program)]
            folders = [os.path.join(self.folder, name, str(at)) for at in range(1, self.seeds_at_once)]
            if places[0].takes_several:
                places += [made(folder, self.program) for folder in folders]
            elif places[0].runs:
                places += [places[0].beside(folder) for folder in folders]
                self.programs.prepare(places[0].command(places[0].honest))
            outcomes = self._read(places, [place.honest for place in places])
            for outcome in outcomes:
                if outcome.code != 0:
                    raise SystemExit(f"the honest input of {name} is refused: {outcome.errors}")
            self.cases[name] = places
            self.honest_peaks[name] = self.peaks[name] = max(outcome.peak_bytes for outcome in outcomes)
        return self.cases[name]

    def _read(self, places, inputs):
        """Reads an input at each place. Returns one outcome if a single command reads all inputs, otherwise one per
        input.
        """
        words = [place.command(damaged) for place, damaged in zip(places, inputs)]
        if places[0].runs:
            return self.programs.run_several(words, places[0].limit_s)
        return [self.programs.run(words[0] + [word for more in words[1:] for word in more[1:]])]

    def summary(self):
        """Peak memory of damaged inputs relative to the valid input."""
        return "peak memory in parts of the honest input's: " + ", ".join(
            f"{name} {self.peaks[name] / self.honest_peaks[name]:.2f}" for name in self.cases)

    def try_seed(self, seed, count=1):
        """Tries one damaged input per reader for each of `count` seeds. Returns a description of the fault, or None."""
        reports = []
        for name in self.readers:
            seeds = [at for at in range(seed, seed + count) if self._has_a_turn(name, at)]
            if seeds:
                reports += self._try(name, seeds)
        return "\n".join(reports) or None

    def _has_a_turn(self, name, seed):
        return not (self.all_readers and name.startswith(FORGED) and seed % FORGED_EVERY)

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
        outcomes = self._read(places, inputs)
        if len(outcomes) == 1:
            return self._fault_in(name, outcomes[0], places[:len(inputs)])
        faults = [self._fault_in(name, outcome, [place]) for outcome, place in zip(outcomes, places)]
        return next(filter(None, faults), None)

    def _fault_in(self, name, ended, places):
        """Checks the outcome of a command that read the inputs at these places. Returns a description of the fault, or
        None."""
        before, self.peaks[name] = self.peaks[name], max(self.peaks[name], ended.peak_bytes)
        if ended.code is None:
            return f"it did not end within {places[0].limit_s} s"
        if ended.code == INTERRUPTED and places[0].runs:
            self.counts["long runs"] += 1
            return None
        if ended.code not in (0, 1, 2):
            return f"it ended with code {ended.code}: {ended.errors[-600:]}"
        if ended.code == 0:
            if wrong := next(filter(None, (place.wrong_result() for place in places)), None):
                return wrong
        elif [place for place in places if not place.is_answered(ended.errors, len(places))]:
            return f"it ended with code {ended.code} and gave no reason: {ended.errors[-300:]}"
        if ended.peak_bytes > max(2 * self.honest_peaks[name], before):
            return f"it took {ended.peak_bytes >> 20} MiB, and the honest input {self.honest_peaks[name] >> 20} MiB"
        return None

    def close(self):
        self.programs.close()
