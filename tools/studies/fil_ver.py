#!/usr/bin/env python3
"""FIL-VER on the EMNIST subset: tables of accuracy over systems and seeds, and of what beta trades for what.

tools/studies/fil_ver.py table [--seeds 1,2,3] [--rows s1_vanilla,...] [--rotations 0,3,7] [--out FOLDER]
tools/studies/fil_ver.py beta [--seeds 1] [--values 0,1e-6,...] [--picture FILE.svg] [--out FOLDER]

An encoder is trained once per seed and beta, by a run whose clients learn nothing, and handed to the others as
model.seed_weights: they end with the bits that they would have with its training. Runs that are in FOLDER already are
not repeated. A rotation gives each letter the label of the one so many places before it among its ten: what a
classifier of digits makes of look-alikes (0 and U have one label) is luck then, over which the table averages.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.dont_write_bytecode = True
from plot import Axes, Picture  # noqa: E402

ROWS = ["offline", "offline_ebr", "s1_ver_stats", "s1_ver_sampled", "s1_ebr", "s1_ver", "s1_vanilla", "s2_ver_stats",
        "s3_ver_stats", "s4_ver_stats", "s4_vanilla"]
BETAS = ["0", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2"]


def run(scenario, out, seed, keys):
    """The summary and the last row of the accuracy matrix of a run, which is made if it is not there."""
    if not os.path.exists(os.path.join(out, "summary.json")):
        command = [os.environ.get("MNEME_PROGRAM", os.path.join(ROOT, "build", "release", "mneme")), "run",
                   os.path.join(ROOT, "scenarios", "small", f"fil_ver_{scenario}.toml"), "--quiet", "--out", out,
                   "--set", f"seed={seed}", "--set", "evaluation.every=0"]
        for key, value in keys.items():
            command += ["--set", f"{key}={value}"]
        if threads := os.environ.get("MNEME_THREADS"):
            command += ["--threads", threads]
        subprocess.run(command, check=True)
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    with open(os.path.join(out, "accuracy_matrix.csv"), encoding="utf-8") as file:
        summary["last_row"] = [float(text) for text in file.read().split()[-1].split(",")[1:]]
    return summary


def encoder(folder, seed, beta, system="ver-stats"):
    """The file of an encoder and of a classifier that has learnt nothing."""
    out = os.path.join(folder, f"encoder-{system}-beta{beta}-s{seed}")
    run("s1_ver_stats", out, seed, {"strategy.system": system, "strategy.beta": beta, "training.epochs": 0,
                                    "rounds.per_task": 1, "strategy.server_training": "false"})
    return os.path.join(out, "model.safetensors")


def rotated_classes(rotation):
    """tasks.class_order: digits, three tens of letters, each from its `rotation`-th on, and seven unused classes."""
    letters = (first + (i + rotation) % 10 for first in (10, 20, 30) for i in range(10))
    return str([*range(10), *letters, *range(40, 47)])


def with_encoder(row, folder, seed, beta, rotation=0):
    """The run of a row of the table; offline_ebr is offline training behind the encoder of points."""
    system = "ebr" if "ebr" in row else "ver-stats"
    keys = {"model.seed_weights": encoder(folder, seed, beta, system), "strategy.vee_epochs": 0, "strategy.beta": beta}
    name, scenario = f"{row}-beta{beta}-s{seed}", row
    if row == "offline_ebr":
        scenario = "offline"
        keys["model.name"] = "ebr"
    if rotation:
        name += f"-rotated{rotation}"
        keys["tasks.class_order"] = rotated_classes(rotation)
    return run(scenario, os.path.join(folder, name), seed, keys)


def shown(values):
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def table(given):
    print("| run | task 1 | task 2 | task 3 | task 4 | mean |\n|---|---|---|---|---|---|")
    rotations = [int(text) for text in given.rotations.split(",")]
    for row in given.rows.split(","):
        last_rows = [with_encoder(row, given.out, seed, "1e-5", rotation)["last_row"]
                     for seed in given.seeds.split(",") for rotation in rotations]
        cells = [shown(list(column)) for column in zip(*last_rows)]
        cells.append(shown([statistics.mean(last_row) for last_row in last_rows]))
        print(f"| {row} | " + " | ".join(cells) + " |", flush=True)


def beta_table(given):
    points = []
    print("| beta | KL per sample | sigma | task 1 | task 2 | task 3 | task 4 | mean |\n" + "|---" * 8 + "|")
    for beta in given.values.split(","):
        runs = [with_encoder("offline", given.out, seed, beta) for seed in given.seeds.split(",")]
        means = [statistics.mean(one["last_row"]) for one in runs]
        cells = [f"{statistics.mean(one['kl_per_sample'] for one in runs):.0f}",
                 f"{statistics.mean(one['sigma_mean'] for one in runs):.2f}"]
        cells += [shown(list(column)) for column in zip(*(one["last_row"] for one in runs))] + [shown(means)]
        print(f"| {beta} | " + " | ".join(cells) + " |", flush=True)
        points.append({"beta": beta, "sigma": statistics.mean(one["sigma_mean"] for one in runs),
                       "first": statistics.mean(one["last_row"][0] for one in runs),
                       "later": statistics.mean(statistics.mean(one["last_row"][1:]) for one in runs)})
    if given.picture:
        with open(given.picture, "w", encoding="utf-8") as file:
            file.write(svg(points))


def svg(points):
    """Accuracy on the first and on later tasks over the mean sigma of the embeddings."""
    points = sorted(points, key=lambda point: point["sigma"])
    picture = Picture(640, 400)
    axes = Axes(picture, margin=60, x_max=1, y_max=100)
    axes.draw([0, 0.2, 0.4, 0.6, 0.8, 1], range(0, 101, 20), "mean sigma of the embeddings; beta at each point")
    for point in points:
        x, y = axes.place(point["sigma"], point["later"])
        picture.text(x, y + 20, point["beta"], anchor="middle", colour="gray")
    axes.curve([(point["sigma"], point["first"]) for point in points], "task 1 (%)", "#1f77b4")
    axes.curve([(point["sigma"], point["later"]) for point in points], "tasks 2 to 4 (%)", "#d62728")
    return picture.svg()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["table", "beta"])
    parser.add_argument("--seeds", default=None)
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--rotations", default="0", help="of the letters' labels, over which a row is averaged")
    parser.add_argument("--values", default=",".join(BETAS))
    parser.add_argument("--picture")
    parser.add_argument("--out", default=os.path.join(ROOT, "runs", "fil_ver_study"))
    given = parser.parse_args()
    given.seeds = given.seeds or ("1,2,3" if given.what == "table" else "1")
    (table if given.what == "table" else beta_table)(given)


if __name__ == "__main__":
    sys.exit(main())
