#!/usr/bin/env python3
"""Estimates the remaining time of a ninja build from the typical cost of each step (tools/build_costs.tsv).

  tools/build_time.py plan FOLDER [TARGET...]
      prints the seconds that building the targets takes; prints nothing if they are unknown
  tools/build_time.py left FOLDER LOG ELAPSED [TARGET...]
      prints "PERCENT SECONDS" for a build that runs for ELAPSED seconds and writes its steps to LOG
  tools/build_time.py costs SECONDS FOLDER...     prints tools/build_costs.tsv from the build logs of FOLDERs, scaled so
                                                  that all compilations together take SECONDS
"""
import os
import re
import statistics
import subprocess
import sys

COSTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "build_costs.tsv")
LINK_SECONDS = 1.0  # steps of other kinds: links, archives, copies
PRIOR_SECONDS = 30.0  # weight of the stored costs against the measured speed
RUNNING_SHARE = 0.4  # assumed progress of a running step; fitted to recorded builds
STEP = re.compile(r"^\[\d+/\d+\] (.*)$", re.MULTILINE)
REGENERATES = re.compile(r"Re-running CMake|Re-checking globbed")


def default_jobs():
    """Number of steps that ninja runs at once by default."""
    cores = len(os.sched_getaffinity(0))
    return {1: 2, 2: 3}.get(cores, cores + 2)


def kind(output):
    """Name of a step's row in the costs: the CMake target, with .gch for precompiled headers; "" for steps of other
    kinds.
    """
    found = re.search(r"([^/]+)\.dir/", output)
    return found.group(1) + (".gch" if output.endswith(".gch") else "") if found else ""


def read_costs(path=COSTS):
    with open(path, encoding="utf-8") as file:
        rows = [line.split("\t") for line in file if not line.startswith("#")]
    return {name.strip(): float(seconds) for seconds, name in rows}


def cost(step, costs):
    """Typical seconds of a step. The step is given by its description or its output; the last word is the output."""
    name = kind(step.split()[-1])
    return costs.get(name, statistics.mean(costs.values())) if name else LINK_SECONDS


def read_durations(text):
    """Seconds of each output in a .ninja_log; the last entry counts."""
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {row[3]: (int(row[1]) - int(row[0])) / 1000 for row in rows if len(row) == 5}


def seconds_left(planned, finished, elapsed, jobs, costs):
    """Remaining seconds of a build.

    planned, finished: descriptions of all steps and of the finished ones; elapsed: seconds since the start; jobs:
    number of steps that run at once. The speed of this machine is the total time of all jobs, divided by the typical
    seconds of the work done. The work done consists of the finished steps and, for each job, RUNNING_SHARE of an
    average pending step.
    """
    done = sum(cost(step, costs) for step in planned & finished)
    pending = [cost(step, costs) for step in planned - finished]
    work = sum(pending)
    if not pending:
        return 0.0
    running = min(RUNNING_SHARE * min(jobs, len(pending)) * work / len(pending), jobs * elapsed)
    slowness = (jobs * elapsed + PRIOR_SECONDS) / (done + running + PRIOR_SECONDS)
    return slowness * (work - running) / jobs


def planned_steps(folder, targets):
    """Descriptions of the steps that ninja would run after CMake, or None if the folder is not configured.

    ninja's dry run stops at the rule that reruns CMake, which counts as due whenever sources are found by globs, so the
    rule is left out.
    """
    manifest = read_text(os.path.join(folder, "build.ninja"))
    if not manifest:
        return None
    with open(os.path.join(folder, "plan.ninja"), "w", encoding="utf-8") as file:
        file.write(re.sub(r"(?ms)^build build\.ninja.*?\n\n", "", manifest))
    ran = subprocess.run(["ninja", "-C", folder, "-f", "plan.ninja", "-n", *targets], capture_output=True, text=True,
                         check=False)
    return set(STEP.findall(ran.stdout)) if ran.returncode == 0 else None


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def print_plan(folder, targets):
    steps = planned_steps(folder, targets)
    if steps is not None:
        print(round(seconds_left(steps, set(), 0.0, default_jobs(), read_costs())))


def print_left(folder, log, elapsed, targets):
    """Prints percent and remaining seconds. The plan is made once per build, after CMake, and kept in LOG.plan, which
    tools/build removes before a build."""
    text = read_text(log)
    ran = [step for step in STEP.findall(text) if not REGENERATES.search(step)]
    plan = log + ".plan"
    if not os.path.exists(plan):
        if "Re-running CMake" in text and "Build files have been written" not in text:
            return
        steps = planned_steps(folder, targets)
        if steps is None:
            return
        with open(plan, "w", encoding="utf-8") as file:
            file.write("\n".join(steps | set(ran)))
    planned, finished = set(read_text(plan).split("\n")), set(ran)
    costs = read_costs()
    total = sum(cost(step, costs) for step in planned)
    done = sum(cost(step, costs) for step in planned & finished)
    left = seconds_left(planned, finished, elapsed, default_jobs(), costs)
    print(round(100 * done / max(total, 1e-9)), round(left))


def print_costs(seconds, folders):
    """Takes the mean over the steps of a target, then the median over the folders.

    Steps of less than a second are left out: ccache had their result.
    """
    means, counts = {}, {}
    for folder in folders:
        steps = {}
        for output, duration in read_durations(read_text(os.path.join(folder, ".ninja_log"))).items():
            if kind(output) and duration >= 1.0:
                steps.setdefault(kind(output), []).append(duration)
        for name, durations in steps.items():
            means.setdefault(name, []).append(statistics.mean(durations))
            counts[name] = max(counts.get(name, 0), len(durations))
    rows = {name: statistics.median(values) for name, values in means.items()}
    scale = seconds / sum(rows[name] * counts[name] for name in rows)
    print("# Typical seconds of one compilation of each CMake target; written by tools/build_time.py costs.")
    for name in sorted(rows):
        print(f"{rows[name] * scale:.1f}\t{name}")


def main(words):
    match words:
        case ["plan", folder, *targets]:
            print_plan(folder, targets)
        case ["left", folder, log, elapsed, *targets]:
            print_left(folder, log, float(elapsed), targets)
        case ["costs", seconds, *folders]:
            print_costs(float(seconds), folders)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
