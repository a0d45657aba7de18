"""Starts the measured programs and reads their output."""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading

import figures
import workloads

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from free_port import free_port  # noqa: E402

LOOP_SECONDS, LOOP_QUICK_SECONDS = 1.5, 0.2
CHOICE_SECONDS, CHOICE_QUICK_SECONDS = 0.5, 0.05  # per candidate width of a stacked loop
LIMIT_SECONDS, LIMIT_QUICK_SECONDS = 0.4, 0.05    # per size of a product
SAME_WORK = 1e-5         # relative difference of norms; nets with dropout draw their own masks
SAME_WORK_DROPOUT = 1e-2


class Failure(Exception):
    """Error of a measured program; ends the benchmark with exit code 1 and this message."""


class Bench:
    """Paths of the programs, and the duration of measurements."""

    def __init__(self, root, programs, quick, repeat, say):
        self.root, self.programs, self.quick, self.repeat, self.say = root, programs, quick, repeat, say
        self.environment = None  # environment of the measured programs; None: inherited

    def choose(self, thorough, quick):
        return quick if self.quick else thorough

    # -- Programs ------------------------------------------------------------------------------------------------------

    def output_of(self, program, *arguments):
        command = [os.path.join(self.programs, program), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}\nended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextlib.contextmanager
    def node(self, join=None, accept=None):
        """Options of a run that waits for a node with one worker. The node serves several runs. join, accept: the
        addresses to which the node connects and on which the run listens. They are equal unless a relay connects the
        two."""
        accept = accept or f"127.0.0.1:{free_port()}"
        program = os.path.join(self.programs, "mneme")
        ended = threading.Event()

        def serve():
            while not ended.is_set():
                with subprocess.Popen([program, "node", "--join", join or accept, "--threads", "1"], cwd=self.root,
                                      stdout=subprocess.DEVNULL) as process:
                    while process.poll() is None and not ended.wait(0.05):
                        pass
                    process.kill()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield ("--accept", accept, "--workers-min", "1")
        finally:
            ended.set()
            thread.join()

    def summary(self, scenario, rounds, threads=1, overrides=(), options=()):
        """Runs a scenario and returns its summary.json."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "run")
            settings = [word for text in (f"rounds.per_task={rounds}", *overrides) for word in ("--set", text)]
            self.output_of("mneme", "run", scenario, "--threads", threads, "--quiet", "--out", out, *settings, *options)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                return json.load(file)

    def ours(self, scenario, rounds, threads=1, overrides=()):
        """Measures a sample: the summaries of a short and a long run. rounds: (few, many)"""
        return figures.our_sample(*(self.summary(scenario, n, threads, overrides) for n in rounds))

    def our_training(self, work, threads=1, overrides=(), options=()):
        """Measures a sample of mneme on a workload, after checking that the model has the size of the loops' models."""
        rounds = self.choose((work.few_rounds, work.many_rounds), work.quick_rounds)
        few, many = (self.summary(work.scenario, n, threads, overrides, options) for n in rounds)
        figures.same_model(few, workloads.parameters(work))
        return figures.our_sample(few, many)

    def loop(self, work, name, width, seconds, device="cpu"):
        """Runs a loop of bench_loops and returns its output."""
        return json.loads(self.output_of(
            "bench_loops", name, "--shape", ",".join(map(str, work.shape)), "--hidden", work.hidden,
            "--clients", work.clients, "--rows", work.rows, "--cohort", work.cohort, "--batch", work.batch,
            "--learning-rate", workloads.LEARNING_RATE, "--width", width, "--seconds", seconds, "--device", device))

    def limits(self):
        return json.loads(self.output_of("bench_loops", "limits", "--seconds",
                                         self.choose(LIMIT_SECONDS, LIMIT_QUICK_SECONDS)))

    # -- Benchmarks ----------------------------------------------------------------------------------------------------

    def fastest_widths(self, work):
        """Returns [(loop, width)] with the fastest width of each loop. First checks that all loops do the same
        work."""
        chosen, norms = [], {}
        for loop in work.loops:
            widths = [w for w in loop.widths if work.cohort % w == 0]
            rates = {}
            for width in widths[-1:] if self.quick else widths:
                printed = self.loop(work, loop.name, width, self.choose(CHOICE_SECONDS, CHOICE_QUICK_SECONDS))
                rates[width] = figures.loop_sample(printed)["cpu_rate"]
                norms[f"{loop.name} {width}"] = printed["first_norm"]
            chosen.append((loop, max(rates, key=rates.get)))
            self.say(f"{work.name}: {loop.label}: {chosen[-1][1]} wide")
        figures.agree(norms, SAME_WORK if work.hidden else SAME_WORK_DROPOUT)
        return chosen

    def training(self, work):
        """Measures B1, B2 or B2c: all programs in turns, so that disturbances affect all of them."""
        loops = [(loop, width, []) for loop, width in self.fastest_widths(work)]
        samples = {"ours": [], "limits": [], "loops": loops}
        for turn in range(self.repeat):
            self.say(f"{work.name}: {turn + 1} of {self.repeat}")
            samples["ours"].append(self.our_training(work))
            for loop, width, measured in loops:
                printed = self.loop(work, loop.name, width, self.choose(LOOP_SECONDS, LOOP_QUICK_SECONDS))
                measured.append(figures.loop_sample(printed))
            samples["limits"].append(self.limits())
        result = figures.training_figures(work, samples, workloads.flops(work), workloads.memory_bytes(work))
        result["machine_limits"] = {key: figures.median(samples["limits"], key)
                                    for key in ("flops_per_second", "bytes_per_second")}
        return result

    def no_op(self):
        """Measures B3."""
        sizes = [(clients, []) for clients, _, _ in workloads.NO_OP_SIZES]
        rounds = self.choose(workloads.NO_OP_ROUNDS, workloads.NO_OP_QUICK_ROUNDS)
        for turn in range(self.repeat):
            self.say(f"b3: {turn + 1} of {self.repeat}")
            for (_, scenario, overrides), (_, samples) in zip(workloads.NO_OP_SIZES, sizes):
                samples.append(self.ours(scenario, rounds, overrides=overrides))
        return figures.no_op_figures(sizes, workloads)

    def no_wait(self):
        """Measures B5."""
        sizes = [(clients, []) for clients, _, _ in workloads.NO_WAIT_SIZES]
        steps = self.choose(workloads.NO_WAIT_STEPS, workloads.NO_WAIT_QUICK_STEPS)
        for turn in range(self.repeat):
            self.say(f"b5: {turn + 1} of {self.repeat}")
            for (_, scenario, overrides), (_, samples) in zip(workloads.NO_WAIT_SIZES, sizes):
                samples.append(self.ours(scenario, steps, overrides=overrides))
        return figures.no_wait_figures(sizes, workloads)

    def buffered(self):
        """Measures B6."""
        steps = self.choose(workloads.BUFFERED_STEPS, workloads.BUFFERED_QUICK_STEPS)
        waiting, flowing = [], []
        for turn in range(self.repeat):
            self.say(f"b6: {turn + 1} of {self.repeat}")
            waiting.append(self.our_training(workloads.B1))
            flowing.append(self.ours(workloads.BUFFERED_SCENARIO, steps))
        return figures.buffered_figures(waiting, flowing, workloads)

    def observers(self):
        """Measures B12."""
        rounds = self.choose(workloads.OBSERVERS_ROUNDS, workloads.OBSERVERS_QUICK_ROUNDS)
        samples = []
        for turn in range(self.repeat):
            self.say(f"b12: {turn + 1} of {self.repeat}")
            samples.append(figures.observers_sample(
                *([self.summary(workloads.OBSERVERS_SCENARIO, n, overrides=overrides) for n in rounds]
                  for overrides in ((), workloads.NO_OBSERVERS))))
        return figures.observers_figures(samples, workloads)

    def cores(self):
        """Measures B7."""
        measured = {name: {1: [], 2: []} for name in workloads.CORES_WANTED}
        for turn in range(self.repeat):
            self.say(f"b7: {turn + 1} of {self.repeat}")
            for name, by_threads in measured.items():
                for threads, samples in by_threads.items():
                    samples.append(self.our_training(workloads.TRAINING[name], threads))
        return figures.cores_figures(measured, workloads)

    def programs_stacked(self):
        """Measures B9."""
        measured = {name: {width: [] for width in workloads.PROGRAMS_WIDTHS} for name in workloads.PROGRAMS}
        seconds = self.choose(LOOP_SECONDS, LOOP_QUICK_SECONDS)
        for turn in range(self.repeat):
            self.say(f"b9: {turn + 1} of {self.repeat}")
            for name, by_width in measured.items():
                for width, samples in by_width.items():
                    printed = self.output_of("bench_programs", name, "--width", width, "--seconds", seconds)
                    samples.append(figures.program_sample(json.loads(printed)))
        return figures.programs_figures(measured, workloads)

    def sample(self, name, overrides=(), options=()):
        """Measures a sample of mneme on a workload, or on one of NETS."""
        if name in workloads.TRAINING:
            return self.our_training(workloads.TRAINING[name], overrides=overrides, options=options)
        scenario, own, rounds, quick_rounds = workloads.NETS[name]
        return figures.our_sample(*(self.summary(scenario, n, 1, (*own, *overrides), options)
                                    for n in self.choose(rounds, quick_rounds)))

    def nodes(self):
        """Measures B11. The node is killed after each run, and its output is ignored."""
        measured = {name: {"alone": [], "node": []} for name in workloads.NODES}
        links = {name: {"plain": [], "TLS": []} for name in measured}
        seconds = self.choose(LOOP_SECONDS, LOOP_QUICK_SECONDS)
        for turn in range(self.repeat):
            self.say(f"b11: {turn + 1} of {self.repeat}")
            for name, samples in measured.items():
                samples["alone"].append(self.sample(name))
                with self.node() as options:
                    samples["node"].append(self.sample(name, options=options))
                mib = workloads.message_mib(samples["alone"][-1]["upload_bytes"])
                for kind, found in links[name].items():
                    words = ["--tls"] if kind == "TLS" else []
                    found.append(json.loads(self.output_of("bench_link", "--mib", mib, "--seconds", seconds, *words)))
        return figures.nodes_figures(measured, links, workloads)

    def on_device(self, work, device):
        """Measures B1, B2 or B2c on a device and on the CPU, in turns: mneme, and the sequential loop."""
        places = (device, "cpu")
        samples = {"ours": {place: [] for place in places}, "loop": {place: [] for place in places}}
        norms = {}
        for turn in range(self.repeat):
            self.say(f"{work.name} on {device}: {turn + 1} of {self.repeat}")
            for place in places:
                samples["ours"][place].append(self.our_training(work, overrides=(f'worker.device="{place}"',)))
                printed = self.loop(work, work.loops[0].name, 1, self.choose(LOOP_SECONDS, LOOP_QUICK_SECONDS), place)
                norms[place] = printed["first_norm"]
                samples["loop"][place].append(figures.loop_sample(printed))
        figures.agree(norms, SAME_WORK if work.hidden else SAME_WORK_DROPOUT)
        return figures.device_figures(work, samples, device)

    def low_rank(self):
        """Measures B15."""
        rounds = self.choose(workloads.LOW_RANK_ROUNDS, workloads.LOW_RANK_QUICK_ROUNDS)
        by_width = {width: [] for width in workloads.LOW_RANK_WIDTHS}
        for turn in range(self.repeat):
            self.say(f"b15: {turn + 1} of {self.repeat}")
            for width, samples in by_width.items():
                samples.append(self.ours(workloads.LOW_RANK_SCENARIO, rounds, overrides=(
                    *workloads.LOW_RANK, f"worker.fused_clients_max={width}")))
        return figures.low_rank_figures(by_width, workloads)

    def portable(self):
        """Measures B13."""
        ways = {"machine": ((), {}), "AVX2": ((), workloads.AVX2),
                "portable": (('worker.arithmetic="portable"',), {})}
        measured = {name: {way: [] for way in ways} for name in workloads.PORTABLE}
        for turn in range(self.repeat):
            self.say(f"b13: {turn + 1} of {self.repeat}")
            for name, by_way in measured.items():
                for way, (overrides, variables) in ways.items():
                    self.environment = {**os.environ, **variables}
                    by_way[way].append(self.sample(name, overrides))
        self.environment = None
        return figures.portable_figures(measured, workloads)

    def measure(self, name, device=None):
        if device:
            return self.on_device(workloads.TRAINING[name], device)
        if name in workloads.TRAINING:
            return self.training(workloads.TRAINING[name])
        return {"b3": self.no_op, "b5": self.no_wait, "b6": self.buffered, "b7": self.cores,
                "b9": self.programs_stacked, "b11": self.nodes, "b12": self.observers,
                "b13": self.portable, "b15": self.low_rank}[name]()
