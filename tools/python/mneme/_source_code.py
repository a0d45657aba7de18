"""Digest of a method's source: functions and modules."""
import builtins
import functools
import hashlib
import importlib
import os
import sys
import types

from mneme._libraries import is_library_file, library_of
from mneme._syntax import code_text, references_of

HIDING = {"eval", "exec", "globals"}  # builtins that use names that the code does not show
OF_MODULES = {"__file__", "__name__", "__package__", "__spec__", "__loader__", "__doc__", "__path__", "__cached__",
              "__builtins__", "__annotations__"}
PLAIN = (bool, int, float, str, tuple, list, dict, type, types.FunctionType, functools.partial)


class CodeVisits:
    """Visitors of functions and modules for the walk in _source.py."""

    def visit_function(self, function):
        code = function.__code__
        wrapped = getattr(function, "__wrapped__", None)
        if hasattr(function, "registry") and hasattr(function, "dispatch"):  # true for functools.singledispatch
            self.visit_pairs("registry", function.registry.items())
        elif is_library_file(code.co_filename):
            self.visit_library_function(function, wrapped)
        else:
            before = self.place, self.folder
            self.place = f"{code.co_filename}:{code.co_firstlineno}"
            file = function.__globals__.get("__file__")
            self.folder = os.path.dirname(os.path.abspath(file)) if file else ""
            self.say("function", function.__name__, code_text(function))
            self.visit(function.__defaults__, "a default argument")
            self.visit(function.__kwdefaults__, "a default argument")
            self.visit_closure(function)
            self.visit_references(function, references_of(code))
            for name, value in sorted(vars(function).items()):
                if not name.startswith("_torch"):
                    self.say(name)
                    self.visit(value, f"{function.__name__}.{name}")
            self.place, self.folder = before

    def visit_library_function(self, function, wrapped):
        """Hashes a library function by name. Also hashes the function that it wraps and its arguments if they are the
        user's or plain values."""
        module = function.__globals__.get("__name__", "")
        self.say("library function", library_of(module) or module, function.__code__.co_qualname)
        if wrapped is not None:
            self.visit(wrapped, getattr(wrapped, "__name__", "a wrapped function"))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            content = content_of(cell)
            if isinstance(content, PLAIN):
                self.say(name)
                self.visit(content, name)

    def visit_closure(self, function):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self.say("closure", name)
            content = content_of(cell)
            if content is cell:
                self.say("empty")
            else:
                self.visit(content, name)

    def visit_references(self, function, references):
        scope = function.__globals__
        known = vars(builtins)
        for name in sorted(references.globals):
            if name in OF_MODULES:
                continue
            if name in scope:
                self.say("global", name)
                value = scope[name]
                if isinstance(value, types.ModuleType):
                    self.path.append(name)
                    self.visit_module(value, None if name in references.bare else references.attributes)
                    self.path.pop()
                else:
                    self.visit(value, name)
            elif name in HIDING and name in known:
                self.path.append(name)
                raise self.refusal("hides what it refers to", "name it in the code")
        for name, level, wanted in references.imports:
            self.visit_import(function, name, level, wanted, references)

    def visit_import(self, function, name, level, wanted, references):
        """Handles `import name` or `from name import wanted` in a function."""
        self.say("import", "." * level + name, wanted or "")
        library = library_of(name) if level == 0 else ""
        if library:
            self.say("library", library)
            return
        try:
            module = importlib.import_module("." * level + name, function.__globals__.get("__package__"))
        except ImportError:
            self.say("missing")
            return
        self.path.append(name)
        if wanted:
            self.visit_module(module, set(wanted), references.attributes)
        else:
            self.visit_module(sys.modules[name.partition(".")[0]], references.attributes)
        self.path.pop()

    def visit_module(self, module, wanted, further=None):
        """Hashes the wanted names of a user's module (None: all). For modules among them, hashes the names in
        `further`."""
        library = library_of(module.__name__)
        if library:
            self.say("library module", library, module.__name__)
            return
        values = vars(module)
        self.say("module")
        for name in sorted(values if wanted is None else wanted & set(values)):
            if name in OF_MODULES or name in vars(builtins) and values[name] is vars(builtins)[name]:
                continue
            if (id(module), name) in self.numbers:
                self.say("again", name)
                continue
            self.numbers[(id(module), name)] = len(self.numbers)
            self.say("member", name)
            if isinstance(values[name], types.ModuleType):
                self.path.append(name)
                self.visit_module(values[name], wanted and (further or wanted))
                self.path.pop()
            else:
                self.visit(values[name], name)

    def visit_built_in(self, function):
        owner = getattr(function, "__self__", None)
        is_of_module = isinstance(owner, (types.ModuleType, type)) or type(owner).__name__ == "PyCapsule"
        if owner is not None and not is_of_module:
            self.visit_each("bound", (owner, function.__name__))
            return
        module = getattr(function, "__module__", None) or getattr(
            getattr(function, "__objclass__", None), "__module__", None) or "builtins"
        self.say("built-in", self.library_named(module), function.__qualname__)

    def library_named(self, module):
        """Hashes a library by its name, and a user's compiled module by its content."""
        library = library_of(module)
        file = getattr(sys.modules.get(module), "__file__", None)
        if not library and file and not file.endswith(".py"):
            with open(file, "rb") as content:
                library = hashlib.sha256(content.read()).hexdigest()
        return library or "user"


def content_of(cell):
    """Content of a closure cell; the cell itself if it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell
