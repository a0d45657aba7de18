"""Loads methods from Python files, for the command line."""
import hashlib
import importlib.util
import inspect
import os
import sys
import traceback

from mneme import _engine
from mneme._errors import ScenarioError
from mneme._methods import Method, host


def loaded(path):
    """Imports the Python file with this absolute path, unless it is imported already, and returns its module."""
    name = os.path.splitext(os.path.basename(path))[0]
    known = sys.modules.get(name)
    if getattr(known, "__file__", None) != path:
        if known is not None:  # another module has this name
            name = f"{name}_{hashlib.sha256(path.encode()).hexdigest()[:8]}"
        spec = importlib.util.spec_from_file_location(name, path)
        known = importlib.util.module_from_spec(spec)
        sys.modules[name] = known
        sys.path.insert(0, os.path.dirname(path))  # for imports from the file's folder
        spec.loader.exec_module(known)
    return known


def methods_of(path):
    """Named Method classes of a file, in file order. Raises ScenarioError if there is none, and forwards exceptions of
    the file."""
    path = os.path.abspath(os.fspath(path))
    if not os.path.isfile(path):
        raise ScenarioError([(path, "no such file; expected one of Python with classes that derive from mneme.Method")])
    code = loaded(path)
    found = [value for value in vars(code).values() if inspect.isclass(value) and issubclass(value, Method)
             and value.name and value.__module__ == code.__name__]
    if not found:
        raise ScenarioError([(path, "no method; expected a class that derives from mneme.Method and has a name")])
    return found


def run_with(files, words):
    """Runs the command line in this process with the methods of these files. Returns the exit code."""
    try:
        for file in files:
            host(methods_of(file))
    except (ScenarioError, TypeError, ValueError) as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 2
    except Exception:  # raised by the file's code
        traceback.print_exc()
        print(f"error: --python-code {file}: cannot be imported", file=sys.stderr)
        return 2
    code = _engine._run_words(["mneme", *words])
    thrown = _engine._take_error()
    if thrown is not None:  # the program has printed the message; this adds the traceback
        print("the method's exception was raised by", file=sys.stderr)
        traceback.print_tb(thrown.__traceback__)
    return code
