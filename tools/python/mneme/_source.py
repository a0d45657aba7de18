"""Digest of a method's source: its code and, recursively, everything that the code refers to (functions, classes,
module values, closures, defaults). Python and installed packages are included by name and version only."""
import functools
import hashlib
import logging
import os
import pathlib
import types
import typing

from mneme._errors import ScenarioError
from mneme._source_code import CodeVisits
from mneme._source_objects import DESCRIPTORS, ObjectVisits

MANY = 64  # longer lists of numbers are hashed as one text
BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
            types.MethodWrapperType, types.ClassMethodDescriptorType)
TYPING = (types.GenericAlias, types.UnionType, typing.TypeVar, type(typing.Any), type(typing.Optional[int]),
          type(typing.List))


def digest_of_source(*roots):
    """Hexadecimal digest of these functions and classes and everything that they refer to. Raises ScenarioError with
    the name of an object that cannot be hashed."""
    walk = Walk()
    try:
        for root in roots:
            walk.visit(root, getattr(root, "__name__", type(root).__name__))
    except RecursionError:
        raise walk.refusal("is nested too deeply", "make it flat") from None
    return walk.hash.hexdigest()[:32]


class Walk(CodeVisits, ObjectVisits):
    """Hashes every reachable object once, in an order determined by names."""

    def __init__(self):
        self.hash = hashlib.sha256()
        self.numbers = {}     # {id: number} of visited objects
        self.alive = []       # keeps objects alive, so that ids are unique
        self.path = []        # names from the root to the current object
        self.place = ""       # FILE:LINE of the referring function
        self.folder = ""      # folder of that function's module

    def say(self, *texts):
        for text in texts:
            content = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
            self.hash.update(len(content).to_bytes(8, "little") + content)

    def is_known(self, value):
        """Returns True if the value was visited before, and hashes its number instead."""
        if id(value) in self.numbers:
            self.say("again", self.numbers[id(value)])
            return True
        self.numbers[id(value)] = len(self.numbers)
        self.alive.append(value)
        return False

    def refusal(self, what, fix):
        names = self.path[1:] or self.path
        return ScenarioError([(self.place, f"the method '{self.path[0]}' refers to '{names[-1]}', which {what}, so the "
                                           f"method's source (strategy.source) has no digest; {fix}. It was reached by "
                                           f"{' > '.join(self.path)}")])

    def visit(self, value, name):
        self.path.append(name)
        self.visit_value(value)
        self.path.pop()

    def visit_value(self, value):
        kind = type(value)
        if value is None or kind in (bool, int, complex, types.EllipsisType, types.NotImplementedType, range, slice):
            self.say(kind.__name__, hex(value) if kind is int else repr(value))
        elif kind is float:
            self.say("float", value.hex())
        elif kind is str:
            self.say("str", self.without_folder(value))
        elif isinstance(value, pathlib.PurePath):
            self.say("path", self.without_folder(str(value)))
        elif kind in (bytes, bytearray):
            self.say(kind.__name__, bytes(value))
        elif kind is tuple:
            self.visit_each("tuple", value)
        elif kind in (set, frozenset):
            self.say(kind.__name__, len(value), *sorted(self.digest_alone(part) for part in value))
        elif not self.is_known(value):
            self.visit_object(value, kind)

    def visit_object(self, value, kind):
        if kind is list:
            self.visit_each("list", value)
        elif isinstance(value, (set, frozenset)):
            self.visit(kind, kind.__name__)
            self.say(*sorted(self.digest_alone(part) for part in value))
        elif kind is dict or kind is types.MappingProxyType:
            self.visit_pairs("dict", value.items())
        elif isinstance(value, types.ModuleType):
            self.visit_module(value, None)
        elif isinstance(value, TYPING):
            self.say("type", repr(value))
        elif isinstance(value, type):
            self.visit_class(value)
        elif isinstance(value, types.FunctionType):
            self.visit_function(value)
        else:
            for known, visit in self.wrappers():
                if isinstance(value, known):
                    visit(value)
                    return
            self.visit_foreign(value)

    def wrappers(self):
        """Visitors for objects that wrap a function, by type."""
        each = self.visit_each
        return ((types.MethodType, lambda v: each("method", (v.__func__, v.__self__))),
                (BUILT_IN, self.visit_built_in),
                (DESCRIPTORS, lambda v: self.say("slot", v.__name__)),
                (staticmethod, lambda v: each("staticmethod", [v.__func__])),
                (classmethod, lambda v: each("classmethod", [v.__func__])),
                (property, lambda v: each("property", (v.fget, v.fset, v.fdel))),
                (functools.cached_property, lambda v: each("cached_property", [v.func])),
                (functools.partial, lambda v: each("partial", (v.func, v.args, v.keywords))),
                (functools.partialmethod, lambda v: each("partialmethod", (v.func, v.args, v.keywords))),
                (functools.singledispatchmethod, lambda v: each("dispatch", [v.dispatcher])),
                (type(functools.lru_cache(len)), lambda v: each("cached", (v.cache_parameters(), v.__wrapped__))),
                ((logging.Logger, logging.LoggerAdapter), lambda v: self.say("logger")))

    def visit_each(self, kind, parts):
        if len(parts) > MANY and set(map(type, parts)) <= {bool, int, float}:
            self.say(kind, len(parts), repr(parts))
            return
        self.say(kind, len(parts))
        for index, part in enumerate(parts):
            self.visit(part, f"{self.path[-1]}[{index}]" if kind in ("tuple", "list") else self.path[-1])

    def visit_pairs(self, kind, items):
        pairs = sorted(((self.digest_alone(key), key, part) for key, part in items), key=lambda pair: pair[0])
        self.say(kind, len(pairs))
        for digest, key, part in pairs:
            self.say(digest)
            self.visit(part, f"{self.path[-1]}[{key!r}]"[:100])

    def digest_alone(self, value):
        """Separate digest of an element of a set or of a dict's key, which have no order."""
        if type(value) is str:
            return "s" + value
        alone = Walk()
        alone.path, alone.place, alone.folder = list(self.path), self.place, self.folder
        alone.visit_value(value)
        return alone.hash.hexdigest()

    def without_folder(self, text):
        """Makes a path in the module's folder relative, so that the digest does not depend on the location."""
        if self.folder and (text + os.sep).startswith(self.folder + os.sep):
            return "<folder>" + text[len(self.folder):]
        return text
