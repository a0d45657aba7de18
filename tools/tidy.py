#!/usr/bin/env python3
"""Layout rules as a test: tidy.py [ROOT] prints `path:line: rule: problem` and fails if there is any problem.

The rules are heuristics over text, not a compiler. The docstring of each rule states what it checks.
"""
import ast
import collections
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "checks"))
from cpp_text import NOT_CODE, Lines, blanked, code_of, declared_name, first_character, pieces  # noqa: E402
from findings import CALLED_BY_OTHERS, CODE, Finding, numbered, top  # noqa: E402
from name_rules import header_names, one_type, spread_names  # noqa: E402

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
LINE_CHARACTERS_MAX = 120
SKIPPED_FOLDERS = {"build", "runs", ".git", "__pycache__"}


# -- Files of the tree ------------------------------------------------------------------------------------------------

def listed_by_git(root):
    """Tracked files and new files that are not ignored; None outside a git checkout."""
    if not os.path.exists(os.path.join(root, ".git")):
        return None
    done = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          capture_output=True, text=True)
    return [name for name in done.stdout.split("\0") if name] if done.returncode == 0 else None


def listed_by_walking(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), root)


def read_tree(root):
    """{path: text} of all text files, paths with forward slashes."""
    tree = {}
    names = listed_by_git(root)
    for name in sorted(listed_by_walking(root) if names is None else names):
        try:
            with open(os.path.join(root, name), encoding="utf-8") as file:
                tree[name.replace(os.sep, "/")] = file.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            pass  # not text, or deleted and not yet committed
    return tree


# -- Rules: files -----------------------------------------------------------------------------------------------------

def file_length(tree):
    """Files of code have at most 500 lines."""
    for path, text in tree.items():
        lines = text.count("\n")
        if path.endswith(CODE + (".py", ".cmake")) and lines > FILE_LINES_MAX:
            what = f"{lines} lines, at most {FILE_LINES_MAX}: split it by topic"
            yield Finding(path, lines, "file-length", what)


def line_length(tree):
    """Lines of code have at most 120 characters."""
    for path, text in tree.items():
        if path.endswith(CODE + (".py",)):
            for line, content in numbered(text):
                if len(content) > LINE_CHARACTERS_MAX:
                    what = f"{len(content)} characters, at most {LINE_CHARACTERS_MAX}"
                    yield Finding(path, line, "line-length", what)


def function_length(tree):
    """Functions have at most 70 lines, from the signature to the closing brace."""
    for path, text in tree.items():
        functions = ()
        if path.endswith(".py"):
            functions = python_functions(text)
        elif path.endswith(CODE):
            functions = cpp_functions(text)
        for line, name, lines in functions:
            if lines > FUNCTION_LINES_MAX:
                what = f"'{name}' has {lines} lines, at most {FUNCTION_LINES_MAX}"
                yield Finding(path, line, "function-length", what)


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.name, node.end_lineno - node.lineno + 1


def cpp_functions(text):
    code = code_of(text)
    line_of = Lines(code)
    for piece in pieces(code):
        if piece.opens == "function":
            first = line_of(first_character(piece))
            yield first, declared_name(piece) or "function", line_of(piece.end) - first + 1


def header_starts(tree):
    """The first line of a header is a /// sentence, and the header is included once."""
    for path, text in tree.items():
        if path.endswith((".hpp", ".cuh")):
            if not text.startswith("/// "):
                yield Finding(path, 1, "header", "the first line is a `///` sentence that describes the file")
            if not re.search(r"^#pragma once$", text, re.M):
                yield Finding(path, 1, "header", "`#pragma once` is missing")


# -- Rules: dependencies ----------------------------------------------------------------------------------------------

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
OWN_FOLDERS = ("runtime", "strategies", "actors", "tools", "tests")
LAYERED = ("runtime", "strategies", "actors")  # top folders in which every file belongs to a layer
NOT_FOR_METHODS = {"thread", "mutex", "shared_mutex", "condition_variable", "future", "stop_token", "fstream"}


def includes(tree, folders):
    """(path, line, own, other) of every #include in code of these top folders. Either own header or other header is
    None.
    """
    for path, text in tree.items():
        if path.endswith(CODE) and top(path) in folders:
            for line, content in numbered(text):
                match = INCLUDE.match(content)
                if match:
                    yield path, line, match.group(1), match.group(2)


