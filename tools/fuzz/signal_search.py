"""Signals come at a random moment of a run: it goes on, or ends in order or at once, and can go on later."""
import os
import random
import shutil
import signal
import subprocess
import time

from disturbed_runs import SCENARIOS, DisturbedRuns

LIMIT_S = 60
PLANNED = 20_000
INTERRUPTED = 130
# What is sent, and how a run may end besides with 0.
SIGNALS = {"int": [INTERRUPTED], "term": [INTERRUPTED], "int int": [INTERRUPTED], "term int": [INTERRUPTED],
           "hup": [INTERRUPTED, -signal.SIGHUP], "quit": [-signal.SIGQUIT], "pipe": [-signal.SIGPIPE],
           "usr1": [-signal.SIGUSR1], "alrm": [-signal.SIGALRM], "stop cont": [], "stop cont term": [INTERRUPTED],
           "winch": [], "chld": [], "kill": [-signal.SIGKILL]}


class SignalSearch(DisturbedRuns):
    def __init__(self, program, folder):
        super().__init__(program, folder)
        draw = random.Random(1)
        seconds = {}
        for name in SCENARIOS:
            began = time.monotonic()
            self._undisturbed(name)
            seconds[name] = time.monotonic() - began
        for _ in range(PLANNED):
            name = draw.choice(SCENARIOS)
            self.plan.append((name, "gets", draw.choice(sorted(SIGNALS)), "after",
                              round(draw.uniform(0.0, 1.1) * seconds[name], 3), "s"))

    def _fault_of(self, name, _gets, kinds, _after, seconds, _s):
        out = self._fresh_folder()
        try:
            process = subprocess.Popen([self.program, *self._words(name, out)], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, errors="replace")
            time.sleep(seconds)
            for kind in kinds.split():
                process.send_signal(getattr(signal, "SIG" + kind.upper()))
                time.sleep(0.02)
            ended = self._ended(process)
            return self._end_of(name, out, ended, self._allowed(kinds, out))
        finally:
            shutil.rmtree(os.path.dirname(out))

    @staticmethod
    def _allowed(kinds, out):
        """A process whose libraries are being loaded ends by the signal itself, and has made nothing yet."""
        early = [] if os.path.exists(out) else [-getattr(signal, "SIG" + kind.upper()) for kind in kinds.split()]
        return SIGNALS[kinds] + early

    @staticmethod
    def _ended(process):
        try:
            errors = process.communicate(timeout=LIMIT_S)[1]
            return process.returncode, errors
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None, ""
