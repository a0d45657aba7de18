"""Scenarios in Python: a path, a dict of the same keys, or a dict that extends a file."""
import contextlib
import os
import re
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from mneme._errors import ScenarioError


def toml(value):
    """Formats a value as TOML. None is not allowed."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)) or hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item() if hasattr(value, "item") else value
        return toml(value) if isinstance(value, bool) else repr(value)
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if any(0xD800 <= ord(c) < 0xE000 for c in text):
            raise ScenarioError([("", f"{ascii(text[:60])} holds half of a surrogate pair, which UTF-8 does not have; "
                                      "expected text that can be encoded as UTF-8")])
        escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or c in '"\\' else c for c in text)
        return f'"{escaped}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        parts = value.tolist() if hasattr(value, "tolist") else value
        return "[" + ", ".join(toml(part) for part in parts) + "]"
    kind = type(value).__name__
    raise ScenarioError([("", f"a {kind} is not a value of a scenario; expected a number, text, bool or list")])


# Keys whose values are TOML tables, not sections.
TABLES = {"devices.rows_per_second", "devices.uplink_mbit", "devices.downlink_mbit", "devices.proxy_uplink_mbit",
          "devices.proxy_downlink_mbit"}


def flattened(keys, above=""):
    """Converts nested dicts to [("section.key", TOML)]. Keys may contain dots."""
    pairs = []
    for name, value in keys.items():
        full = f"{above}.{name}" if above else str(name)
        if isinstance(value, dict) and full not in TABLES:
            pairs += flattened(value, full)
        elif value is not None:
            pairs.append((full, toml(value)))
    return pairs


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40] or "scenario"


class Opened(NamedTuple):
    """Scenario in the engine's form."""

    file: str
    settings: list[tuple[str, str]]  # [("section.key", TOML)]
    name: str                        # "": name of the file
    is_made: bool                    # True: a temporary empty file; all keys are in `settings`

    def named(self, findings):
        """Replaces locations in the command line or in the temporary file with keys of the dict."""
        return [self.with_key(where, text) for where, text in findings]

    def with_key(self, where, text):
        made = self.is_made and where.startswith(self.file)
        if self.is_made:
            text = text.replace(self.file, "the scenario")
        if where != "--set" and not made:
            return where, text
        unknown = re.match(r"unknown key '([^']+)' in \[([^\]]+)\]", text)
        if unknown:
            return f"{unknown[2]}.{unknown[1]}", text
        section = re.match(r"(?:unknown section|no) \[([^\]]+)\]|unknown key '([^']+)'", text)
        if section:
            return section[1] or section[2], text
        keys = [key for key, _ in self.settings if re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", text)]
        return min(keys, key=text.index, default="scenario" if made else ""), text


@contextlib.contextmanager
def opened(scenario, overrides):
    """Context that provides an Opened. Deletes a temporary file at the end."""
    if not isinstance(overrides, Mapping):
        raise TypeError(f"overrides: {type(overrides).__name__}; expected a dict of keys, as in {{'rounds.cohort': 5}}")
    if not isinstance(scenario, (str, os.PathLike, Mapping)):
        raise TypeError(f"scenario: {type(scenario).__name__}; expected a path or a dict of keys")
    settings = flattened(overrides)
    if not isinstance(scenario, Mapping):
        yield Opened(os.fspath(scenario), settings, "", False)
        return
    keys = dict(scenario)
    base = keys.pop("extends", None)
    settings = flattened(keys) + settings
    if base is not None:
        yield Opened(os.fspath(base), settings, slug(keys["title"]) if "title" in keys else "", False)
        return
    with tempfile.TemporaryDirectory(prefix="mneme-") as folder:
        path = os.path.join(folder, "scenario.toml")
        with open(path, "w", encoding="utf-8"):
            pass
        yield Opened(path, settings, slug(str(keys.get("title", "scenario"))), True)