def include_names(tree):
    """Own headers exist; only actors and tools include CAF; methods use no threads and no files; only tests include
    tests."""
    for path, line, own, other in includes(tree, OWN_FOLDERS):
        for what in forbidden_include(tree, path, own, other):
            yield Finding(path, line, "include", what)


def forbidden_include(tree, path, own, other):
    folder = top(path)
    name = own or other
    if folder == "tools" and top(name) == "tests":
        yield f"tools/ must not include tests/ ({name})"
    if own and own not in tree:
        yield f'"{own}" does not exist; paths are relative to the root'
    if name.startswith("caf/") and folder in ("runtime", "strategies"):
        yield f"{folder}/ must not include CAF ({name})"
    if folder == "strategies" and other in NOT_FOR_METHODS:
        yield f"a method has no threads, locks or files (<{other}>)"
    if name == "torch/" + "torch.h":
        yield "costs 12 s a file; include ATen/ATen.h or single operators"
    if name == "ATen/ATen.h" and path.endswith(".hpp") and folder != "tests":
        yield "headers include ATen/core/Tensor.h"


LAYERS_FILE = "tools/cmake/layers.cmake"
LAYER_LINE = re.compile(r"^(?:layer\(|optional_layer\(MNEME_[A-Z]+ )(\S+?)((?:\s+\w+)*)\)", re.M)
OPTIONAL_LINE = re.compile(r"^optional_layer\(MNEME_[A-Z]+ (\S+)", re.M)


def read_layers(tree):
    """Returns {folder: folders that it may include}, as the build declares them."""
    declared = LAYER_LINE.findall(tree.get(LAYERS_FILE, ""))
    folder_of = {folder.rsplit("/", 1)[-1]: folder for folder, _ in declared}
    return {folder: [folder_of.get(name, name) for name in names.split()] for folder, names in declared}


def layer_of(path, layers):
    """Returns the declared folder that contains the file; None if it belongs to no layer."""
    folders = path.split("/")[:-1]
    return next((name for name in ("/".join(folders[:depth]) for depth in (3, 2, 1)) if name in layers), None)


def layer_arrows(tree):
    """A layer may include only the layers that its line in tools/cmake/layers.cmake names, and must include each of
    them."""
    layers = read_layers(tree)
    used = set()
    for path, line, own, other in includes(tree, OWN_FOLDERS):
        name = own or other
        here, there = layer_of(path, layers), layer_of(name, layers)
        used.add((here, there))
        if here and top(name) in OWN_FOLDERS and there != here and there not in layers[here]:
            yield Finding(path, line, "layer", f"{here} must not include {there or top(name)} ({LAYERS_FILE})")
    text = tree.get(LAYERS_FILE, "")
    optional = set(OPTIONAL_LINE.findall(text))
    for match in LAYER_LINE.finditer(text):
        for there in layers[match.group(1)]:
            if there in optional and match.group(1) not in optional:
                line = Lines(text)(match.start())
                yield Finding(LAYERS_FILE, line, "layer",
                              f"{match.group(1)} depends on {there}, which builds may leave out; register it at a door")
            if (match.group(1), there) not in used:
                line = Lines(text)(match.start())
                yield Finding(LAYERS_FILE, line, "layer", f"{match.group(1)} includes nothing of {there}")


def layer_files(tree):
    """Every source file belongs to a layer; none lies directly in runtime/ or actors/."""
    layers = read_layers(tree)
    for path in tree:
        if top(path) in ("runtime", "actors") and path.count("/") == 1:
            yield Finding(path, 1, "layer", f"{top(path)}/ has folders only")
        elif top(path) in LAYERED and path.endswith(CODE) and layer_of(path, layers) is None:
            yield Finding(path, 1, "layer", f"no line of {LAYERS_FILE} declares its folder")


SHARED = "strategies/shared/"


def family_of(path):
    """Family of methods of a file in strategies/: its folder, or the file itself at the top level."""
    return path.split("/")[1]


def reached_from(path, uses):
    """Files that this file needs, including itself. uses: {file: files that it names}"""
    reached, waiting = set(), [path]
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting.extend(uses.get(path, ()))
    return reached


