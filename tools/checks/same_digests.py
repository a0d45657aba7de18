#!/usr/bin/env python3
"""tools/checks/same_digests.py COMMIT [SCENARIO...]: checks that this tree gives the same results as an earlier commit.

Builds COMMIT in a separate folder and this tree, runs every scenario with both, and compares run digests and final
models. Default scenarios: all smoke scenarios, the quickstart, and the benchmarks B1, B2, B2c and B6.

  --programs OLD NEW   compares two programs that are already built
  --threads 1,3        runs this tree's program with each of these numbers of threads (default 1,3)
  --trace              also compares trace digests and events.csv (not for changes of batching)

Exit codes: 0 all equal, 1 something differs or a run failed, 2 bad usage.
"""
import argparse
import glob
import hashlib
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BENCHMARKS = ("b1", "b2", "b2c", "b6")


class Failure(Exception):
    """Error of a build or a run, with a message."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="COMMIT [SCENARIO...]")
    parser.add_argument("--programs", nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--threads", default="1,3")
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args()
    if not given.programs and not given.words:
        parser.error("expected a commit or --programs")
    return given


def default_scenarios():
    paths = sorted(glob.glob(os.path.join(ROOT, "scenarios", "smoke", "*.toml")))
    paths.append(os.path.join(ROOT, "scenarios", "quickstart.toml"))
    return paths + [os.path.join(ROOT, "scenarios", "bench", name + ".toml") for name in BENCHMARKS]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


def built(tree):
    run([os.path.join(tree, "tools", "build"), "release", "mneme"])
    return os.path.join(tree, "build", "release", "mneme")


def built_commit(commit, folder):
    """Builds an earlier commit in a worktree. Returns the path of the program. The caller removes the worktree."""
    run(["git", "-C", ROOT, "worktree", "add", "--detach", folder, commit])
    return built(folder)


def content(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def results(program, scenario, threads, trace):
    """Runs a scenario and returns the values that must be equal: {name: value}."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        command = [program, "run", scenario, "--quiet", "--out", out, "--threads", str(threads)]
        run(command + (["--trace"] if trace else []), cwd=ROOT)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        found = {"run digest": summary["run_digest"], "model": content(os.path.join(out, "model.safetensors"))}
        if trace:
            found["trace digest"] = summary["trace_digest"]
            found["events"] = content(os.path.join(out, "events.csv"))
    return found


def compare(old, new, scenario, given):
    """Runs a scenario with both programs. Returns the differences, one per line; empty if there are none."""
    wanted = results(old, scenario, 1, given.trace)
    differing = []
    for threads in given.threads.split(","):
        found = results(new, scenario, int(threads), given.trace)
        differing += [f"{name} on {threads} threads: {found[name]}, expected {wanted[name]}"
                      for name in wanted if found[name] != wanted[name]]
    return differing


def compare_all(old, new, scenarios, given):
    failed = 0
    for scenario in scenarios:
        differing = compare(old, new, scenario, given)
        failed += bool(differing)
        print(f"{os.path.relpath(scenario, ROOT)}: {'; '.join(differing) or 'equal'}", flush=True)
    print(f"{len(scenarios) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    given = arguments()
    scenarios = given.words if given.programs else given.words[1:]
    scenarios = [os.path.abspath(path) for path in scenarios] or default_scenarios()
    try:
        if given.programs:
            return compare_all(*map(os.path.abspath, given.programs), scenarios, given)
        with tempfile.TemporaryDirectory() as folder:
            tree = os.path.join(folder, "earlier")
            try:
                return compare_all(built_commit(given.words[0], tree), built(ROOT), scenarios, given)
            finally:
                subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", tree], capture_output=True)
    except Failure as why:
        print(f"same_digests: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
