#!/usr/bin/env python3
"""tools/research/official/compare.py METHOD [--steps] [--run CHECKOUT] [--seeds 1,2,3]: compares mneme with official
code.

--steps (the default) runs the tests that compare mneme with METHOD's golden files and prints the values of both: loss
terms, norms of weights after a step, selections, and the CPU seconds of mneme. --run CHECKOUT runs a small federation
with the official classes and with mneme, from the same rows, split, initial weights and constants. It prints accuracy
and loss after each round, accuracy after each task, and CPU seconds without imports. Over the seeds it prints the
difference of the means with its standard error. Random streams differ, so agreement is statistical.

    --tests PROGRAM   test_strategies (build/release/tests/test_strategies)
    --mneme PROGRAM   mneme (build/release/mneme)
    --out FOLDER      folder of runs; existing runs are not repeated (runs/official)
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

# Scripts of small runs by method. The script of any other method is METHOD_run.py.
SCRIPTS = {"stsa-e": "stsa_run.py", "fed-ewc": "stsa_run.py", "fed-lwf": "stsa_run.py", "glfc": "lga_run.py",
           "oscar": "osi_fl_run.py"}
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))


# -- Steps ------------------------------------------------------------------------------------------------------------

def printed_steps(method, tests):
    """All numbers compared by the tests tagged [official][METHOD]."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "steps.tsv")
        done = subprocess.run([tests, f"[official][{method}]"], env={**os.environ, "MNEME_STEPS": path},
                              capture_output=True, text=True)
        if not os.path.exists(path):
            print(f"{tests}: no test is tagged [official][{method}]\n{done.stdout}", file=sys.stderr)
            return 2
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
    own = [line for line in lines if line[0].startswith(method.replace("-", "_") + "/")]
    lines = own or lines  # some tests read the records of two programs
    width = max(len(line[1]) for line in lines)
    print(f"{'':{width}}  {'official':>14}  {'mneme':>14}  apart")
    record = None
    for name, where, theirs, ours, apart in lines:
        if name != record:
            print(f"\n{name}")
            record = name
        print(f"{where:{width}}  {theirs:>14}  {ours:>14}  {apart}")
    print("\nequal within the tests' bounds" if done.returncode == 0 else "\nNOT equal: see the tests' output")
    return 1 if done.returncode else 0


# -- Whole runs -------------------------------------------------------------------------------------------------------

def run_of(method, arguments, seed):
    """Computes missing runs. @return (official trace, trace of mneme)"""
    folder = os.path.join(os.path.abspath(arguments.out), method, f"s{seed}")
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(folder, "trace.json")):
        script = os.path.join(HERE, SCRIPTS.get(method, method.replace("-", "_") + "_run.py"))
        if subprocess.run([sys.executable, script, arguments.run, folder, str(seed), method],
                          env={**os.environ, "MNEME": os.path.abspath(arguments.mneme)}).returncode:
            raise SystemExit(1)
    ours = os.path.join(folder, "run")
    if not os.path.exists(os.path.join(ours, "summary.json")):
        scenario = os.path.join(folder, "scenario.toml")
        if subprocess.run([arguments.mneme, "run", scenario, "--threads", "1", "--quiet", "--out", ours]).returncode:
            raise SystemExit(1)
    with open(os.path.join(folder, "trace.json"), encoding="utf-8") as file:
        return json.load(file), traced(ours)


def traced(folder):
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        rounds = [json.loads(line) for line in file]
    with open(os.path.join(folder, "accuracy_matrix.csv"), encoding="utf-8") as file:
        rows = [line.strip().split(",")[1:] for line in file][1:]
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    return {"rounds": [{"accuracy": line["accuracy"], "loss": line["loss"]} for line in rounds],
            "tasks": [[float(value) for value in row if value] for row in rows], "cpu_seconds": summary["cpu_seconds"]}


def mean(values):
    return sum(values) / len(values)


def error(values):
    """Standard error of the mean."""
    if len(values) < 2:
        return math.inf
    middle = mean(values)
    return math.sqrt(sum((value - middle) ** 2 for value in values) / (len(values) - 1) / len(values))


def printed_rounds(theirs, ours):
    print(f"{'round':>7}  {'official: %, loss':>20}  {'mneme: %, loss':>20}")
    for number, (a, b) in enumerate(zip(theirs["rounds"], ours["rounds"]), start=1):
        print(f"{number:>7}  {a['accuracy']:>11.2f} {a['loss']:>8.3f}  {b['accuracy']:>11.2f} {b['loss']:>8.3f}")
    for number, (a, b) in enumerate(zip(theirs["tasks"], ours["tasks"]), start=1):
        print(f"after task {number}: " + "  ".join(f"{x:.1f}/{y:.1f}" for x, y in zip(a, b)))


def compared(what, theirs, ours):
    """Prints two means, their difference and its standard error. @return True if they differ by at most two standard
    errors"""
    apart, spread = mean(ours) - mean(theirs), math.hypot(error(theirs), error(ours))
    within = abs(apart) <= 2 * spread
    print(f"{what:<24} {mean(theirs):>8.2f} ± {error(theirs):<6.2f} {mean(ours):>8.2f} ± {error(ours):<6.2f} "
          f"{apart:>+7.2f}, standard error {spread:.2f}: {'within two' if within else 'NOT within two'}")
    return within


def printed_runs(method, arguments):
    pairs = []
    for seed in arguments.seeds:
        pairs.append(run_of(method, arguments, seed))
        print(f"\nseed {seed}")
        printed_rounds(*pairs[-1])
    sides = list(zip(*pairs))
    print(f"\n{'':<24} {'official':>17} {'mneme':>17}   apart")
    for task in range(len(sides[0][0]["tasks"])):
        # Classes are dealt evenly, so the mean over tasks is the accuracy over all classes so far.
        compared(f"% after task {task + 1}", *[[mean(run["tasks"][task]) for run in runs] for runs in sides])
    theirs, ours = [mean([run["cpu_seconds"] for run in runs]) for runs in sides]
    print(f"{'CPU seconds':<24} {theirs:>8.2f} {ours:>17.2f}: {theirs / ours:.2f} times as fast")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--run", metavar="CHECKOUT")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--tests", default=os.path.join(ROOT, "build", "release", "tests", "test_strategies"))
    parser.add_argument("--mneme", default=os.path.join(ROOT, "build", "release", "mneme"))
    parser.add_argument("--out", default=os.path.join(ROOT, "runs", "official"))
    arguments = parser.parse_args()
    status = printed_steps(arguments.method, arguments.tests) if arguments.steps or not arguments.run else 0
    if arguments.run and status == 0:
        status = printed_runs(arguments.method, arguments)
    return status


if __name__ == "__main__":
    sys.exit(main())
