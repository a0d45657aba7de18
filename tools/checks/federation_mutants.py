#!/usr/bin/env python3
"""Shows that random play finds mistakes of the federation: federation_mutants.py [--seconds N] [MUTANT...]

Each patch beside this file, in federation_mutants/, plants one mistake in a copy of the tree. Only the model check is
built from the copy, in build/mutants, and it has to fail within so many seconds (60); without a mistake it has to pass.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
PATCHES = os.path.join(HERE, "federation_mutants")
COPY = os.path.join(ROOT, "build", "mutants")


def mutants():
    """Names of the planted mistakes."""
    return sorted(name[:-len(".patch")] for name in os.listdir(PATCHES) if name.endswith(".patch"))


def apply(tree, name, *options):
    """Applies a patch to a tree, or says why that cannot be done."""
    patch = os.path.join(PATCHES, name + ".patch")
    # Below a checkout git would take the paths for the checkout's own.
    environment = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(os.path.abspath(tree)))
    done = subprocess.run(["git", "apply", *options, patch], cwd=tree, env=environment, capture_output=True, text=True)
    return done.stderr


def tree_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and os.path.isfile(os.path.join(ROOT, name))]


def same_content(a, b):
    with open(a, "rb") as first, open(b, "rb") as second:
        return first.read() == second.read()


def copy_tree():
    """Brings the copy up to date; what did not change keeps its time, so that little is built again."""
    wanted = set(tree_files())
    for folder, folders, names in os.walk(COPY):
        folders[:] = [name for name in folders if os.path.join(folder, name) != os.path.join(COPY, "build")]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, COPY) not in wanted:
                os.remove(path)
    for name in wanted:
        source, target = os.path.join(ROOT, name), os.path.join(COPY, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target) or not same_content(source, target):
            shutil.copyfile(source, target)
            shutil.copymode(source, target)


def build():
    environment = dict(os.environ, CCACHE_BASEDIR=COPY)
    done = subprocess.run(["tools/build", "release", "test_federation"], cwd=COPY, env=environment)
    if done.returncode != 0:
        sys.exit("federation_mutants: the copy in build/mutants does not build")


def play(seconds):
    """What random play says within so many seconds: None if it passes, "" if it has not ended, else the fault."""
    program = os.path.join(COPY, "build", "release", "tests", "test_federation")
    try:
        done = subprocess.run([program, "[play]~[slow]"], capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return ""
    if done.returncode == 0:
        return None
    fault = (re.search(r'with expansion:\s*"(.*?)"\s*==\s*""', done.stdout, re.S)
             or re.search(r"(check failed: .*)", done.stderr))
    return " ".join(fault.group(1).split()) if fault else f"exit code {done.returncode}"


def check(name, seconds):
    """Whether the mistake is found."""
    copy_tree()
    why = apply(COPY, name)
    if why:
        print(f"{name}: the patch does not apply: {why}")
        return False
    build()
    began = time.monotonic()
    fault = play(seconds)
    found = bool(fault)
    print(f"{name}: {'found' if found else 'NOT FOUND'} after {time.monotonic() - began:.1f} s"
          + (f": {fault}" if found else ""), flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("names", nargs="*", metavar="MUTANT", help=", ".join(mutants()))
    given = parser.parse_args()
    copy_tree()
    build()
    fault = play(given.seconds)
    if fault is not None:
        sys.exit(f"federation_mutants: random play fails without a planted mistake: {fault or 'it has not ended'}")
    missed = [name for name in given.names or mutants() if not check(name, given.seconds)]
    copy_tree()
    sys.exit(f"federation_mutants: not found: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
