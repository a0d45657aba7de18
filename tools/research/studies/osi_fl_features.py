#!/usr/bin/env python3
"""OSI-FL, a generator that retrieves, and half-step baselines on PACS with a pretrained EfficientNet-Lite0.

    tools/fetch_weights efficientnet-lite0
    V/bin/python tools/research/studies/osi_fl_features.py --program build/release/mneme --out runs/osi_features

Each domain is one task and one client, with fifty rows per class for methods that train on rows. The backbone is
frozen: all methods read its features, which are computed once and stored as bytes. A linear head is trained, and
features are generated. For each client and class, the retrieving generator returns the fifty public rows nearest to the
class mean, with that class as label. Needs numpy.
"""
import argparse
import lzma
import os
import pathlib
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from study_runs import feature_tables, run_once  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
SMALL = ROOT / "scenarios/small"
DOMAINS, CLASSES, SIDE, FEATURES = 4, 7, 32, 1280
PIXELS = 96            # image side, for the backbone
ROWS, TEST_ROWS = 50, 20  # per class and domain; as many rows are public
RETAINED = 5              # p of OSI-FL
ROUNDS = 20               # per task, for methods that train clients
HEAD = {"model.name": "linear", "training.optimizer": "adam", "training.learning_rate": 1e-3,
        "training.weight_decay": 0.0, "training.batch": 32, "training.augment": "none", "data.normalize": "unit",
        "checkpoint.every": 0}


# -- Rows -------------------------------------------------------------------------------------------------------------

def pacs():
    """Images [N, 3, 32, 32], domains and labels of the used rows: the first of each domain and class."""
    path = pathlib.Path(os.environ["MNEME_DATA"]) / "pacs-32/pacs32.bin.xz"
    records = numpy.frombuffer(lzma.open(path).read(), numpy.uint8).reshape(-1, 2 + 3 * SIDE * SIDE)
    used = [numpy.flatnonzero((records[:, 0] == domain) & (records[:, 1] == label))[:2 * ROWS + TEST_ROWS]
            for domain in range(DOMAINS) for label in range(CLASSES)]
    rows = records[numpy.concatenate(used)]
    return rows[:, 2:].reshape(-1, 3, SIDE, SIDE), rows[:, 0].astype(numpy.int64), rows[:, 1].astype(numpy.int64)


def write_arrays(path, train, test):
    """Writes a .npz file of rows, labels and domains; train and test are (rows, labels, domains)."""
    parts = {f"{part}_{name}": value for part, rows in (("train", train), ("test", test))
             for name, value in zip(("x", "y", "domain"), rows)}
    numpy.savez(path, **parts)


def features_of(program, weights, out):
    """Features [N, 1280] of the rows of pacs(), from the cache of a run with the frozen net."""
    cache = out / "cache"
    if not cache.exists():
        images, domains, labels = pacs()
        rows = (images, labels, domains)
        shown = numpy.unique(labels, return_index=True)[1]  # one test row per class, since a data set needs some
        write_arrays(out / "images.npz", rows, tuple(values[shown] for values in rows))
        run_once(program, SMALL / "fedhaf_pacs_split-fedavg.toml", out / "features", {
            "data.name": "arrays", "data.file": str(out / "images.npz"), "data.train_per_class": 0,
            "data.resize": PIXELS,
            "tasks.count": 1, "tasks.first_classes": 0, "clients.count": 1, "rounds.per_task": 1, "rounds.cohort": 0,
            "model.name": "efficientnet-lite0", "model.backbone": "", "model.weights": weights,
            "strategy.feature_cache": str(cache)})
    found = [numpy.frombuffer(features, numpy.float32) for features, _, _ in feature_tables(cache)]
    return max(found, key=len).reshape(-1, FEATURES)


def as_bytes(features):
    """Converts features to bytes [N, 1, 1280]; the largest 0.1 % are clamped."""
    return (numpy.clip(features / numpy.quantile(features, 0.999), 0, 1) * 255).round().astype(numpy.uint8)[:, None, :]


# -- Training rows of each method -------------------------------------------------------------------------------------

def split(domains, labels, seed):
    """Row numbers of private, public and test rows, drawn by domain and class."""
    draw, parts = numpy.random.default_rng(seed), ([], [], [])
    for domain in range(DOMAINS):
        for label in range(CLASSES):
            rows = draw.permutation(numpy.flatnonzero((domains == domain) & (labels == label)))
            half = (len(rows) - TEST_ROWS) // 2
            for part, chosen in zip(parts, (rows[:half], rows[half:2 * half], rows[2 * half:])):
                part.extend(chosen)
    return [numpy.array(part) for part in parts]


def retrieved(features, domains, labels, private, public):
    """(rows, their labels, their domains): for each client and class the public rows with the smallest angle to its
    mean."""
    unit = features / numpy.linalg.norm(features, axis=1, keepdims=True)
    rows, shown, where = [], [], []
    for domain in range(DOMAINS):
        for label in range(CLASSES):
            mean = unit[private[(domains[private] == domain) & (labels[private] == label)]].mean(0)
            nearest = public[numpy.argsort(-(unit[public] @ mean), kind="stable")[:ROWS]]
            rows.extend(nearest)
            shown.extend([label] * len(nearest))
            where.extend([domain] * len(nearest))
    return numpy.array(rows), numpy.array(shown), numpy.array(where)


