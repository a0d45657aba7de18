"""Runs one scenario in several ways, which must agree in digest, model and metrics, or in the failure."""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
from dataclasses import dataclass

from free_port import free_port

LIMIT_S = 120
ALLOWED_CODES = {0, 1, 2}
INTERRUPTED = 130  # exit code of an interrupted run


@dataclass
class Ended:
    code: int         # exit code; negative: a signal; None: timeout
    errors: str
    seconds: float
    facts: dict       # results that must be equal in all ways

    def fault(self):
        """Describes a fault that no run may have; None if there is none."""
        if self.code in (None, INTERRUPTED):
            return f"it did not end within {LIMIT_S} s"
        if self.code not in ALLOWED_CODES:
            return f"it ended with code {self.code}: {self.errors[-500:]}"
        if self.code != 0 and "error: " not in self.errors:
            return f"it ended with code {self.code} and gave no reason: {self.errors[-500:]}"
        return None


def facts_of(folder):
    """Results in a run folder that must not depend on the way in which the run was computed."""
    facts = {}
    try:
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        for name in ("status", "error", "run_digest", "rounds", "client_rounds", "late_uploads", "dropped",
                     "virtual_seconds", "upload_bytes", "download_bytes", "final_accuracy", "forgetting"):
            facts[name] = summary.get(name)
    except (OSError, ValueError) as why:
        facts["summary"] = type(why).__name__
    for name in ("model.safetensors", "metrics.jsonl", "accuracy_matrix.csv", "accuracy_per_class.csv"):
        try:
            with open(os.path.join(folder, name), "rb") as file:
                facts[name] = hashlib.md5(file.read()).hexdigest()
        except OSError:
            facts[name] = None
    return facts


def _finished(folder, outcome):
    facts = {"code": outcome.code, **(facts_of(folder) if outcome.code in (0, 1) else {})}
    return Ended(outcome.code, outcome.errors, outcome.seconds, facts)


class Way:
    """Number of threads, settings of [worker] and of memory limits that must not change results, number of kills, and
    number of nodes."""

    def __init__(self, threads, settings=(), kills=0, seed=0, nodes=0):
        self.threads, self.settings, self.kills, self.seed, self.nodes = threads, list(settings), kills, seed, nodes

    def __str__(self):
        text = f"--threads {self.threads}" + "".join(f" --set {setting}" for setting in self.settings)
        text += f" with {self.nodes} nodes" if self.nodes else ""
        return text + (f", killed {self.kills} times (seed {self.seed})" if self.kills else "")

    def run(self, programs, scenario, folder, undisturbed_s=1.0):
        """Runs the scenario and returns its outcome."""
        shutil.rmtree(folder, ignore_errors=True)
        sets = [word for setting in self.settings for word in ("--set", setting)]
        words = ["run", scenario, "--quiet", "--out", folder, "--threads", str(self.threads), *sets]
        if self.nodes:
            return self._run_with_nodes(programs, words, folder)
        if self.kills:
            return self._run_with_kills(programs, words, folder, undisturbed_s)
        return _finished(folder, programs.run(words))

    def _run_with_nodes(self, programs, words, folder):
        """Runs the scenario with nodes. A node that ends by a signal is a fault of the run."""
        address = f"127.0.0.1:{free_port()}"
        nodes = [subprocess.Popen([programs.program, "node", "--join", address, "--threads", "1", "--idle-timeout",
                                   "1 min"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for _ in range(self.nodes)]
        outcome = programs.run([*words, "--accept", address, "--workers-min", str(self.nodes), "--set",
                                "worker.join_timeout=\"2 min\""])
        codes = []
        for node in nodes:
            if outcome.code != 0 and node.poll() is None:
                node.kill()
                node.wait()
            else:
                codes.append(node.wait())
        ended = _finished(folder, outcome)
        if any(code < 0 for code in codes):
            ended.code, ended.errors = min(codes), f"a node ended with code {min(codes)}"
        return ended

    def _run_with_kills(self, programs, words, folder, undisturbed_s):
        draw = random.Random(self.seed)
        words += ["--set", "checkpoint.every=1", "--set", "checkpoint.force=true"]
        for _ in range(self.kills):
            seconds = draw.uniform(0.1, 1.1) * max(undisturbed_s, 0.02)
            ended = programs.run(words, limit_s=seconds, ended_by=signal.SIGKILL)
            if ended.code != -signal.SIGKILL:  # ended by itself
                return _finished(folder, ended)
            if os.path.exists(os.path.join(folder, "scenario.toml")):
                words = ["resume", folder, "--quiet", "--threads", str(draw.choice([1, 2, 3]))]
        return _finished(folder, programs.run(words))


def drawn_ways(seed):
    """Ways of running a scenario that must have equal results. The first has no special settings. Every third seed has
    kills, and every fourth has nodes."""
    draw = random.Random(seed)
    wide = [f"worker.shards={draw.choice([1, 2, 3, 7])}", f"worker.fused_clients_max={draw.choice([1, 2, 3, 7])}"]
    tight = ['worker.lookahead_memory="1 B"', 'clients.memory_limit="1 B"', f"worker.count={draw.choice([1, 2, 4])}"]
    ways = [Way(1), Way(draw.choice([2, 3, 4]), draw.choice([wide, tight, wide + tight]))]
    if seed % 3 == 0:
        ways.append(Way(draw.choice([1, 2]), draw.choice([[], wide]), kills=draw.choice([1, 2, 3]), seed=seed))
    if seed % 4 == 0:
        patient = ['worker.node_timeout="1 min"']  # prevents timeouts of nodes on slow machines
        ways.append(Way(1, draw.choice([[], wide]) + patient, nodes=2))
    return ways


def difference(first, other):
    """Returns the names of the results that differ; empty if all are equal."""
    return sorted(name for name in first.facts.keys() | other.facts.keys()
                  if first.facts.get(name) != other.facts.get(name))
