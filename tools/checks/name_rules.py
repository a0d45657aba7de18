"""Rules of tools/tidy.py about names: what they say, and which folder they belong to."""
import collections
import re

from cpp_text import VARIABLE_NAME, Lines, code_of, pieces, plain_head, shared_types, top_level_names
from findings import CALLED_BY_OTHERS, CODE, FOUND_BY_ARGUMENT, Finding, numbered, top

FILLERS = "made|found|which|wanted|seen|what|one|all|of|rest"
NAMED_BY_FILLER = re.compile(
    r"(?P<type>\w|(?<=\S)>)(?:&&|&|\*(?: const)?)?\s+(?P<name>" + FILLERS + r")_?\s*(?=[=;,){:(\[])"
    r"|\bauto(?:&&|&)?\s*\[(?:[^\[\]]*[\s,])?(?P<bound>" + FILLERS + r")(?:,[^\[\]]*)?\]\s*[=:]")
NO_TYPE = re.compile(r"\b(?:return|co_return|co_await|throw|else|case|new|delete|goto|using|namespace)\s+\w+$")
# Names by filler that are left in folders which are not clean yet; a number here may only fall.
FILLERS_LEFT = {"runtime": 32, "actors": 2, "tools": 71, "tests": 409}


def filler_names(tree):
    """A variable, parameter or function is named by what it holds or does. Looks at declarations on one line."""
    places = collections.defaultdict(list)
    for path, text in tree.items():
        if not path.endswith(CODE):
            continue
        for line, content in numbered(code_of(text)):
            for match in NAMED_BY_FILLER.finditer(content):
                name = match.group("name") or match.group("bound")
                if match.group("bound") or not NO_TYPE.search(content[:match.end("name")]):
                    places[top(path)].append(Finding(path, line, "filler", f"'{name}' does not say what it holds"))
    for folder, findings in places.items():
        left = FILLERS_LEFT.get(folder, 0)
        if left == 0:
            yield from findings
        elif len(findings) > left:
            what = f"{len(findings)} names by filler in {folder}/, at most {left}: name the new one by what it holds"
            yield Finding("tools/checks/name_rules.py", 1, "filler", what)


NAMELESS_MEMBERS = {"what", "one", "all", "of"}


def member_names(tree):
    """A member is named by what it holds, not `what`, `one`, `all` or `of`. Looks at data members of classes."""
    for path, text in tree.items():
        if not path.endswith(CODE):
            continue
        code = code_of(text)
        line_of = Lines(code)
        for piece in pieces(code):
            head = plain_head(piece)
            if piece.opens == "function" or "(" in re.sub(r"=.*", "", head, flags=re.S) or not piece.in_class:
                continue
            for declarator in re.sub(r"<[^<>]*>", "", head).split(","):
                name = VARIABLE_NAME.search(declarator.strip())
                if name and name.group(1).rstrip("_") in NAMELESS_MEMBERS and not head.startswith(("using", "friend")):
                    what = f"'{name.group(1)}' does not say what it holds"
                    yield Finding(path, line_of(piece.end), "member-name", what)


def stems(name):
    """The beginnings of a name's words, enough to see that two names speak of one thing: normalised, normalisation."""
    return {word[:-1][:4] if word.endswith("s") else word[:4] for word in name.lower().split("_") if word}


# Each holds things of one kind, which have names of their own.
COLLECTIONS = {"messages.hpp", "interfaces.hpp", "elementwise.hpp", "party_steps.hpp", "tuning.hpp"}


def header_names(tree):
    """A header declares something that shares a word with the file's name."""
    for path, text in tree.items():
        file = path.rsplit("/", 1)[-1]
        if not path.endswith((".hpp", ".cuh")) or top(path) == "tests" or file in COLLECTIONS:
            continue
        names = sorted({name for _, name, _ in top_level_names(code_of(text))})
        if names and not any(stems(file.split(".")[0]) & stems(name) for name in names):
            shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            yield Finding(path, 1, "header-name", f"declares nothing that the file's name leads to, but {shown}")


def spread_names(tree):
    """A function's name belongs to one folder: headers of two folders do not declare overloads of one name."""
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
    """A name in a namespace is one type: two definitions in two files violate the one-definition rule."""
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
