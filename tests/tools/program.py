"""Helpers for tests of the program: its path, how to run it, and skipping."""
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
ONE_BUILDS = threading.Lock()  # the library for the fork server
SKIPPED = 4  # exit code of Catch2's programs, known to ctest

# Folders of data sets as in public downloads, and Debian's system folder.
FOLDERS = {"digits": ["mnist", "usps"], "cifar100": ["cifar-100-binary"], "synthetic": [], "pacs": ["pacs-32"],
           "shakespeare-roles": ["shakespeare"],
           "arrays": [], "csv": [], "folder": []}  # user data: files next to their scenarios


def data_found(name):
    """True if the data set `name` is available."""
    roots = [root for root in os.environ.get("MNEME_DATA", "").split(":") if root] + ["/usr/share/datasets"]
    return all(any(os.path.isdir(os.path.join(root, folder)) for root in roots) for folder in FOLDERS.get(name, [name]))


def needs_data(test, name):
    """Skips a test whose data set is missing, or fails it if data are required."""
    if data_found(name):
        return
    if os.environ.get("MNEME_DATA_REQUIRED") == "1":
        test.fail(f"data set '{name}' not found below $MNEME_DATA")
    test.skipTest(f"data set '{name}' not found below $MNEME_DATA")


@functools.lru_cache(maxsize=None)
def _has_nodes():
    said = subprocess.run([PROGRAM, "node"], capture_output=True, text=True, check=False).stderr
    return "MNEME_NODES=ON" not in said


def needs_nodes():
    """Skips the test, or the whole module as setUpModule(), if the program was built without MNEME_NODES."""
    if not _has_nodes():
        raise unittest.SkipTest("built without MNEME_NODES")


@functools.lru_cache(maxsize=None)
def _has_pages():
    said = subprocess.run([PROGRAM, "run", os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml"), "--serve", "0",
                           "--out", os.devnull], capture_output=True, text=True, check=False).stderr
    return "MNEME_LIVE=ON" not in said


def needs_pages():
    """Skips the test, or the whole module as setUpModule(), if the program was built without MNEME_LIVE."""
    if not _has_pages():
        raise unittest.SkipTest("built without MNEME_LIVE")


@functools.lru_cache(maxsize=None)
def _folder_of_copies():
    folder = tempfile.TemporaryDirectory(prefix="mneme-started-")
    atexit.register(folder.cleanup)
    return folder.name


@functools.lru_cache(maxsize=None)
def _copies_of(_thread, program, folder, addresses_bytes):
    """Fork server: forks processes that have loaded the libraries, one at a time. Loading LibTorch takes longer than
    most tests."""
    programs = StartedPrograms(program, _folder_of_copies(), limit_s=3600, addresses_bytes=addresses_bytes,
                               folder_of_runs=folder)
    atexit.register(programs.close)
    return programs


def _settings(environment, copies):
    """Returns the variables in which this environment differs from the fork server's, as NAME=VALUE. None if libraries
    may read them at load time, or if a variable is missing."""
    usual = copies.environment
    other = {name: value for name, value in environment.items() if usual.get(name) != value}
    if usual.keys() - environment.keys() or any(not name.startswith("MNEME_") for name in other):
        return None
    return [f"{name}={value}" for name, value in other.items()]


def mneme(*arguments, environment=None, before=(), addresses_bytes=0, program=PROGRAM, folder=ROOT):
    """Runs the program in this folder, by default the root of the tree, with output in files. Returns exit code and
    output. `before`: words before the command; with them the fork server is not used. `addresses_bytes`: limit of its
    address space; 0: none."""
    with ONE_BUILDS:
        copies = None if before else _copies_of(threading.get_ident(), program, folder, addresses_bytes)
    settings = None
    if copies and copies.library:
        settings = _settings(os.environ if environment is None else environment, copies)
    if settings is None:
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (addresses_bytes, addresses_bytes))
        return subprocess.run([*before, program, *arguments], cwd=folder, env=environment, capture_output=True,
                              text=True, preexec_fn=limit if addresses_bytes > 0 else None)
    return copies.run_apart(arguments, settings)


def thread_settings():
    """Thread settings of machines: {name: arguments of mneme()}. No digest depends on them."""
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
    """Like unittest.main(), but a skip sets the exit code, and its reason is printed on a separate line."""
    result = unittest.main(module="__main__", exit=False).result
    for reason in sorted({reason for _, reason in result.skipped}):
        print(f"skipped: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped else 0)
