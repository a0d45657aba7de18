"""Keys of scenarios, parsed from `mneme help`, which prints the tables of the scenario reader. New keys are therefore
included."""
import re
import tempfile
from dataclasses import dataclass, field

from started_programs import StartedPrograms


@dataclass
class Key:
    section: str
    name: str
    default: str          # as TOML
    kind: str             # "integer", "number", "boolean", "word", "duration", "size", "device", "list", "path", "text"
    low: float = 0.0
    high: float = 0.0
    open_low: bool = False
    words: list = field(default_factory=list)

    @property
    def full_name(self):
        return f"{self.section}.{self.name}" if self.section else self.name


def _bounds(key, text):
    """Stores bounds such as "integer in [1, 8]" or "number > 0" in the key."""
    unbounded = 1e12
    key.low, key.high = -unbounded, unbounded
    if between := re.match(r"\w+ in ([\[(])([^,]+), ([^\])]+)", text):
        key.open_low = between[1] == "("
        key.low, key.high = float(between[2]), float(between[3])
    elif above := re.match(r"\w+ (>=?) (\S+?)[.,]?(\s|$)", text):
        key.open_low = above[1] == ">"
        key.low = float(above[2])


def _key(section, name, default, expected):
    key = Key(section, name, default, "text")
    if expected.startswith('"'):
        key.kind = "word"
        key.words = re.findall(r'"([^"]*)"', expected.split(". ")[0])
        return key
    for start, kind in (("boolean", "boolean"), ("integer", "integer"), ("duration", "duration"), ("size", "size"),
                        ("list", "list"), ("path", "path")):
        if expected.startswith(start):
            key.kind = kind
    if expected.startswith("number"):
        key.kind = "device" if "a list of them" in expected.split(". ")[0] else "number"
    if key.kind == "list":
        key.words = re.findall(r"^list of (\w+)", expected)
        _bounds(key, expected.replace("list of integers", "integers").replace("list of numbers", "numbers"))
    elif key.kind in ("integer", "number", "device"):
        _bounds(key, expected)
    return key


def _keys_in(section, text):
    """Parses the pairs of lines "  name = default" and "      expected. meaning."."""
    lines = text.splitlines()
    keys = []
    for line, after in zip(lines, lines[1:]):
        said = re.match(r"  (\w+) = (.*)$", line)
        if said and after.startswith("      "):
            keys.append(_key(section, said[1], said[2], after.strip()))
    return keys


class KeyTables:
    """All sections, and the keys of each method and each model."""

    def __init__(self, program):
        self.said = {}  # output of the program, by command line
        with tempfile.TemporaryDirectory(prefix="mneme-keys-") as folder:
            self._programs = StartedPrograms(program, folder, limit_s=60)
            self._ask()
            self._programs.close()

    def _ask(self):
        self.sections = {name: self._keys(name, name) for name in self._section_names()}
        self.sections[""] = _keys_in("", self._help().split("\nSections:\n")[0])
        methods, models = self._listed("strategies"), self._listed("models")
        self.methods = {name: self._keys("strategy", name) for name in methods}
        self.presets = {name: re.findall(r'^preset = "([^"]+)":', self._help(name), re.MULTILINE) for name in methods}
        self.models = {name: self._keys("model", name) for name in models}

    def all(self):
        return [key for keys in (*self.sections.values(), *self.methods.values(), *self.models.values())
                for key in keys]

    def _answer(self, *words):
        asked = " ".join(words)
        if asked not in self.said:
            done = self._programs.run(words)
            if done.code != 0:
                raise RuntimeError(f"'{asked}' is answered with exit code {done.code}: {done.errors}")
            self.said[asked] = done.errors
        return self.said[asked]

    def _help(self, *topic):
        return self._answer("help", *topic)

    def _section_names(self):
        listed = self._help().split("\nSections:\n")[1]
        return re.findall(r"^  (\w+) ", listed, re.MULTILINE)

    def _keys(self, section, topic):
        return _keys_in(section, self._help(topic))

    def _listed(self, things):
        return re.findall(r"^  (\S+)  ", self._answer("list", things), re.MULTILINE)
