"""What the tests of the program share: where it is, how it is run, what a skip is."""
import atexit
import functools
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from started_programs import StartedPrograms  # noqa: E402

PROGRAM = os.environ.get("MNEME_PROGRAM", os.path.join(ROOT, "build", "release", "mneme"))
ONE_BUILDS = threading.Lock()  # the library that copies need
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


@functools.lru_cache(maxsize=None)
def _folder_of_copies():
    folder = tempfile.TemporaryDirectory(prefix="mneme-started-")
    atexit.register(folder.cleanup)
    return folder.name


@functools.lru_cache(maxsize=None)
def _copies_of(_thread, addresses_bytes):
    """What starts copies of a process whose libraries are loaded, one at a time: a start of LibTorch takes longer than
    most tests."""
    programs = StartedPrograms(PROGRAM, _folder_of_copies(), limit_s=3600, addresses_bytes=addresses_bytes,
                               folder_of_runs=ROOT)
    atexit.register(programs.close)
    return programs


def _settings(environment, copies):
    """What this environment sets otherwise than that of copies, as NAME=VALUE; None where libraries may read it
    before the program begins, or a variable is missing."""
    usual = copies.environment
    other = {name: value for name, value in environment.items() if usual.get(name) != value}
    if usual.keys() - environment.keys() or any(not name.startswith("MNEME_") for name in other):
        return None
    return [f"{name}={value}" for name, value in other.items()]


def mneme(*arguments, environment=None, before=(), addresses_bytes=0):
    """Runs the program from the root of the tree; its exit code and what it said, into files. `before`: words in front
    of it, which then is no copy. `addresses_bytes`: that it may take; 0: any number."""
    with ONE_BUILDS:
        copies = None if before else _copies_of(threading.get_ident(), addresses_bytes)
    settings = None
    if copies and copies.library:
        settings = _settings(os.environ if environment is None else environment, copies)
    if settings is None:
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (addresses_bytes, addresses_bytes))
        return subprocess.run([*before, PROGRAM, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True,
                              preexec_fn=limit if addresses_bytes > 0 else None)
    return copies.run_apart(arguments, settings)


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
