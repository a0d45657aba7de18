"""Version and dependencies of the wheel (pyproject.toml), from the single places that state them.

CMakeLists.txt states the version. tools/bootstrap states the default version of torch; $MNEME_TORCH_VERSION selects
another one. The package uses torch's libraries, so it needs the minor version of the build. Wheels for another version
of torch name that version in their local version: 0.1.0+torch2.13.
"""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find(file, pattern):
    with open(os.path.join(ROOT, file), encoding="utf-8") as text:
        return re.search(pattern, text.read(), re.M).group(1)


def mneme_version():
    return find("CMakeLists.txt", r"^project\(mneme VERSION ([0-9.]+)")


def torch_minor(version):
    return ".".join(version.split(".")[:2])


def default_torch():
    return torch_minor(find("tools/bootstrap", r"^torch_default=([0-9.]+)"))


def dynamic_metadata(settings=None, project=None):
    """Called by scikit-build-core; returns the dynamic fields of pyproject.toml."""
    default = default_torch()
    torch = torch_minor(os.environ.get("MNEME_TORCH_VERSION") or default)
    local = "" if torch == default else f"+torch{torch}"
    return {"version": mneme_version() + local, "dependencies": [f"torch=={torch}.*", "numpy"]}
