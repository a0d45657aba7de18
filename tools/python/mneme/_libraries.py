"""Distinguishes library modules (standard or installed ones) from the modules of the user."""
import importlib.metadata
import importlib.util
import os
import sys
import sysconfig
from functools import lru_cache

OURS = os.path.dirname(os.path.abspath(__file__))
PYTHONS = tuple({os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")})
INSTALLED = {"site-packages", "dist-packages"}
WITHOUT_VERSION = {"mneme", "torch"}  # the package requires one minor version of torch


@lru_cache(maxsize=4096)
def is_library_file(file):
    """True for files of Python, of installed packages and of mneme."""
    if file.startswith("<frozen "):
        return True
    path = os.path.realpath(file)
    ours = (OURS + os.sep, os.path.realpath(__file__)[:-len("_libraries.py")])
    return (bool(INSTALLED & set(path.split(os.sep))) or path.startswith((*ours, *PYTHONS)) or
            os.path.abspath(file).startswith(ours))


def library_of(module):
    """Returns "name" or "name version" of the library that contains this module; "" for the user's modules."""
    root = module.partition(".")[0]
    if root == "__main__" or not root:
        return ""
    if root in WITHOUT_VERSION:
        return root
    file = getattr(sys.modules.get(root), "__file__", None) or spec_file(root)
    if file is None:
        return "python" if root in sys.stdlib_module_names or root == "builtins" else ""
    if not is_library_file(file):
        return ""
    if not INSTALLED & set(os.path.realpath(file).split(os.sep)):
        return "python"
    return f"{root} {version_of(root)}"


@lru_cache(maxsize=1024)
def version_of(root):
    known = getattr(sys.modules.get(root), "__version__", None)
    if isinstance(known, str):
        return known
    try:
        return importlib.metadata.version(root)
    except importlib.metadata.PackageNotFoundError:
        return "of no version"


def spec_file(root):
    """File of a package that is not imported yet; None if it is not found."""
    if root in sys.modules:
        return None
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or [])
    return spec.origin if spec.has_location else os.path.join(places[0], "__init__.py") if places else None
