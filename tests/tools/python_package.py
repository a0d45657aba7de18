"""Helpers for tests of the Python package: they restart themselves in a Python with torch and the package of the build
folder `python`. Without these they are skipped, or fail where they are required (.ci/run)."""
import glob
import os
import subprocess
import sys

from program import ROOT, SKIPPED, run_tests  # noqa: F401

BUILT = [os.path.join(ROOT, "build", preset, "package") for preset in ("release", "python")]
PACKAGE = os.environ.get("MNEME_PACKAGE", next(filter(os.path.exists, BUILT), BUILT[-1]))


def python_with_torch():
    """$MNEME_PYTHON, or the Python of `tools/bootstrap --python`; "" if there is none."""
    cache = os.environ.get("MNEME_DEPS", os.path.expanduser("~/.cache/mneme"))
    made = sorted(glob.glob(os.path.join(cache, "python-*", "bin", "python")))
    for path in [os.environ.get("MNEME_PYTHON", ""), *made]:
        if path and os.path.exists(path):
            return path
    return ""


def enter():
    """Restarts the test in that Python, with the package. Call it before `import mneme`."""
    if os.environ.get("MNEME_IN_PACKAGE"):
        return
    why = ""
    python = python_with_torch()
    if not glob.glob(os.path.join(PACKAGE, "mneme", "_engine*.so")):
        why = "the Python package is not built (tools/build python python_package)"
    elif not python:
        why = "no Python with torch 2.11 (tools/bootstrap --python)"
    if why:
        print(f"skipped: {why}")
        sys.exit(1 if os.environ.get("MNEME_PYTHON_REQUIRED") == "1" else SKIPPED)
    here = os.path.dirname(os.path.abspath(__file__))
    search = os.pathsep.join([PACKAGE, here])
    done = subprocess.run([python, *sys.argv], env={**os.environ, "MNEME_IN_PACKAGE": "1", "PYTHONPATH": search},
                          check=False)
    sys.exit(done.returncode)


TINY = {
    "title": "Python", "seed": 3,
    "data": {"name": "synthetic", "shape": [64], "classes": 10, "rows": 1000},
    "tasks": {"count": 2}, "clients": {"count": 12},
    "rounds": {"per_task": 3, "cohort": 6},
    "model": {"name": "mlp", "hidden": [16]},
    "training": {"batch": 10, "learning_rate": 0.1},
    "checkpoint": {"force": True},
}


def scenario(method, **sections):
    """Returns the scenario of these tests with this method, and other keys by section."""
    chosen = {**TINY, "strategy": {"name": method}}
    for name, keys in sections.items():
        chosen[name] = {**chosen.get(name, {}), **keys} if isinstance(keys, dict) else keys
    return chosen
