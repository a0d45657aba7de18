"""Mutants: source changes that tests must detect, in one table per group in mutants/; planted by tools/mutate.

A table is a TOML file of [[mutant]] entries: `name`; `file` with the text `old`, which occurs in it exactly once; its
replacement `new`; and `tests`, files of the group's test program (without folder and .cpp), of which at least one must
fail. `survives` explains why no test can detect the change. A mutant that survives without it reveals a gap in the
tests.
"""
import glob
import os

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TABLES = os.path.join(ROOT, "tools", "checks", "mutants")
KEYS = {"name", "file", "old", "new", "tests"}

# By group: the folder of its mutants' sources, its test program, and the folder of its tests.
GROUPS = {
    "methods": {"sources": "strategies", "program": "test_strategies", "tests": "tests/strategies"},
    "federation": {"sources": "runtime/federation", "program": "test_federation", "tests": "tests/runtime/federation"},
}


def read_text(tree, name):
    path = os.path.join(tree, name)
    if not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def table_of(group):
    """Mutants of the group, grouped by file, so that consecutive builds compile few sources."""
    with open(os.path.join(TABLES, group + ".toml"), "rb") as file:
        mutants = tomllib.load(file)["mutant"]
    return sorted(mutants, key=lambda mutant: mutant.get("file", ""))


def plant(tree, mutant):
    """Replaces the mutant's old text with the new text."""
    text = read_text(tree, mutant["file"])
    with open(os.path.join(tree, mutant["file"]), "w", encoding="utf-8") as file:
        file.write(text.replace(mutant["old"], mutant["new"]))


def filter_of(mutant):
    """Argument with which Catch2 selects the mutant's test cases, for -#."""
    return ",".join(f"[#{test}]~[slow]~[gpu]" for test in mutant["tests"])


def wrong_with(group, mutant, tree=ROOT):
    """Returns an error text if the mutant cannot be planted or tested. It states location, found and expected."""
    name, where = mutant.get("name", "a mutant without a name"), GROUPS[group]
    if missing := KEYS - mutant.keys():
        return [f"{name}: found no {', '.join(sorted(missing))}"]
    if unknown := mutant.keys() - KEYS - {"survives"}:
        return [f"{name}: unknown key {', '.join(sorted(unknown))}; expected {', '.join(sorted(KEYS))} or survives"]
    found = []
    count = read_text(tree, mutant["file"]).count(mutant["old"])
    if count != 1:
        pattern = os.path.join(tree, where["sources"], "**", "*.?pp")
        others = [os.path.relpath(path, tree) for path in sorted(glob.glob(pattern, recursive=True))
                  if mutant["old"] in read_text(tree, path)]
        hint = f"; it occurs in {', '.join(others)}" if others else ""
        found.append(f"{name}: `old` occurs {count} times in {mutant['file']}, expected once{hint}")
    if not mutant["file"].startswith(where["sources"] + "/"):
        found.append(f"{name}: {mutant['file']} is not below {where['sources']}/")
    if mutant["old"] == mutant["new"]:
        found.append(f"{name}: `new` changes nothing")
    found += [f"{name}: there is no {test}.cpp below {where['tests']}/" for test in mutant["tests"]
              if not glob.glob(os.path.join(tree, where["tests"], "**", test + ".cpp"), recursive=True)]
    if not mutant["tests"]:
        found.append(f"{name}: `tests` is empty")
    return found
