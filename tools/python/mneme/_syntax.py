"""Normalized text of code without comments, docstrings, annotations and locations, equal in all Python versions. If the
source is missing or has changed since it was loaded, the bytecode is used."""
import ast
import dis
import linecache
import sys
from functools import lru_cache

known_texts: dict[str, str] = {}  # {file: text} with code; a sweep passes it to its workers
SKIPPED = {"ctx", "annotation", "returns", "type_comment", "type_params", "kind", "simple"}  # ignored fields
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
OUTER_NAMES = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "LOAD_SUPER_ATTR", "STORE_ATTR", "DELETE_ATTR"}
NO_OPERATION = {"EXTENDED_ARG", "CACHE"}


def code_text(function):
    """Text of a Python function: parameters and body."""
    code = function.__code__
    found = None
    if code.co_filename in known_texts:
        found = text_within(known_texts[code.co_filename], code)
    if found is None:
        linecache.checkcache(code.co_filename)
        text = "".join(linecache.getlines(code.co_filename, function.__globals__))
        found = text_within(text, code)
        if found is not None:
            known_texts[code.co_filename] = text
    return bytecode_text(code) if found is None else found


@lru_cache(maxsize=4096)
def text_within(text, code):
    """Text of the function with this code in this source; None unless exactly one matches."""
    parsed = parsed_text(text, code.co_filename)
    if parsed is None or code not in parsed[1]:
        return None
    nodes = [node for node in parsed[0] if first_line(node) == code.co_firstlineno and
             getattr(node, "name", "<lambda>") == code.co_name]
    if len(nodes) > 1:
        nodes = [node for node in nodes if span_of_body(node) == span_of_code(code)]
    texts = {node_text(node, is_root=True) for node in nodes}
    return texts.pop() if len(texts) == 1 else None


@lru_cache(maxsize=64)
def parsed_text(text, file):
    """(nodes of functions, set of all code objects); None if the text is not Python."""
    if not text:
        return None
    try:
        tree = compile(text, file, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        whole = compile(tree, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)], set(codes_within(whole))


def codes_within(code):
    """The code object and all nested ones."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from codes_within(constant)


def first_line(node):
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def span_of_body(node):
    body = node.body if isinstance(node.body, list) else [node.body]
    return (body[0].lineno, body[0].col_offset), (body[-1].end_lineno, body[-1].end_col_offset)


def span_of_code(code):
    """Position of a lambda's expression: ((line, column) of its start, of its end)."""
    places = [place for place in code.co_positions() if None not in place and place[2] != place[3]]
    return (min((line, column) for line, _, column, _ in places),
            max((line, column) for _, line, _, column in places)) if places else None


def node_text(node, is_root=False):
    """Formats a node as nested text. Decorators and defaults of the root are omitted, because they are hashed as
    objects.
    """
    if isinstance(node, list):
        return "[" + " ".join(map(node_text, node)) + "]"
    if not isinstance(node, ast.AST):
        return constant_text(node)
    parts = []
    for name, value in ast.iter_fields(node):
        is_absent = value is None and not isinstance(node, ast.Constant) or isinstance(value, list) and not value
        if name in SKIPPED or is_absent or is_root and name == "decorator_list":
            continue
        if isinstance(node, ast.JoinedStr):  # Python 3.12 adds an empty text at the end of formats
            value = [part for part in value if getattr(part, "value", None) != ""]
        if name == "body" and isinstance(value, list):
            value = without_docstring(node, value)
        if is_root and name == "args":
            value = ast.arguments(**{part: kept for part, kept in ast.iter_fields(value)
                                     if part not in ("defaults", "kw_defaults")}, defaults=[], kw_defaults=[])
        parts.append(f"{name}={node_text(value)}")
    return f"({type(node).__name__} {' '.join(parts)})"


def without_docstring(node, body):
    has_docstring = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and isinstance(body[0], ast.Expr) and isinstance(
        body[0].value, ast.Constant) and isinstance(body[0].value.value, str)
    return body[1:] if has_docstring else body


def constant_text(value):
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)
    if isinstance(value, frozenset):
        return "{" + " ".join(sorted(map(constant_text, value))) + "}"
    if isinstance(value, tuple):
        return "(" + " ".join(map(constant_text, value)) + ",)"
    if isinstance(value, type(constant_text.__code__)):
        return bytecode_text(value)
    return f"{type(value).__name__}:{value!r}"


def bytecode_text(code):
    """Bytecode of the running Python version."""
    constants = code.co_consts
    if constants and isinstance(constants[0], str) and has_docstring(code):
        constants = (None, *constants[1:])
    parts = [code.co_name, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags,
             code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
             getattr(code, "co_exceptiontable", b"").hex(), constants]
    return "(bytecode " + " ".join(map(constant_text, parts)) + ")"


def has_docstring(code):
    """True if the code has a docstring. Python 3.13 sets a flag. In earlier versions a docstring is the first constant,
    and no instruction loads it."""
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & 0x4000000)
    return not any(step.opname == "LOAD_CONST" and step.arg == 0 for step in dis.get_instructions(code))


class References:
    """Names to which code refers."""

    def __init__(self, code):
        self.globals = set()      # names of its module, or builtins
        self.bare = set()         # names that are used other than by attribute access
        self.attributes = set()   # attribute names of any object
        self.imports = []         # (module, level, names or None)
        for part in codes_within(code):
            self.add([step for step in dis.get_instructions(part) if step.opname not in NO_OPERATION])

    def add(self, steps):
        for index, step in enumerate(steps):
            if step.opname in OUTER_NAMES:
                self.globals.add(step.argval)
                if index + 1 == len(steps) or steps[index + 1].opname not in ATTRIBUTES:
                    self.bare.add(step.argval)
            elif step.opname in ATTRIBUTES:
                self.attributes.add(step.argval)
            elif step.opname == "IMPORT_NAME":
                self.imports.append((step.argval, steps[index - 2].argval, steps[index - 1].argval))


@lru_cache(maxsize=4096)
def references_of(code):
    return References(code)
