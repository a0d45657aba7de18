"""Finds declarations in C++ text without a compiler, for tools/tidy.py."""
import bisect
import collections
import functools
import re

NOT_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<fence>[^()\s\\]*)\(.*?\)(?P=fence)"|"(?:\\.|[^"\\\n])*"
                          |(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.S | re.X)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def blanked(match):
    return re.sub(r"[^\n]", " ", match.group())


@functools.lru_cache(maxsize=None)  # most rules of tidy.py ask for the code of every file
def code_of(text):
    """Returns the text with comments, literals and preprocessor lines replaced by blanks. Offsets do not change."""
    return DIRECTIVE.sub(blanked, NOT_CODE.sub(blanked, text))


class Piece(collections.namedtuple("Piece", "head start end opens scope_name in_class")):
    """A statement or block outside of any function; `head` is the text before its `;` or `{`.

    `start` and `end` are the offsets of the first and the last character. `opens` is "function", "scope" (namespace,
    class), "value" (initializer), or "" for a statement. `scope_name` is the enclosing class or namespace, and
    `in_class` is true for a class.
    """


SCOPE = re.compile(r"\s*(?:template\s*<.*>\s*)?(?:inline\s+|typedef\s+)?(?:namespace|class|struct|union|enum|extern)\b",
                   re.S)
SCOPE_NAME = re.compile(r"(?:namespace|class|struct|union)\s+(?:\[\[.*?\]\]\s*)?(\w+)", re.S)


def kind_of_block(head):
    if SCOPE.match(head) and not re.search(r"\w\s*\([^()]*\)\s*(?:const|noexcept|override|\s)*$", head):
        return "scope"
    return "function" if ")" in head and not head.rstrip().endswith("=") else "value"


def pieces(code, with_scopes=False):
    """All declarations and definitions at namespace and class scope, in the order in which they end.

    With `with_scopes`, classes, enums and namespaces are included.
    """
    found, blocks, brackets, head_start = [], [], 0, 0
    for match in re.finditer(r"[{};()]", code):
        place, character = match.start(), match.group()
        if character in "()":
            brackets = max(0, brackets + (1 if character == "(" else -1))
            continue
        nested = brackets > 0 or any(block.opens != "scope" for block in blocks)
        head = code[head_start:place]
        around = SCOPE_NAME.search(blocks[-1].head) if blocks and not nested else None
        scope_name = around.group(1) if around else ""
        in_class = bool(around) and "namespace" not in around.group()
        if character == "{":
            kind = "inner" if nested else kind_of_block(head)
            blocks.append(Piece(head, head_start, place, kind, scope_name, in_class))
        elif character == "}" and blocks:
            block = blocks.pop()
            if block.opens in ("function", "value") or (with_scopes and block.opens == "scope"):
                found.append(block._replace(end=place))
                brackets = 0
        elif not nested:
            found.append(Piece(head, head_start, place, "", scope_name, in_class))
        if not brackets:
            head_start = place + 1
    return found


class Lines:
    """Converts offsets to line numbers."""

    def __init__(self, text):
        self.starts = [0] + [m.end() for m in re.finditer("\n", text)]

    def __call__(self, offset):
        return bisect.bisect_right(self.starts, offset)


BEFORE_HEAD = re.compile(r"(?:\s|(?:public|private|protected)\s*:(?!:))*")


def first_character(piece):
    return piece.start + BEFORE_HEAD.match(piece.head).end()


CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
NO_NAMES = {"decltype", "noexcept", "alignas", "sizeof", "requires", "explicit", "if", "while", "for", "switch",
            "return", "static_assert", "throw"}


def declared_name(piece):
    """Name of the function that a piece declares or defines; None for other pieces and for constructors."""
    head = re.sub(r"\[\[.*?\]\]", " ", piece.head, flags=re.S)
    if re.match(r"\s*(?:using|typedef|friend|static_assert|return)\b", head) or "operator" in head or "~" in head:
        return None
    for match in CALLED.finditer(head):
        name = match.group(1)
        if name in NO_NAMES or name.isupper() or name.startswith(("CAF_", "MNEME_")):
            continue
        before = re.sub(r"<[^<>]*>", "", head[:match.start()])
        constructor = name == piece.scope_name or re.search(rf"\b{name}\s*(?:<[^<>]*>)?\s*::\s*$", head[:match.start()])
        typed = re.search(r"[\w>&*:\]]\s*$", before)
        return name if typed and not constructor and "=" not in before and "{" not in before else None
    return None


TYPE_NAME = re.compile(r"(?:class|struct|union|enum(?:\s+class)?|using|concept)\s+(\w+)")
VARIABLE_NAME = re.compile(r"(\w+)\s*(?:\[[^]]*\]\s*)?(?:=.*)?$", re.S)
TEMPLATE_HEAD = re.compile(r"\s*template\s*<[^;{}]*?>\s*(?=\w)", re.S)


def plain_head(piece):
    """The head without attributes, template parameters and access specifiers."""
    head = piece.head[BEFORE_HEAD.match(piece.head).end():]
    return TEMPLATE_HEAD.sub("", re.sub(r"\[\[.*?\]\]", " ", head, flags=re.S), count=1).strip()


def top_level_names(code):
    """(line, name, True for a function) of declarations in a header outside of classes."""
    line_of = Lines(code)
    for piece in pieces(code, with_scopes=True):
        head = plain_head(piece)
        if piece.in_class or head.startswith(("namespace", "static_assert", "friend", "extern", "}")) or not head:
            continue
        type_name = TYPE_NAME.match(head)
        if type_name:
            yield line_of(first_character(piece)), type_name.group(1), False
        elif "(" in head:
            name = declared_name(piece)
            if name:
                yield line_of(first_character(piece)), name, True
        elif piece.opens != "scope":
            name = VARIABLE_NAME.search(head)
            if name:
                yield line_of(first_character(piece)), name.group(1), False


NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\b\s*(?:\[\[.*?\]\]\s*)?([\w:]*)\s*$", re.S)
TYPE_DEFINITION = re.compile(r"""\s*(?:template\s*<.*>\s*)?(?:typedef\s+)?
                                 (?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+
                                 (?:alignas\([^)]*\)\s*)?(?:\[\[.*?\]\]\s*)?([\w:]+\s*(?:<[^{]*>)?)\s*
                                 (?:final\s*)?(?::.*)?$""", re.S | re.X)
ALIAS = re.compile(r"\s*(?:template\s*<.*>\s*)?using\s+(\w+)\s*=(.*)$", re.S)


def shared_types(code):
    """(line, qualified name, definition) of types at namespace scope with external linkage.

    The definition is "" for a class or an enum, and the text of an alias. Types in unnamed namespaces, classes and
    functions are excluded, as are forward declarations.
    """
    line_of = Lines(code)
    scopes, brackets, head_start = [], 0, 0  # name of a namespace, None for any other block
    for match in re.finditer(r"[{};()]", code):
        place, character = match.start(), match.group()
        if character in "()":
            brackets = max(0, brackets + (1 if character == "(" else -1))
            continue
        head = code[head_start:place] if brackets == 0 and None not in scopes else ""
        defined = TYPE_DEFINITION.match(head) if character == "{" else ALIAS.match(head)
        if defined and character != "}":
            name = "::".join([scope for scope in scopes if scope] + ["".join(defined.group(1).split())])
            yield line_of(place), name, " ".join(defined.group(2).split()) if character == ";" else ""
        if character == "{":
            namespace = NAMESPACE.match(head)
            scopes.append(namespace.group(1) or None if namespace else None)
        elif character == "}" and scopes:
            scopes.pop()
        if character != ";" or brackets == 0:
            head_start = place + 1
        if character != ";":
            brackets = 0
