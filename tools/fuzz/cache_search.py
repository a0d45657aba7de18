"""What one run keeps for others is damaged: a run that reads it ends as without it, and says what it found."""
import os
import random
import shutil

from disturbed_runs import ROOT
from mutations import mutated
from started_programs import ADDRESSES_BYTES, StartedPrograms
from ways_to_run import LIMIT_S, facts_of

SMOKE = os.path.join(ROOT, "scenarios", "smoke")
SMALL = ["--set", "rounds.per_task=1", "--threads", "1", "--quiet"]
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
    """behind.toml, whose net trained.toml trains on other classes."""
    behind = "count = 2\nclasses = 4\nclass_order = [6, 7, 8, 9, 0, 1, 2, 3, 4, 5]"
    for name, kind, tasks, backbone in (("trained", "single", "classes = 6", ""),
                                        ("behind", "class-incremental", behind,
                                         'backbone = "trained.toml"\ntrainable = "head"')):
        with open(os.path.join(folder, name + ".toml"), "w", encoding="utf-8") as file:
            file.write(BACKBONE.format(kind=kind, tasks=tasks, backbone=backbone))


class _Cache:
    """Files that a run leaves in a folder, and what a run that reads them ends with. `words` run into a folder."""

    def __init__(self, folder, words, facts=facts_of):
        self.kept, self.work = os.path.join(folder, "kept"), os.path.join(folder, "work")
        self.words, self.facts = words, facts
        os.makedirs(folder, exist_ok=True)

    def fresh(self):
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.kept, self.work)

    def files(self):
        return sorted(os.path.join(at, name) for at, _, names in os.walk(self.work) for name in names
                      if name.endswith((".safetensors", ".sqlite")))


class CacheSearch:
    def __init__(self, program, folder):
        self.folder = folder
        self.programs = StartedPrograms(program, folder, LIMIT_S, ADDRESSES_BYTES)
        self.counts = {"damaged": 0, "named": 0, "found": 0}
        self.caches = {"features": self._features(), "generator": self._generator(), "backbone": self._backbone(),
                       "catalogue": self._catalogue()}
        self.expected = {name: self._made(cache) for name, cache in self.caches.items()}

    def _features(self):
        here = os.path.join(self.folder, "features")
        return _Cache(here, lambda out: (["run", os.path.join(SMOKE, "stsa.toml"), *SMALL, "--out", out, "--set",
                                          f"strategy.feature_cache={here}/work"], []))

    def _generator(self):
        here = os.path.join(self.folder, "generator")
        return _Cache(here, lambda out: (["run", os.path.join(SMOKE, "osi-fl.toml"), *SMALL, "--out", out, "--set",
                                          f"strategy.generator_cache={here}/work"], []))

    def _backbone(self):
        here = os.path.join(self.folder, "backbone")
        cache = _Cache(here, lambda out: (["run", os.path.join(here, "behind.toml"), *SMALL, "--out", out],
                                          [f"MNEME_CACHE={here}/work"]))
        write_backbone_scenarios(here)
        return cache

    def _catalogue(self):
        """A sweep takes what the catalogue calls done; its table is what it ends with."""
        here = os.path.join(self.folder, "catalogue")
        words = ["sweep", os.path.join(SMOKE, "fedavg.toml"), "--set", "rounds.per_task=1", "--seeds", "1-3",
                 "--threads", "1", "--out", os.path.join(here, "work")]
        return _Cache(here, lambda _: (words, []), lambda _: {})

    def _run(self, cache, said=None):
        out = os.path.join(self.folder, "out")
        shutil.rmtree(out, ignore_errors=True)
        words, settings = cache.words(out)
        ended = self.programs.run(words, settings)
        if said is not None:
            said.append(ended.errors)
        facts = {"code": ended.code, **cache.facts(out)}
        if words[0] == "sweep":
            facts["table"] = [line for line in ended.errors.splitlines() if "fedavg" in line and "warning" not in line]
        return facts

    def _made(self, cache):
        shutil.rmtree(cache.work, ignore_errors=True)
        os.makedirs(cache.work)
        said = []
        if self._run(cache, said)["code"] != 0:
            raise SystemExit(f"the run that makes the cache fails: {said[0]}")
        shutil.rmtree(cache.kept, ignore_errors=True)
        shutil.copytree(cache.work, cache.kept)
        return self._run(cache)

    def try_seed(self, seed):
        """None, or what was found."""
        draw = random.Random(seed)
        name = draw.choice(sorted(self.caches))
        cache = self.caches[name]
        cache.fresh()
        target = draw.choice(cache.files())
        with open(target, "rb") as file:
            honest = file.read()
        damaged = mutated(honest, draw)
        with open(target, "wb") as file:
            file.write(damaged)
        said = []
        facts = self._run(cache, said)
        self.counts["damaged"] += 1
        named = os.path.basename(target) in said[0]
        self.counts["named"] += named
        differing = sorted(key for key in facts if facts[key] != self.expected[name].get(key))
        if not differing:
            return None
        self.counts["found"] += 1
        kept = os.path.join(self.folder, f"found-{name}-{seed}")
        with open(kept, "wb") as file:
            file.write(damaged)
        return f"seed {seed}, {name}: {differing} are others; the bytes are in {kept}; it said {said[0][-300:]}"

    def close(self):
        self.programs.close()
