"""Starts the program thousands of times. With a C compiler, each start forks a process that has loaded the
libraries."""
import functools
import os
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
OUT_OF_TIME = 999
ADDRESSES_BYTES = 8 << 30  # address space of a run


@functools.lru_cache(maxsize=None)
def built_library(name, folder):
    """Builds a preloadable library from the C source of this name in this folder, once per process and folder; None
    without a C compiler."""
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, name + ".so")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", out, os.path.join(HERE, name + ".c"), "-ldl"],
                   check=True)
    return out


@dataclass
class Outcome:
    code: int        # exit code; negative: a signal; None: timeout
    errors: str      # stdout and stderr
    peak_bytes: int  # peak memory
    seconds: float


class StartedPrograms:
    """@param before libraries to preload first, such as a sanitizer's, or one that makes calls fail
    @param environment, cores, folder_of_runs for all runs; None: those of this process"""

    def __init__(self, program, folder, limit_s, addresses_bytes=0, before="", environment=None, cores=None,
                 folder_of_runs=None):
        self.program, self.limit_s, self.addresses = program, limit_s, addresses_bytes
        self.environment, self.cores = environment if environment is not None else dict(os.environ), cores
        os.makedirs(folder, exist_ok=True)
        self.folder_of_runs = folder_of_runs
        self.errors = os.path.join(folder, f"said-{os.getpid()}-{id(self)}")
        self.library = built_library("fork_server", folder)
        self.preloaded = " ".join(name for name in (before, self.library) if name)
        self.server = None

    def run(self, words, settings=(), limit_s=None, ended_by=signal.SIGTERM):
        """Runs the program with these arguments and returns its outcome.
        @param settings environment variables, "NAME=VALUE" @param ended_by signal sent at the time limit"""
        began = time.monotonic()
        way = self._by_server if self.library else self._alone
        code, peak = way(words, list(settings), limit_s or self.limit_s, ended_by)
        return self._outcome(code, peak, self.errors, time.monotonic() - began)

    def run_apart(self, words, settings=()):
        """Like subprocess.run() with text captured from stdout and stderr separately. @pre there is a C compiler"""
        output = self.errors + "-output"
        code, _ = self._copy(output, words, list(settings), self.limit_s, signal.SIGTERM)
        if code == OUT_OF_TIME:
            raise subprocess.TimeoutExpired([self.program, *words], self.limit_s)
        said = []
        for name in (output, self.errors):
            with open(name, encoding="utf-8") as file:
                said.append(file.read())
        return subprocess.CompletedProcess([self.program, *words], code, *said)

    @staticmethod
    def _outcome(code, peak, said_in, seconds):
        with open(said_in, "rb") as file:
            said = file.read().decode("utf-8", "replace")
        return Outcome(None if code == OUT_OF_TIME else code, said, peak, seconds)

    def run_several(self, commands, limit_s=None):
        """Runs commands one after the other in a forked process and returns their outcomes. If the process ends early,
        another one continues with the next command."""
        if not self.library:
            return [self.run(words, limit_s=limit_s) for words in commands]
        began = time.monotonic()
        files = [f"{self.errors}-{at}" for at in range(len(commands))]
        texts = [text for file, words in zip(files, commands) for text in (file, str(len(words)), *words)]
        self._order("several", [str(limit_s or self.limit_s), str(int(signal.SIGTERM)), str(self.addresses), *texts])
        answers = [self._answer() for _ in commands]
        seconds = (time.monotonic() - began) / len(commands)
        return [self._outcome(code, peak, file, seconds) for (code, peak), file in zip(answers, files)]

    def prepare(self, words):
        """Runs a command in the parent process, so that values that it computes once per process exist in all forks."""
        if not self.library:
            return self.run(words)
        self._order("here", ["0", "0", "0", self.errors, str(len(words)), *words])
        return self._outcome(*self._answer(), self.errors, 0.0)

    def close(self):
        if self.server:
            self.server.stdin.close()
            self.server.stdout.close()
            self.server.wait()
            self.server = None

    def _by_server(self, words, settings, limit_s, ended_by):
        return self._copy(self.errors, words, settings, limit_s, ended_by)

    def _copy(self, output, words, settings, limit_s, ended_by):
        self._order("one", [str(limit_s), str(int(ended_by)), str(self.addresses), output, self.errors,
                            str(len(settings)), *settings, *words])
        return self._answer()

    def _order(self, kind, texts):
        if self.server is None:
            environment = {**self.environment, "LD_PRELOAD": self.preloaded, "MNEME_FORK_SERVER": "1"}
            self.server = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                           env=environment, cwd=self.folder_of_runs, preexec_fn=self._keep_to_cores)
        order = b"".join(os.fsencode(text) + b"\0" for text in texts)
        self.server.stdin.write(f"{kind} {len(order)}\n".encode() + order)
        self.server.stdin.flush()

    def _answer(self):
        """Exit code and peak memory in bytes of a command."""
        answer = self.server.stdout.readline().split()
        if len(answer) != 2:
            raise RuntimeError(f"{self.program} does not start copies of itself: {answer}")
        return int(answer[0]), int(answer[1]) * 1024

    def _alone(self, words, settings, limit_s, ended_by):
        environment = {**self.environment, **dict(setting.split("=", 1) for setting in settings)}
        if self.preloaded:
            environment["LD_PRELOAD"] = self.preloaded
        with open(self.errors, "wb") as said:
            process = subprocess.Popen([self.program, *words], stdin=subprocess.DEVNULL, stdout=said,
                                       stderr=said, env=environment, cwd=self.folder_of_runs,
                                       preexec_fn=self._limit)
        try:
            process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.send_signal(ended_by)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return OUT_OF_TIME, 0
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # maximum of all children so far
        return process.returncode, peak

    def _keep_to_cores(self):
        if self.cores:
            os.sched_setaffinity(0, self.cores)

    def _limit(self):
        self._keep_to_cores()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.addresses:
            resource.setrlimit(resource.RLIMIT_AS, (self.addresses, self.addresses))
