"""Finds the Python with torch, and the package, for benchmarks that need them."""
import os
import shlex
import subprocess

import measure

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def python_and_package():
    """Returns the Python with torch and the folder of the package. Builds the package if the environment does not name
    it."""
    named = os.environ.get("MNEME_PYTHON"), os.environ.get("MNEME_PACKAGE")
    if all(named):
        return named
    if subprocess.run([os.path.join(ROOT, "tools", "build"), "release", "mneme", "python_package"]).returncode != 0:
        raise measure.Failure("the build failed")
    told = subprocess.run([os.path.join(ROOT, "tools", "bootstrap"), "--python"], capture_output=True, text=True,
                          check=True).stdout
    folders = dict(word.split("=", 1) for word in shlex.split(told))
    return folders["MNEME_PYTHON"], os.path.join(ROOT, "build", "release", "package")
