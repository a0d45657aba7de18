"""Loads exported programs in one process, in which every tensor ends at an inaccessible page. Of 11 programs, one has
changed JSON, tensors or entries, and ten have a call of an operator with changed arguments. Each must be accepted or
rejected with a reason, within the limits of time and memory and without a crash. Build the target `program_trials`
first."""
import os
import random
import resource
import subprocess

from program_draws import drawn_archive, drawn_call, packed, read_entries
from reader_cases import MODULE
from started_programs import built_library

ADDRESSES_BYTES = 16 << 30
PEAK_BYTES = 3 << 30  # memory of LibTorch, the budget of 1 GiB and the memory of oneDNN and MKL
RESTART_AFTER = 2000  # programs; the peak memory covers all of them


class ProgramSearch:
    seeds_at_once = 110

    def __init__(self, program, folder):
        self.trials = os.path.join(os.path.dirname(program), "program_trials")
        if not os.path.exists(self.trials):
            raise SystemExit(f"{self.trials} is missing; build the target program_trials")
        self.folder, self.honest = folder, read_entries(MODULE)
        self.guard = built_library("guarded_memory", folder)
        self.counts = {"archives": 0, "calls": 0, "taken": 0, "refused": 0, "found": 0, "MB at most": 0}
        self.process, self.tried = None, 0
        if (answer := self._answer_to(packed(self.honest))) != "taken":
            raise SystemExit(f"the honest program is not taken: {answer}")

    def _start(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES_BYTES, ADDRESSES_BYTES))
        environment = {**os.environ, "LD_PRELOAD": self.guard or ""}
        self.process = subprocess.Popen([self.trials], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=environment, preexec_fn=limit)
        self.tried = 0

    def _end(self):
        """Ends the process. Returns its exit code, negative for a signal."""
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass
        code = self.process.wait()
        self.process = None
        return code

    def _peak_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))

    def _answer_to(self, content):
        """The line that the process prints for a program, or the signal that ended it."""
        if self.process is None:
            self._start()
        try:
            self.process.stdin.write(b"%d\n%b" % (len(content), content))
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline().decode("utf-8", "replace").strip()
        self.tried += 1
        if not answer:
            return f"the process ended with code {self._end()}"
        return answer

    def try_seed(self, seed, count=1):
        """Tries a program for each of `count` seeds. Returns a description of the faults, or None."""
        faults = [fault for number in range(seed, seed + count) if (fault := self._fault_of(number))]
        if self.process and not faults:
            peak = self._peak_bytes()
            self.counts["MB at most"] = max(self.counts["MB at most"], peak >> 20)
            if peak > PEAK_BYTES:
                faults.append(f"seeds {seed} to {seed + count - 1}: the process took {peak >> 20} MB")
                self.counts["found"] += 1
        if self.process and self.tried > RESTART_AFTER:
            self._end()
        return "\n".join(faults) or None

    def _fault_of(self, seed):
        is_archive, draw = seed % 11 == 0, random.Random(seed)
        content = packed((drawn_archive if is_archive else drawn_call)(self.honest, draw))
        answer = self._answer_to(content)
        self.counts["archives" if is_archive else "calls"] += 1
        is_sound = answer == "taken" or (answer.startswith("refused: ") and len(answer) > len("refused: "))
        if is_sound:
            self.counts[answer.split(":")[0]] += 1
            return None
        self.counts["found"] += 1
        path = os.path.join(self.folder, f"found-{seed}.pt2")
        with open(path, "wb") as file:
            file.write(content)
        return f"seed {seed}: {answer}\n  the file is {path}"

    def close(self):
        if self.process:
            self._end()