def families(tree):
    """A family of methods includes only itself and strategies/shared, which has code of two or more families."""
    uses, users = collections.defaultdict(list), collections.defaultdict(set)
    for path, line, own, _ in includes(tree, ("strategies",)):
        if top(own or "") != "strategies":
            continue
        uses[path].append(own)
        source = own[:-4] + ".cpp"
        if source in tree:
            uses[own].append(source)
        if not own.startswith(SHARED) and family_of(own) != family_of(path):
            what = f"{family_of(path)} must not include {family_of(own)}; what both use belongs in {SHARED}"
            yield Finding(path, line, "family", what)
    for path in tree:
        if top(path) == "strategies" and path.endswith(CODE) and not path.startswith(SHARED):
            for name in reached_from(path, uses):
                users[name].add(family_of(path))
    for path in tree:
        if path.startswith(SHARED) and len(users[path]) < 2:
            by = " and ".join(users[path])
            what = f"used by {by} only: it belongs in strategies/{by}/" if by else "no method uses it"
            yield Finding(path, 1, "family", what)


CLOCKS = re.compile(r"\b(?:system_clock|steady_clock|high_resolution_clock|utc_clock|gettimeofday|clock_gettime)\b"
                    r"|\bstd::time\s*\(|this_thread::get_id")
GENERATORS = re.compile(r"\bstd::random_device\b|\bs?rand\s*\(|\bmanual_seed\b|\bdefault_random_engine\b"
                        r"|\bstd::\w+_distribution\b|\bstd::shuffle\b"
                        r"|\bat::(?:rand\w*|normal|bernoulli|multinomial|dropout)\s*\(")
# Files that may read the clock, for example to measure the timeouts of peers.
MAY_READ_CLOCK = re.compile(r"recorder|progress|bench|^runtime/transport/")


def clocks_and_generators(tree):
    """Only the recorder, progress, benches and connections use the wall clock; random numbers come from keyed
    streams."""
    for path, text in tree.items():
        if not path.endswith(CODE) or top(path) not in ("runtime", "strategies", "actors", "tools"):
            continue
        for line, content in numbered(code_of(text)):
            if not MAY_READ_CLOCK.search(path) and CLOCKS.search(content):
                yield Finding(path, line, "clock", "no wall clock or thread ids: time arrives in messages")
            if GENERATORS.search(content):
                yield Finding(path, line, "generator", "randomness comes from a key: runtime/base/rng.hpp")


CATCH = re.compile(r"\bcatch\s*\(")
# Files that convert exceptions to values, undo half a step, or have their own error for lack of memory.
MAY_CATCH = {"runtime/base/exception_message.cpp", "runtime/base/exception_message.hpp",
             "runtime/base/tensor_exchange.hpp", "runtime/base/atomic_file.cpp", "runtime/method/jobs.hpp",
             "runtime/modules/sandbox_process.cpp",
             "runtime/modules/load_module.cpp", "runtime/scenario/layers.cpp",
             "runtime/transport/connection_loop.cpp", "runtime/transport/make_keys.cpp"}


def catches(tree):
    """Only a few files catch exceptions; all others call exception_message_of() or similar functions."""
    for path, text in tree.items():
        if top(path) in LAYERED and path.endswith(CODE) and path not in MAY_CATCH:
            for line, content in numbered(code_of(text)):
                if CATCH.search(content):
                    yield Finding(path, line, "catch", "call exception_message_of() of runtime/base")


# -- Rules: coroutines and registration -------------------------------------------------------------------------------

AWAIT = re.compile(r"^\s*((const )?auto&{0,2} (\w+|\[[^]]*\]) = |\w+ = )?co_await \w+;$")


def awaits(tree):
    """A co_await must be a statement of its own on a named object, because g++ 12 miscompiles other forms."""
    for path, text in tree.items():
        if not path.endswith(CODE):
            continue
        code = NOT_CODE.sub(blanked, text)
        for line, content in numbered(code):
            content = content.rstrip()
            if re.search(r"\bco_await\b", content) and "operator co_await" not in content and not AWAIT.match(content):
                yield Finding(path, line, "await", "write `auto x = co_await name;`: g++ 12 miscompiles other shapes")


def begins_with_header_beside(path, text):
    match = INCLUDE.match(text)
    return match is not None and (match.group(1) or "").rpartition("/")[0] == path.rpartition("/")[0]


