"""Runs `mneme validate` on exported programs with changed JSON, tensors, entries or calls. Each must be
accepted or rejected with a reason within the time limit, without touching a file or crashing the probing process."""
import os
import random

from program_draws import drawn_program, packed, read_entries
from reader_cases import IMAGES, MODULE, _scenario
from started_programs import StartedPrograms

LIMIT_S = 120
ADDRESSES_BYTES = 24 << 30  # above the sandbox's own limits
TOGETHER = 8


class ModuleSearch:
    seeds_at_once = TOGETHER

    def __init__(self, program, folder):
        self.folder, self.work = folder, os.path.join(folder, "work")
        os.makedirs(self.work, exist_ok=True)
        self.programs = StartedPrograms(program, folder, LIMIT_S, ADDRESSES_BYTES)
        self.counts = {"modules": 0, "taken": 0, "refused": 0, "found": 0}
        self.honest = read_entries(MODULE)
        outcome = self._validated([0], [packed(self.honest)])
        if outcome.code != 0:
            raise SystemExit(f"the honest module is refused: {outcome.errors}")

    def _validated(self, seeds, files):
        scenarios = []
        for seed, content in zip(seeds, files):
            place = os.path.join(self.work, str(seed))
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, "net.pt2"), "wb") as file:
                file.write(content)
            scenarios.append(os.path.join(place, "s.toml"))
            with open(scenarios[-1], "w", encoding="utf-8") as file:
                file.write(_scenario(IMAGES, 'module = "net.pt2"'))
        return self.programs.run(["validate", *scenarios])

    def _files(self):
        return sorted(os.path.join(at, name) for at, _, names in os.walk(self.work) for name in names)

    def try_seed(self, seed, count=1):
        """Tries a module for each of `count` seeds. Returns a description of the fault, or None."""
        seeds = list(range(seed, seed + count))
        files = [drawn_program(self.honest, random.Random(number)) for number in seeds]
        ended = self._validated(seeds, files)
        self.counts["modules"] += count
        taken = sum(line.endswith(": ok") for line in ended.errors.splitlines())
        self.counts["taken"] += taken
        self.counts["refused"] += count - taken
        fault = self._fault_of(ended, seeds)
        if not fault:
            return None
        self.counts["found"] += 1
        for number, content in zip(seeds, files):
            with open(os.path.join(self.folder, f"found-{number}.zip"), "wb") as file:
                file.write(content)
        return f"seeds {seed} to {seeds[-1]}: {fault}\n  the files are {self.folder}/found-*.zip"

    def _fault_of(self, ended, seeds):
        if ended.code not in (0, 2):
            return f"it ended with code {ended.code}: {ended.errors[-600:]}"
        if any(not name.endswith(("net.pt2", "s.toml")) for name in self._files()):
            return "a file was written"
        if "ended by signal" in ended.errors:
            return f"a trial crashed: {ended.errors[-600:]}"
        for seed in seeds:
            place = os.path.join(self.work, str(seed)) + os.sep
            lines = [line for line in ended.errors.splitlines() if place in line]
            if not any("error: " in line or line.endswith(": ok") for line in lines):
                return f"nothing was said of {place}: {ended.errors[-300:]}"
        return None

    def close(self):
        self.programs.close()
