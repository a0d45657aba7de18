"""The digest of a method's source: of its code, and of all that the code refers to, followed to the end: functions,
classes, values of modules, closures, defaults. Python's own and installed packages count by name and version."""
import builtins
import collections.abc
import copyreg
import enum
import functools
import hashlib
import importlib
import inspect
import logging
import os
import pathlib
import sys
import types
import typing

from mneme._errors import ScenarioError
from mneme._libraries import is_library_file, library_of
from mneme._syntax import code_text, references_of

# Of a class: what Python adds by itself, and what says nothing of what a method computes.
NOT_SOURCE = {"__module__", "__dict__", "__weakref__", "__doc__", "__qualname__", "__annotations__", "__annotate__",
              "__annotate_func__", "__annotations_cache__", "__conditional_annotations__", "__firstlineno__",
              "__static_attributes__", "__abstractmethods__", "_abc_impl", "__orig_bases__", "__parameters__",
              "__match_args__", "__dataclass_fields__", "__dataclass_params__", "__replace__", "__slotnames__",
              "__classcell__", "summary", "_mended"}
OF_A_RUN = {"setup", "place", "ctx", "_host", "_frozen"}  # attributes of a method and its server that runs set
HIDING = {"eval", "exec", "globals"}  # builtins behind which a name cannot be seen
MANY = 64  # numbers of a list are said at once
OF_MODULES = {"__file__", "__name__", "__package__", "__spec__", "__loader__", "__doc__", "__path__", "__cached__",
              "__builtins__", "__annotations__"}
PLAIN = (bool, int, float, str, tuple, list, dict, type, types.FunctionType, functools.partial)
DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
BUILT_IN = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
            types.MethodWrapperType, types.ClassMethodDescriptorType)
HEAP_TYPE = 1 << 9  # of classes that Python code has made: exec() without a __name__ has those of builtins
TYPING = (types.GenericAlias, types.UnionType, typing.TypeVar, type(typing.Any), type(typing.Optional[int]),
          type(typing.List))


def digest_of_source(*roots):
    """Hexadecimal digest of these functions and classes and of all that they refer to. Throws ScenarioError for what
    has no digest, by name."""
    walk = Walk()
    try:
        for root in roots:
            walk.visit(root, getattr(root, "__name__", type(root).__name__))
    except RecursionError:
        raise walk.refusal("is nested too deeply", "make it flat") from None
    return walk.hash.hexdigest()[:32]


