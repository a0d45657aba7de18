"""Rules of tools/tidy.py about names: headers, folders, and one type for each name."""
import collections

from cpp_text import code_of, shared_types, top_level_names
from findings import CALLED_BY_OTHERS, CODE, FOUND_BY_ARGUMENT, Finding, top


def stems(name):
    """Word stems of a name, so that related words match, such as normalised and normalisation."""
    return {word[:-1][:4] if word.endswith("s") else word[:4] for word in name.lower().split("_") if word}


# Headers with several declarations of one kind, whose names differ from the file name.
COLLECTIONS = {"messages.hpp", "interfaces.hpp", "elementwise.hpp", "party_steps.hpp", "tuning.hpp"}


def header_names(tree):
    """A header must declare a name that shares a word with the file name."""
    for path, text in tree.items():
        file = path.rsplit("/", 1)[-1]
        if not path.endswith((".hpp", ".cuh")) or top(path) == "tests" or file in COLLECTIONS:
            continue
        names = sorted({name for _, name, _ in top_level_names(code_of(text))})
        if names and not any(stems(file.split(".")[0]) & stems(name) for name in names):
            shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            yield Finding(path, 1, "header-name", f"declares no name that matches the file's name, only {shown}")


def spread_names(tree):
    """Headers of two folders must not declare functions of the same name."""
    places = collections.defaultdict(list)
    for path, text in tree.items():
        if path.endswith((".hpp", ".cuh")) and top(path) != "tests":
            for line, name, is_function in top_level_names(code_of(text)):
                if is_function and name not in CALLED_BY_OTHERS | FOUND_BY_ARGUMENT:
                    places[name].append((path, line))
    for name, found in places.items():
        folders = {path.rsplit("/", 1)[0] for path, _ in found}
        if len(folders) > 1:
            for path, line in found:
                yield Finding(path, line, "spread-name", f"'{name}' is declared in {len(folders)} folders")


def one_type(tree):
    """A name in a namespace must be one type: definitions in two files violate the one-definition rule."""
    places = collections.defaultdict(list)
    for path, text in tree.items():
        if path.endswith(CODE):
            for line, name, definition in shared_types(code_of(text)):
                places[name].append((path, line, definition))
    for name, definitions in places.items():
        same_alias = len({definition for _, _, definition in definitions}) == 1 and definitions[0][2]
        if len({path for path, _, _ in definitions}) > 1 and not same_alias:
            for path, line, _ in definitions:
                others = ", ".join(sorted({other for other, _, _ in definitions if other != path}))
                yield Finding(path, line, "one-type", f"'{name}' is defined in {others}, too: rename one of them")
