"""What the tests of the program share: where it is, how it is run, what a skip is."""
import os
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
PROGRAM = os.environ.get("MNEME_PROGRAM", os.path.join(ROOT, "build", "release", "mneme"))
SKIPPED = 4  # as Catch2's programs say it; ctest knows

# Folders that hold a data set, as in the public downloads, and Debian's system folder.
FOLDERS = {"digits": ["mnist", "usps"], "cifar100": ["cifar-100-binary"], "synthetic": [], "pacs": ["pacs-32"],
           "arrays": [], "csv": [], "folder": []}  # own data: their files lie beside their scenarios


def data_found(name):
    """Whether the data set `name` is there to be read."""
    roots = [root for root in os.environ.get("MNEME_DATA", "").split(":") if root] + ["/usr/share/datasets"]
    return all(any(os.path.isdir(os.path.join(root, folder)) for root in roots) for folder in FOLDERS.get(name, [name]))


def needs_data(test, name):
    """Ends a test whose data set is missing: skipped, or failed where data are required."""
    if data_found(name):
        return
    if os.environ.get("MNEME_DATA_REQUIRED") == "1":
        test.fail(f"data set '{name}' not found below $MNEME_DATA")
    test.skipTest(f"data set '{name}' not found below $MNEME_DATA")


def mneme(*arguments, environment=None, before=()):
    """Runs the program from the root of the tree; its exit code and what it said. `before`: words in front of it."""
    return subprocess.run([*before, PROGRAM, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)


def thread_settings():
    """What a machine may say about threads: {name: how mneme() is called}. A digest depends on none of it."""
    plain = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    settings = {"OMP_NUM_THREADS unset": {"environment": plain}}
    for number in ("1", "8"):
        settings[f"OMP_NUM_THREADS={number}"] = {"environment": {**plain, "OMP_NUM_THREADS": number}}
    if shutil.which("taskset"):
        for allowed in (2, 8):
            cores = sorted(os.sched_getaffinity(0))[:allowed]
            if len(cores) == allowed:
                chosen = ["taskset", "-c", ",".join(map(str, cores))]
                settings[f"{allowed} cores"] = {"environment": plain, "before": chosen}
    return settings


def run_tests():
    """unittest.main(), but a skip shows in the exit code, and why in a line of its own."""
    result = unittest.main(module="__main__", exit=False).result
    for reason in sorted({reason for _, reason in result.skipped}):
        print(f"skipped: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped else 0)