class Walk:
    """Feeds what it meets to a hash, each object once and in an order that follows from names."""

    def __init__(self):
        self.hash = hashlib.sha256()
        self.numbers = {}     # {id: number} of what was met
        self.alive = []       # so that no id comes twice
        self.path = []        # names from the root to what is visited
        self.place = ""       # FILE:LINE of the function that refers to it
        self.folder = ""      # of the module of that function

    def say(self, *texts):
        for text in texts:
            content = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
            self.hash.update(len(content).to_bytes(8, "little") + content)

    def is_known(self, value):
        """True, and the number of its first meeting is said, where it was met before."""
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
        """What stands for a function."""
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
        """Of an element of a set or a key, which have no order."""
        if type(value) is str:
            return "s" + value
        alone = Walk()
        alone.path, alone.place, alone.folder = list(self.path), self.place, self.folder
        alone.visit_value(value)
        return alone.hash.hexdigest()

    def without_folder(self, text):
        """A path below the folder of the module, relative to it: the digest does not depend on where it lies."""
        if self.folder and (text + os.sep).startswith(self.folder + os.sep):
            return "<folder>" + text[len(self.folder):]
        return text

    # -- functions -----------------------------------------------------------------------------------------------------

    def visit_function(self, function):
        code = function.__code__
        wrapped = getattr(function, "__wrapped__", None)
        if hasattr(function, "registry") and hasattr(function, "dispatch"):  # functools.singledispatch
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
        """By name; and what it wraps, or was made with, where that is the user's or a plain value."""
        module = function.__globals__.get("__name__", "")
        self.say("library function", library_of(module) or module, function.__code__.co_qualname
                 if hasattr(function.__code__, "co_qualname") else function.__code__.co_name)
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
        """`import name` or `from name import wanted` within a function."""
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
        """Of the user's, the values of the wanted names, or of all: (None); of modules among them the further names."""
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
        """The library, or the content of a compiled module of the user's."""
        library = library_of(module)
        file = getattr(sys.modules.get(module), "__file__", None)
        if not library and file and not file.endswith(".py"):
            with open(file, "rb") as content:
                library = hashlib.sha256(content.read()).hexdigest()
        return library or "user"

    # -- classes -------------------------------------------------------------------------------------------------------

    def visit_class(self, cls):
        library = library_of(cls.__module__ or "builtins")
        if library and not (cls.__module__ == "builtins" and cls.__flags__ & HEAP_TYPE):
            self.say("library class", library, cls.__qualname__)
            return
        self.place = self.place or getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
        self.say("class", cls.__name__, len(cls.__bases__))
        for base in (*cls.__bases__, type(cls)):
            self.visit(base, base.__name__)
        if isinstance(cls, enum.EnumMeta):
            self.visit_each("members", [(name, member.value) for name, member in cls.__members__.items()])
        if "__dataclass_fields__" in vars(cls):
            self.visit_dataclass(cls)
        for name, value in sorted(vars(cls).items(), key=lambda item: item[0]):
            if name in NOT_SOURCE or isinstance(value, DESCRIPTORS) or is_generated(cls, name, value):
                continue
            self.say(name)
            self.visit(value, f"{cls.__name__}.{name}")

    def visit_dataclass(self, cls):
        options = cls.__dataclass_params__
        self.say(*(getattr(options, name) for name in ("init", "repr", "eq", "order", "unsafe_hash", "frozen")))
        for name, field in cls.__dataclass_fields__.items():
            self.say("field", name, field.init, field.compare, field.kw_only)
            for part in (field.default, field.default_factory):
                self.visit(part, f"{cls.__name__}.{name}")

    # -- other objects -------------------------------------------------------------------------------------------------

    def visit_foreign(self, value):
        for visit in (self.visit_of_mneme, self.visit_tensor, self.visit_array, self.visit_named):
            if visit(value):
                return
        kind = f"is {article(type(value).__qualname__)}"
        if is_random_generator(value):
            raise self.refusal(kind + ", whose numbers depend on what was drawn before",
                               "draw from ctx.random() or self.ctx.random()")
        if isinstance(value, collections.abc.Iterator):
            raise self.refusal(kind + ", which changes when it is read",
                               "read it in prepare(), or keep a list of what it gives")
        inner = getattr(value, "__wrapped__", None) or getattr(value, "py_func", None)
        if callable(inner) and library_of(type(value).__module__):  # numba and others compile a function
            self.say("compiled", type(value).__qualname__)
            self.visit(inner, getattr(inner, "__name__", "a compiled function"))
            return
        self.visit_state(value, kind)

    def visit_state(self, value, kind):
        """Any object, as copying takes it apart."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001  libraries raise what they like
            raise self.refusal(kind + " with a state that Python cannot read",
                               "make it in prepare() or in the function that uses it, or give its class "
                               "__getstate__()") from None
        if isinstance(parts, str):
            self.say("named", self.library_named(type(value).__module__), parts)
            return
        made_by, arguments, state, items, pairs = (*parts, None, None, None)[:5]
        self.say("object")
        self.visit(made_by, self.path[-1])
        self.visit(arguments, self.path[-1])
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):  # of a class with slots
            state = {**(state[0] or {}), **state[1]}
        if isinstance(state, dict):
            self.say("state", len(state))
            for name, part in sorted(state.items(), key=lambda item: str(item[0])):
                self.say(name)
                self.visit(part, f"{self.path[-1]}.{name}")
        else:
            self.visit(state, self.path[-1])
        self.visit_each("list", list(items or ()))
        self.visit_pairs("dict", list(pairs or ()))

    def visit_of_mneme(self, value):
        from mneme import _engine, _methods
        if isinstance(value, _engine.Loss):
            native, written = value._content()
            self.say("loss", native)
            for function, factor in written:
                self.say(float(factor).hex())
                self.visit(function, getattr(function, "__name__", "a loss"))
        elif isinstance(value, _methods.key):
            self.visit_each("key", (value.default, value.low, value.high, value.choices))
        elif isinstance(value, (_methods.Method, _methods.Server)):
            self.say("half")
            self.visit(type(value), type(value).__name__)
            self.visit_pairs("attributes", [pair for pair in vars(value).items() if pair[0] not in OF_A_RUN])
        elif isinstance(value, _engine.Setup):
            self.say("setup")
        elif isinstance(value, (_engine.Place, _engine.Rows)):
            names = ("numbers",) if isinstance(value, _engine.Rows) else (
                "round", "task", "round_of_task", "rounds_of_task", "opened", "current")
            self.visit_each("values", [getattr(value, name) for name in names])
        else:
            return False
        return True

    def visit_named(self, value):
        """A function of compiled code, by the name that its module has for it."""
        module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
        if not isinstance(module, str) or not isinstance(name, str) or is_class_of_user(type(value)):
            return False
        if getattr(sys.modules.get(module), name, None) is not value and not type(value).__module__ == "torch._ops":
            return False
        self.say("named", self.library_named(module), module, name)
        return True

    def visit_tensor(self, value):
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        if isinstance(value, torch.Tensor):
            dense = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
            if dense.layout != torch.strided or dense.is_quantized:
                raise self.refusal("is a sparse or quantized tensor", "use a dense one")
            self.say("tensor", dense.dtype, tuple(dense.shape), dense.flatten().view(torch.uint8).numpy().tobytes())
        elif isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            self.say(type(value).__name__, value)
        elif isinstance(value, torch.jit.ScriptFunction):
            self.say("script", value.code)
        elif isinstance(value, torch.jit.ScriptModule):
            parts = [(name, part.code) for name, part in value.named_modules() if hasattr(part, "forward")]
            self.visit_each("script", [parts, dict(value.state_dict())])
        else:
            return False
        return True

    def visit_array(self, value):
        numpy = sys.modules.get("numpy")
        if numpy is None or not isinstance(value, (numpy.ndarray, numpy.generic, numpy.dtype, numpy.ufunc)):
            return False
        if isinstance(value, numpy.ufunc):
            self.say("ufunc", library_of("numpy"), value.__name__)
        elif isinstance(value, numpy.dtype):
            self.say("dtype", value.str, value.descr if value.names else "")
        elif value.dtype.hasobject:
            self.visit_each("objects", (value.shape, value.tolist()))
        else:
            self.say("array", value.dtype.str, value.dtype.descr if value.dtype.names else "", value.shape,
                     numpy.ascontiguousarray(value).tobytes())
        return True


def content_of(cell):
    """What a closure's cell holds; the cell itself while it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def is_generated(cls, name, value):
    """True for what a decorator or a base class has written into the class."""
    if isinstance(cls, enum.EnumMeta):
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        return not isinstance(function, types.FunctionType) or is_library_file(function.__code__.co_filename)
    is_written_by_library = "__dataclass_fields__" in vars(cls) or issubclass(cls, tuple) and hasattr(cls, "_fields")
    function = inspect.unwrap(getattr(value, "__func__", value)) if callable(value) else value
    code = getattr(function, "__code__", None)
    made = code is None or code.co_filename.startswith("<") or is_library_file(code.co_filename)
    of_tuple = type(value).__name__ == "_tuplegetter"
    return is_written_by_library and (of_tuple or callable(getattr(value, "__func__", value)) and made and
                                      (name.startswith("__") or name in ("_make", "_replace", "_asdict")))


def is_class_of_user(cls):
    """True for classes of Python code that is no library."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    return cls.__module__ == "__main__" or file.endswith(".py") and not is_library_file(file)


def is_random_generator(value):
    import random
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    return (isinstance(value, random.Random) or torch is not None and isinstance(value, torch.Generator) or
            numpy is not None and isinstance(value, (numpy.random.Generator, numpy.random.RandomState,
                                                     numpy.random.BitGenerator)))


def article(name):
    return ("an " if name[:1] in "aeiouAEIOU" else "a ") + name
