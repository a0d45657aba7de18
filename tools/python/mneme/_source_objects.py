"""Digest of a method's source: classes and objects."""
import collections.abc
import copyreg
import enum
import inspect
import sys
import types

from mneme._libraries import is_library_file, library_of

# Class attributes added by Python, and those that do not affect results.
NOT_SOURCE = {"__module__", "__dict__", "__weakref__", "__doc__", "__qualname__", "__annotations__", "__annotate__",
              "__annotate_func__", "__annotations_cache__", "__conditional_annotations__", "__firstlineno__",
              "__static_attributes__", "__abstractmethods__", "_abc_impl", "__orig_bases__", "__parameters__",
              "__match_args__", "__dataclass_fields__", "__dataclass_params__", "__replace__", "__slotnames__",
              "__classcell__", "summary", "_allows_source_change"}
OF_A_RUN = {"setup", "place", "ctx", "_host", "_frozen"}  # set by runs
DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
HEAP_TYPE = 1 << 9  # flag of classes created by Python code; exec() without __name__ makes them look like builtins


class ObjectVisits:
    """Visitors of classes and objects for the walk in _source.py."""

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

    def visit_foreign(self, value):
        for visit in (self.visit_of_mneme, self.visit_tensor, self.visit_array, self.visit_named):
            if visit(value):
                return
        kind = f"is {article(type(value).__qualname__)}"
        if is_random_generator(value):
            raise self.refusal(kind + ", whose numbers depend on earlier draws",
                               "draw from ctx.random() or self.ctx.random()")
        if isinstance(value, collections.abc.Iterator):
            raise self.refusal(kind + ", which is consumed when it is read",
                               "read it in prepare(), or store its items in a list")
        inner = getattr(value, "__wrapped__", None) or getattr(value, "py_func", None)
        if callable(inner) and library_of(type(value).__module__):  # numba and others compile a function
            self.say("compiled", type(value).__qualname__)
            self.visit(inner, getattr(inner, "__name__", "a compiled function"))
            return
        self.visit_state(value, kind)

    def visit_state(self, value, kind):
        """Hashes any object by its pickle state."""
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            parts = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001  libraries raise exceptions of any class
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
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):  # state of a class with slots
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
        elif isinstance(value, (_engine.RoundInfo, _engine.Rows)):
            names = ("numbers",) if isinstance(value, _engine.Rows) else (
                "round", "task", "round_of_task", "rounds_of_task", "seen_classes", "current_classes")
            self.visit_each("values", [getattr(value, name) for name in names])
        else:
            return False
        return True

    def visit_named(self, value):
        """Hashes a compiled function by its name in its module."""
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


def is_generated(cls, name, value):
    """True for attributes generated by a decorator or a base class."""
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
    """True for Python classes outside libraries."""
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
