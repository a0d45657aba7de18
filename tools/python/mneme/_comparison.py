"""Tables of runs, as printed by `mneme compare`."""
import csv
import io
import os
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

from mneme._data import Data, Partition, described
from mneme._methods import Method, host
from mneme._runs import Run, called, runs, words_of
from mneme._types import Path


def compare(folders: Path | Run | Iterable[Path | Run], *, by: str | Iterable[str] = (),
            metric: str | Iterable[str] = (), baseline: str = "", where: str | Iterable[str] = (),
            columns: str = "", data: Data | None = None, partition: Partition | None = None,
            methods: Sequence[type[Method]] = ()) -> Any:
    """Compares runs like `mneme compare`: means over seeds, intervals and differences. Returns a DataFrame if pandas is
    installed, otherwise a list of dicts.

    data, partition: include only runs with these arguments of run(); a partition must be an array here, not a function.
    methods: include runs of these classes only if their source has not changed.
    """
    listed = [folders] if isinstance(folders, (str, os.PathLike, Run)) else list(folders)
    conditions = [where] if isinstance(where, str) else list(where)
    if data is not None or partition is not None or methods:
        listed, more = chosen(listed, described({}, data, partition, {}), methods)
        conditions += more
    words = ["compare", *words_of(listed), "--format=csv"]
    for option, values in (("--by", by), ("--metric", metric)):
        values = [values] if isinstance(values, str) else list(values)
        words += [f"{option}={','.join(values)}"] if values else []
    words += [f"--columns={columns}"] if columns else []
    words += [f"--baseline={baseline}"] if baseline else []
    words += [f"--where={condition}" for condition in conditions]
    text = called(*words)
    try:
        import pandas
    except ImportError:
        return list(csv.DictReader(io.StringIO(text)))
    return pandas.read_csv(io.StringIO(text))


def chosen(listed, keys, methods):
    """Returns (folders, --where conditions) that select the runs with these keys, without runs of other method
    sources."""
    host(methods)
    sources = {method.name: method._source_digest() for method in methods}
    names = [os.fspath(getattr(folder, "folder", folder)) for folder in listed]
    found = {name: runs(name) for name in names}
    stale, kept = set(), []
    for run in (run for held in found.values() for run in held):
        scenario = tomllib.loads(run.scenario())
        strategy = scenario["strategy"]
        source = strategy.get("source", "")
        if source != sources.get(strategy["name"], source):
            stale.add(source)
        elif all(value_of(scenario, key) == value for key, value in keys.items()):
            kept.append(run)
    if any(held and held[0].folder == os.path.abspath(name) for name, held in found.items()):  # a single run
        return kept, []
    conditions = [f"{key}={value}" for key, value in keys.items()]
    return names, conditions + [f"strategy.source!={old}" for old in sorted(stale)]


def value_of(scenario, key):
    section, _, name = key.partition(".")
    return scenario.get(section, {}).get(name)
