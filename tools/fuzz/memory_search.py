"""Some request for memory is refused, or all from there on: the run goes on, or ends with a reason and can go on."""
import os
import random
import shutil

from disturbed_runs import SCENARIOS, DisturbedRuns

LEAST_BYTES = [1, 4096]  # a tensor's or a vector's, as a rule, from the second on
TIMES = [1, 20, 10**9]
PLANNED = 20_000


class MemorySearch(DisturbedRuns):
    """Which request has a number differs from run to run where threads ask at once: a seed says about where."""

    def __init__(self, program, folder):
        super().__init__(program, folder, "failing_memory")
        log, draw = os.path.join(folder, "requests"), random.Random(1)
        counted = {(name, least): self._undisturbed(name, self._orders(0, least, 1, log), log)
                   for name in SCENARIOS for least in LEAST_BYTES}
        for _ in range(PLANNED):
            name, least, times = draw.choice(SCENARIOS), draw.choice(LEAST_BYTES), draw.choice(TIMES)
            at = 1 + draw.randrange(counted[name, least])
            self.plan.append((name, "of", least, "bytes or more, request", at, "and so many:", times))

    def _orders(self, at, least, times, log=""):
        return [f"MNEME_MEMORY_AT={at}", f"MNEME_MEMORY_LEAST={least}", f"MNEME_MEMORY_TIMES={times}",
                f"MNEME_MEMORY_LOG={log}"]

    def _fault_of(self, name, _of, least, _request, at, _many, times):
        out = self._fresh_folder()
        try:
            ended = self.programs.run(self._words(name, out), self._orders(at, least, times))
            return self._end_of(name, out, (ended.code, ended.errors))
        finally:
            shutil.rmtree(os.path.dirname(out))