def registrations(tree):
    """A method, model or data source is one file with its registration line; parts of a method begin with a header."""
    for path, text in tree.items():
        if not path.endswith(".cpp"):
            continue
        code = code_of(text)
        wanted = None
        if top(path) == "strategies" and not begins_with_header_beside(path, text):  # otherwise a part of a method
            wanted = "strategy_registration"
        elif path.startswith("runtime/models/") and re.search(r":\s*public\s+model_kind\b", code):
            wanted = "model_registration"
        elif path.startswith("runtime/data/sources/"):
            wanted = "source_registration"
        if wanted and not re.search(rf"^const {wanted} \w+\{{", code, re.M):
            yield Finding(path, text.count("\n"), "registration", f"`const {wanted} line{{...}};` is missing")


# -- Rules: unused declarations ---------------------------------------------------------------------------------------

WORD = re.compile(r"[A-Za-z_]\w*")
DEFINING_MACRO = re.compile(r"^MNEME_[A-Z_]+\((\w+),", re.M)  # in column 1, so outside of any function

def is_complete(piece):
    """True if the piece needs no other definition: it has a body, or is `= 0`, `= default` or `= delete`."""
    return piece.opens == "function" or re.search(r"=\s*(?:0|default|delete)\s*$", piece.head) is not None


def dead_declarations(tree):
    """Functions that a header declares must be defined and called."""
    words, declarations, defined = collections.Counter(), collections.Counter(), set()
    in_headers = []
    for path, text in tree.items():
        if not path.endswith(CODE):
            continue
        words.update(WORD.findall(NOT_CODE.sub(blanked, text)))
        code = code_of(text)
        for name in DEFINING_MACRO.findall(code):
            declarations[name] += 1
            defined.add(name)
        line_of = Lines(code)
        for piece in pieces(code):
            name = declared_name(piece) if piece.opens in ("", "function") else None
            if not name:
                continue
            declarations[name] += 1
            if is_complete(piece):
                defined.add(name)
            if path.endswith((".hpp", ".cuh")):
                in_headers.append((path, line_of(first_character(piece)), name))
    for path, line, name in in_headers:
        if name in CALLED_BY_OTHERS:
            continue
        if name not in defined:
            yield Finding(path, line, "dead", f"'{name}' is declared and never defined")
        elif words[name] <= declarations[name]:
            yield Finding(path, line, "dead", f"'{name}' is never used")


# -- Rules: text ------------------------------------------------------------------------------------------------------

# Joined from pieces, so that this file passes its own rules.
HOSTS = re.compile("|".join(["deb[.]deb" + "ian[.]org", "py" + "pi[.]org", "python" + "hosted",
                             "download[.]py" + "torch", "registry[.]np" + "mjs", "proxy[.]go" + "lang"]))
PRIVATE_FOLDERS = "|".join(["wo" + "rk", "ro" + "ot", "ho" + "me", "fa" + "rm"])
MACHINE_PATHS = re.compile(r"(?<![\w.$})/-])/(?:" + PRIVATE_FOLDERS + r")/\w")
UNFINISHED = re.compile(r"\b(?:" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b")
NO_ASSERTION = re.compile(r"\b(?:CHECK|REQUIRE)\s*\(\s*true\s*\)|\bSUCC" + r"EED\s*\(\s*\)")


def texts(tree):
    """No registry hosts, no paths of one machine, no marks of unfinished work, and no test without an assertion."""
    for path, text in tree.items():
        for line, content in numbered(text):
            if HOSTS.search(content):
                yield Finding(path, line, "host", "a package registry's host; the machine's configuration knows it")
            if MACHINE_PATHS.search(content):
                yield Finding(path, line, "machine-path", "an absolute path of one machine")
            if UNFINISHED.search(content):
                yield Finding(path, line, "unfinished", "finish it, or write an issue")
            if top(path) == "tests" and path.endswith(CODE) and NO_ASSERTION.search(content):
                yield Finding(path, line, "empty-test", "asserts nothing")


RULES = [file_length, line_length, function_length, header_starts, include_names, layer_arrows, layer_files, families,
         clocks_and_generators, catches, awaits, registrations, dead_declarations, texts,
         header_names, spread_names, one_type]


def check(root):
    tree = read_tree(root)
    return sorted(finding for rule in RULES for finding in rule(tree))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    findings = check(root)
    for finding in findings:
        print(f"{finding.path}:{finding.line}: {finding.rule}: {finding.text}")
    print(f"tidy: {len(findings)} findings" if findings else "tidy: nothing found")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
