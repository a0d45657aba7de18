"""Commands other than `mneme run` whose writes fail, each with its arguments and a check of its output."""
import os
import shutil

from disturbed_runs import ROOT
from ways_to_run import facts_of

SMOKE = os.path.join(ROOT, "scenarios", "smoke")
SHORT = ["--set", "rounds.per_task=1", "--threads", "1"]
BACKBONE = """[data]
name = "synthetic"
shape = [16]
classes = 10
rows = 200
[tasks]
kind = "{kind}"
{tasks}
[clients]
count = 2
[model]
name = "mlp"
hidden = [12, 9]
{backbone}
[strategy]
name = "fedavg"
"""


def write_backbone_scenarios(folder):
    """Writes trained.toml and behind.toml. The backbone of behind.toml is the net that trained.toml trains on other
    classes.
    """
    behind = "count = 2\nclasses = 4\nclass_order = [6, 7, 8, 9, 0, 1, 2, 3, 4, 5]"
    for name, kind, tasks, backbone in (("trained", "single", "classes = 6", ""),
                                        ("behind", "class-incremental", behind,
                                         'backbone = "trained.toml"\ntrainable = "head"')):
        with open(os.path.join(folder, name + ".toml"), "w", encoding="utf-8") as file:
            file.write(BACKBONE.format(kind=kind, tasks=tasks, backbone=backbone))


def _content(path):
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read()


class _Subject:
    """Base class. @param run function that runs the program with arguments and returns its outcome"""
    further_calls = 0  # calls of child processes, which the command does not count

    def __init__(self, folder, run):
        self.folder, self.run = folder, run
        os.makedirs(folder, exist_ok=True)

    def undisturbed(self, orders):
        """Output of the command if nothing fails."""
        out = os.path.join(self.folder, "undisturbed")
        shutil.rmtree(out, ignore_errors=True)
        ended = self.run(self.words(out), orders + self.settings(out))
        if ended.code != 0:
            raise SystemExit(f"{type(self).__name__} fails undisturbed: {ended.errors}")
        self.expected = self.left(out)

    def settings(self, _out):
        return []

    def check(self, out, code):
        """Checks the output and reruns the command. Returns a description of the fault, or None."""
        if code == 0 and self.left(out) != self.expected:
            return "code 0, but files are missing"
        again = self.run(self.words(out), self.settings(out))
        if again.code != 0:
            return f"what is left keeps it from running again: {again.errors[-300:]}"
        return None if self.left(out) == self.expected else "run again, it leaves something else"


class Sweep(_Subject):
    """Sweep with two concurrent runs: catalogue, order and report."""
    further_calls = 60

    def words(self, out):
        return ["sweep", os.path.join(SMOKE, "fedavg.toml"), *SHORT, "--seeds", "1,2", "--jobs", "2", "--quiet",
                "--out", out]

    def left(self, out):
        runs = sorted(name for name in os.listdir(out) if os.path.isdir(os.path.join(out, name)))
        facts = [facts_of(os.path.join(out, name)) for name in runs]
        return facts, os.path.exists(os.path.join(out, "fedavg.html")), _content(os.path.join(out, "sweep.json"))


class Report(_Subject):
    def __init__(self, folder, run):
        super().__init__(folder, run)
        self.of = os.path.join(folder, "run")
        shutil.rmtree(self.of, ignore_errors=True)
        run(["run", os.path.join(SMOKE, "fedavg.toml"), *SHORT, "--quiet", "--out", self.of], [])

    def words(self, out):
        os.makedirs(out, exist_ok=True)
        return ["report", self.of, "-o", os.path.join(out, "page.html"), "--svg", os.path.join(out, "figures"),
                "--tensorboard", os.path.join(out, "events")]

    def left(self, out):
        return {os.path.relpath(os.path.join(at, name), out): _content(os.path.join(at, name))
                for at, _, names in os.walk(out) for name in names}

    def check(self, out, code):
        left = self.left(out)
        parts = [name for name in left if name.endswith(".part")]
        torn = [name for name in left if name not in parts and self.expected[name] != left[name]]
        if torn or (parts and code in (0, 1)):
            return f"these are not whole: {torn + parts}"
        return super().check(out, code)


class Features(_Subject):
    """Run that caches the features of its frozen net."""

    def words(self, out):
        for number in range(100):
            run = os.path.join(out, f"run{number}")
            if not os.path.exists(os.path.join(run, "scenario.toml")):
                break
        self.last = run
        return ["run", os.path.join(SMOKE, "stsa.toml"), *SHORT, "--quiet", "--set",
                f"strategy.feature_cache={out}/cache", "--out", run]

    def left(self, _out):
        return facts_of(self.last)


class Backbone(Features):
    """Run that trains its backbone first."""

    def words(self, out):
        words = super().words(out)
        return ["run", os.path.join(self.folder, "behind.toml"), *SHORT, "--quiet", "--out", words[-1]]

    def settings(self, out):
        return [f"MNEME_CACHE={out}/cache"]

    def __init__(self, folder, run):
        super().__init__(folder, run)
        write_backbone_scenarios(folder)


SUBJECTS = {"sweep": Sweep, "report": Report, "features": Features, "backbone": Backbone}