def with_retained(rows, labels, domains, seed):
    """Each domain's rows, plus RETAINED rows of each class of earlier domains, drawn once: random retention."""
    draw, kept, parts = numpy.random.default_rng(seed), [], []
    for domain in range(DOMAINS):
        new = numpy.flatnonzero(domains == domain)
        chosen = numpy.concatenate([new, *kept])
        parts.append((rows[chosen], labels[chosen], numpy.full(len(chosen), domain)))
        kept += [draw.permutation(new[labels[new] == label])[:RETAINED] for label in range(CLASSES)]
    return tuple(numpy.concatenate(values) for values in zip(*parts))


# -- Runs -------------------------------------------------------------------------------------------------------------

def runs_of(files):
    """Returns {name: (scenario, data file, settings)}."""
    server = {"training.epochs": 25}
    generated = {**server, "partition.public_share": 0.5, "strategy.images": ROWS,
                 "strategy.generator_cache": files["generators"],
                 "strategy.criterion": "loss", "strategy.scoring_model": "after", "strategy.replay": "concat",
                 "strategy.denoiser_passes": 150, "strategy.encoder_passes": 20,
                 "strategy.retained_per_class": RETAINED}
    trained = {"training.epochs": 1, "rounds.per_task": ROUNDS, "partition.public_share": 0.5}
    alone = {**server, "rounds.per_task": 1, "partition.public_share": 0.0}
    found = {f"generated, {mode}": ("osi_fl_pacs", files["rows"], {**generated, "strategy.mode": mode})
             for mode in ("osi-fl", "oscar", "oscar-il")}
    found["generated, osi-fl, random"] = ("osi_fl_pacs", files["rows"], {**generated, "strategy.criterion": "random"})
    found |= {"retrieved, osi-fl, random": ("osi_fedavg_pacs", files["retained"], alone),
              "retrieved, oscar": ("osi_joint_pacs", files["retrieved"], alone),
              "retrieved, oscar-il": ("osi_fedavg_pacs", files["retrieved"], alone),
              "public rows with their labels": ("osi_joint_pacs", files["public"], alone)}
    for name in ("fedavg", "fed-ewc"):
        for share in (0.0, 0.5):
            found[f"{name}, keeps {share}"] = ("osi_fedavg_pacs", files["rows"],
                                               {**trained, "strategy.name": name, "strategy.old_model_share": share})
    found["joint"] = ("osi_joint_pacs", files["rows"], {**alone, "partition.public_share": 0.5})
    return found


def files_of(out, features, domains, labels, seed):
    """Data files of a seed, by kind of training rows."""
    rows = as_bytes(features)
    private, public, test = split(domains, labels, seed)
    tested = (rows[test], labels[test], domains[test])
    near, shown, where = retrieved(features, domains, labels, private, public)
    kept, kept_shown, kept_where = with_retained(near, shown, where, seed)
    both = numpy.concatenate([private, public])
    parts = {"rows": (rows[both], labels[both], domains[both]),
             "public": (rows[public], labels[public], domains[public]),
             "retrieved": (rows[near], shown, where), "retained": (rows[kept], kept_shown, kept_where)}
    right = (labels[near] == shown).mean()
    print(f"seed {seed}: {100 * right:.1f} % of the retrieved rows are of the class that they stand for, "
          f"{100 * (domains[near] == where).mean():.1f} % of the domain", flush=True)
    for name, train in parts.items():
        write_arrays(out / f"{name}.npz", train, tested)
    return {name: str(out / f"{name}.npz") for name in parts} | {"generators": str(out / "generators")}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=str(ROOT / "build/release/mneme"))
    weights = os.path.expanduser("~/.cache/mneme/weights/efficientnet-lite0.safetensors")
    arguments.add_argument("--weights", default=weights)
    arguments.add_argument("--out", type=pathlib.Path, required=True)
    arguments.add_argument("--seeds", default="1,2,3")
    told = arguments.parse_args()
    out = told.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    features = features_of(told.program, told.weights, out)
    _, domains, labels = pacs()
    for seed in told.seeds.split(","):
        folder = out / f"seed{seed}"
        folder.mkdir(exist_ok=True)
        for name, (scenario, file, settings) in runs_of(files_of(folder, features, domains, labels, int(seed))).items():
            made_in = folder / name.replace(", ", "_").replace(" ", "_")
            done = run_once(told.program, SMALL / f"{scenario}.toml", made_in,
                            {**HEAD, "data.name": "arrays", "data.file": file, "seed": seed, **settings})
            print(f"seed {seed}, {name}: average {done['average_incremental_accuracy']:.2f}, at the end "
                  f"{done['final_accuracy']:.2f}, forgetting {done['forgetting']:.2f}", flush=True)


if __name__ == "__main__":
    main()
