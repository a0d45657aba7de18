"""Scenarios in Python: a path, a dict of the same keys, or a dict that extends a file."""
import contextlib
import os
import re
import tempfile

from mneme._errors import ScenarioError


def toml(value):
    """The value as TOML writes it; None is no value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)) or hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item() if hasattr(value, "item") else value
        return toml(value) if isinstance(value, bool) else repr(value)
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        escaped = "".join(f"\\u{ord(c):04x}" if ord(c) < 32 or c in '"\\' else c for c in text)
        return f'"{escaped}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        parts = value.tolist() if hasattr(value, "tolist") else value
        return "[" + ", ".join(toml(part) for part in parts) + "]"
    kind = type(value).__name__
    raise ScenarioError([("", f"a {kind} is no value of a scenario; expected a number, text, bool or list")])


# Keys whose values are tables of TOML, not sections.
TABLES = {"devices.rows_per_second", "devices.uplink_mbit", "devices.downlink_mbit", "devices.proxy_uplink_mbit",
          "devices.proxy_downlink_mbit"}


def flattened(keys, above=""):
    """[("section.key", TOML)] of nested dicts; keys may have dots."""
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


@contextlib.contextmanager
def opened(scenario, overrides):
    """(file, settings, name): what the engine reads; `name` is empty where the file's is meant. The file may be gone
    when the context is left."""
    settings = flattened(overrides)
    if not isinstance(scenario, dict):
        yield os.fspath(scenario), settings, ""
        return
    keys = dict(scenario)
    base = keys.pop("extends", None)
    settings = flattened(keys) + settings
    if base is not None:
        yield os.fspath(base), settings, slug(keys["title"]) if "title" in keys else ""
        return
    with tempfile.TemporaryDirectory(prefix="mneme-") as folder:
        path = os.path.join(folder, "scenario.toml")
        with open(path, "w", encoding="utf-8"):
            pass
        yield path, settings, slug(str(keys.get("title", "scenario")))
