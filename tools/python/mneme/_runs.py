"""Runs: how one is begun, gone on with and read."""
import contextlib
import json
import os
import subprocess
import tempfile
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from mneme import _engine, _progress
from mneme._errors import Interrupted, MnemeWarning, RunFailed, ScenarioError, finding_text
from mneme._data import Data, Partition, described
from mneme._methods import Method, host
from mneme._scenarios import opened
from mneme._types import Keys, Path, Record, Scenario

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "mneme")
_engine._set_program(PROGRAM)
LOOKS_PER_SECOND = 20
OnEvaluation = Callable[[Record], object]
OnEvaluations = OnEvaluation | Sequence[OnEvaluation] | None
MENDED = "mended.jsonl"  # of a run whose method has changed on the way


class Run:
    """What a run left behind in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.path.abspath(os.fspath(folder))
        if not os.path.exists(os.path.join(self.folder, "scenario.toml")):
            raise ScenarioError([(self.folder, "no run: there is no scenario.toml; mneme.runs(FOLDER) lists runs")])

    def _path(self, *names):
        return os.path.join(self.folder, *names)

    def _opened(self, name):
        """The file for reading; a pipe would be waited for."""
        if not os.path.isfile(self._path(name)):
            raise ScenarioError([(self._path(name), "is not an ordinary file; expected one, as a run writes it")])
        return open(self._path(name), encoding="utf-8")

    def _damaged(self, name, reason):
        return ScenarioError([(self._path(name), f"is damaged ({reason}); move it away and let mneme.resume() write it "
                                                 "again, or run the scenario again")])

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json as a dict; empty where the run has never ended."""
        name = "summary.json"
        if not os.path.exists(self._path(name)):
            return {}
        try:
            with self._opened(name) as file:
                summary = json.load(file)
        except ValueError as error:
            raise self._damaged(name, error) from None
        if not isinstance(summary, dict):
            raise self._damaged(name, "expected one JSON object")
        return summary

    @property
    def digest(self) -> str:
        """The run digest: equal ones are of equal runs, to the last bit of every model on the way."""
        return self.summary.get("run_digest", "")

    @property
    def status(self) -> str:
        """"done", "failed" or "interrupted"; "" where the run was killed."""
        return self.summary.get("status", "")

    @property
    def records(self) -> list[Record]:
        """The evaluations, a dict each, in their order."""
        return self._lines("metrics.jsonl")

    @property
    def mended(self) -> list[dict[str, Any]]:
        """[{"after_rounds", "source"}] of resume(..., mended=True): after so many rounds the method has that source.
        Empty for a run of one source."""
        return self._lines(MENDED)

    def _lines(self, name):
        if not os.path.exists(self._path(name)):
            return []
        try:
            with self._opened(name) as file:
                return [json.loads(line) for line in file]
        except ValueError as error:
            raise self._damaged(name, error) from None

    @property
    def metrics(self) -> Any:
        """The evaluations: a pandas DataFrame where pandas is installed, else records."""
        try:
            import pandas
        except ImportError:
            return self.records
        return pandas.DataFrame.from_records(self.records)

    @property
    def matrix(self) -> Any:
        """[T, T] accuracy in percent after task t on task s; NaN where there is none. An array where numpy is."""
        with open(self._path("accuracy_matrix.csv"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(",")[1:] for line in file][1:]
        rows = [[float(cell) if cell else float("nan") for cell in line] for line in lines]
        try:
            import numpy
        except ImportError:
            return rows
        return numpy.array(rows, dtype=float)

    def model(self, file: str = "model.safetensors") -> dict[str, torch.Tensor]:
        """The final net, torch tensors by name, as a state_dict has them."""
        from mneme._safetensors import read
        return read(self._path(file))

    def scenario(self) -> str:
        """The resolved scenario as text: running it again gives the same digest."""
        with open(self._path("scenario.toml"), encoding="utf-8") as file:
            return file.read()

    def report(self) -> "Report":
        """Tables and figures as a page, which a notebook shows."""
        return Report([self.folder])

    def __repr__(self):
        accuracy = self.summary.get("final_accuracy")
        shown = f", final accuracy {accuracy:.2f} %" if isinstance(accuracy, float) else ""
        return f"<mneme run {os.path.basename(self.folder)}: {self.status or 'not ended'}{shown}>"


class Report:
    """An HTML page of runs: `str()` is the page, and a notebook shows it."""

    def __init__(self, folders: Sequence[Path]) -> None:
        with tempfile.TemporaryDirectory(prefix="mneme-") as folder:
            page = os.path.join(folder, "report.html")
            called("report", *words_of(folders), "-o", page)
            with open(page, encoding="utf-8") as file:
                self.html = file.read()

    def __str__(self) -> str:
        return self.html

    def _repr_html_(self) -> str:
        import html
        return (f'<iframe srcdoc="{html.escape(self.html, quote=True)}" style="width: 100%; height: 40em; border: 0">'
                "</iframe>")


def called(*words):
    """What the program printed; what it complains of is a ScenarioError or RunFailed."""
    done = subprocess.run([PROGRAM, *map(os.fspath, words)], capture_output=True, text=True, check=False)
    if done.returncode == 2:
        raise ScenarioError(split_finding(line) for line in done.stderr.splitlines() if line)
    if done.returncode != 0:
        raise RunFailed(done.stderr.strip() or f"the program ended with {done.returncode}")
    return done.stdout


def split_finding(line):
    where, mark, text = line.partition(": error: ")
    return (where, text) if mark else ("", line.removeprefix("error: "))


def words_of(folders):
    """Folders as the program takes them: one that begins with a dash is no option."""
    names = [os.fspath(getattr(folder, "folder", folder)) for folder in folders]
    return [os.path.join(".", name) if name.startswith("-") else name for name in names]


def warn_of(found):
    for where, text in found:
        warnings.warn(finding_text(where, text), MnemeWarning, stacklevel=5)


def callbacks_of(on_evaluation, loggers):
    """All that is called with each record."""
    given = [] if on_evaluation is None else list(on_evaluation) if isinstance(on_evaluation, (list, tuple)) else [
        on_evaluation]
    for name, listed in (("on_evaluation", given), ("loggers", loggers)):
        for callback in listed:
            if not callable(callback) or isinstance(callback, type):
                raise TypeError(f"{name}: {callback!r}; expected what is called with a record, as a function or "
                                "mneme.loggers.TensorBoard(folder), or a list of them")
    return [*given, *loggers]


def watch(handle, callbacks, progress, named):
    """Waits for the run, tells of evaluations, and passes Ctrl-C and what a callback throws on to it."""
    stopped = None
    warned = over = False
    while not over:
        try:
            over = handle.wait(1.0 / LOOKS_PER_SECOND)
            if stopped:
                continue
            if not warned and handle.pace()[4]:
                warned = True
                warn_of(named(handle.warnings()))
            for text in handle.evaluations():
                record = json.loads(text)
                progress.evaluated(record)
                for callback in callbacks:
                    callback(record)
            progress.moved(handle.pace())
        except BaseException as error:  # KeyboardInterrupt, too; the run ends in order first
            stopped = stopped or error
            handle.interrupt()
    return stopped


def performed(handle, callbacks, progress, folder="", named=list):
    """The Run, once the handle's has ended well. @param named makes findings of the engine's"""
    stopped = watch(handle, callbacks, progress, named)
    if handle.findings():
        raise ScenarioError(named(handle.findings()))
    ended = handle.summary()
    if ended is None:
        return Run(folder)  # it was done already
    status, error, folder, resume_from = ended
    cause = _engine._take_error()
    if isinstance(stopped, KeyboardInterrupt) and status != "done":
        raise Interrupted(resume_from or folder) from None
    if stopped:
        if status != "done" and not isinstance(stopped, KeyboardInterrupt):
            stopped.add_note(f"It ended the run in order; mneme.resume({resume_from or folder!r}) goes on")
        raise stopped
    if status == "failed":
        shown = "".join(traceback.format_exception(cause)) if cause is not None else ""
        raise RunFailed(error, folder, resume_from, shown) from cause
    if status == "interrupted":
        raise Interrupted(resume_from or folder)
    return Run(folder)


@contextlib.contextmanager
def finishing(loggers):
    """Calls finish() of loggers, with the run that is put into the list, or without one where it fails."""
    ended = []
    try:
        yield ended
    except BaseException:
        for logger in loggers:
            with contextlib.suppress(Exception):  # report the run's failure instead
                getattr(logger, "finish", lambda run: None)(None)
        raise
    for logger in loggers:
        getattr(logger, "finish", lambda run: None)(ended[0])


def progress_for(quiet):
    if quiet or not _progress.in_notebook():
        return _progress.Nothing()
    return _progress.NotebookLine()


def run(scenario: Scenario, overrides: Keys = {}, *,  # noqa: B006
        data: Data | None = None, partition: Partition | None = None,
        methods: Sequence[type[Method]] = (), threads: int = 0, out: Path | None = None,
        on_evaluation: OnEvaluations = None, loggers: Sequence[Any] = (), trace: bool = False, quiet: bool = False,
        nodes: str | Iterable[str] = (), keys: Iterable[Path] = ()) -> Run:
    """Runs a scenario in this process and returns its Run.

    scenario: a path, a dict of the same keys, or a dict with "extends"; overrides: a dict, which wins over it.
    data: a mneme.Data in place of [data]; partition: [rows] client of each training row, or a function of (labels,
    clients, seed) that returns it. methods: classes of Python that the scenario may name. threads: 0 is one per core.
    out: the folder of the run, which must not exist. on_evaluation: a function, or a list of them, which are called
    with each record; what one throws ends the run in order. loggers: a list of mneme.loggers, which are called with
    each record and finished with the run. Ctrl-C ends the run in order, too; resume() goes on. trace: events.csv,
    deliveries.csv and partition.csv are written. quiet: no progress is shown. nodes: "HOST:PORT" of each process of
    `mneme node` that computes clients, or "@FILE"; of methods in Python they were started with --python-code FILE.
    keys: files of certificate, key and authority for them.
    Throws ScenarioError before anything is written, RunFailed after.
    """
    callbacks = callbacks_of(on_evaluation, loggers)
    host(methods)
    if data is not None or partition is not None:
        overrides = {**overrides, **described(scenario, data, partition, dict(overrides))}
    with opened(scenario, overrides) as source, finishing(loggers) as ended:
        handle = _engine._RunHandle(source.file, False, source.settings, os.fspath(out) if out else "", source.name,
                                    threads, not quiet and _progress.on_terminal(), trace, addresses(nodes), list(keys))
        ended.append(performed(handle, callbacks, progress_for(quiet), named=source.named))
    return ended[0]


def addresses(nodes):
    """Addresses as --nodes has them."""
    return nodes if isinstance(nodes, str) else ",".join(nodes)


def resume(folder: Path | Run, *, methods: Sequence[type[Method]] = (), mended: bool = False, threads: int = 0,
           on_evaluation: OnEvaluations = None, loggers: Sequence[Any] = (), quiet: bool = False,
           nodes: str | Iterable[str] = (), keys: Iterable[Path] = ()) -> Run:
    """Goes on with a run that was interrupted, killed or failed, and returns its Run: the digest is that of a run
    without an interruption. `methods` are the same classes, with the same source.

    mended: their source may have changed since. What was computed stays; the run notes from which round on it has
    another source (`Run.mended`), and `mneme verify` does not accept it. threads, on_evaluation, loggers, quiet, nodes
    and keys are as of run().
    Throws ScenarioError where it cannot go on, RunFailed where it fails.
    """
    callbacks = callbacks_of(on_evaluation, loggers)
    host(methods)
    folder = os.fspath(folder.folder if isinstance(folder, Run) else folder)
    if not mended:
        expect_source(folder, methods)
    with other_sources(methods if mended else []), finishing(loggers) as ended:
        handle = _engine._RunHandle(folder, True, [], "", "", threads, not quiet and _progress.on_terminal(), False,
                                    addresses(nodes), list(keys))
        try:
            ended.append(performed(handle, callbacks, progress_for(quiet), folder))
        finally:
            if mended and not handle.findings():
                note_source(Run(folder), methods, handle.rounds_before())
    return ended[0]


def expect_source(folder, methods):
    """Throws where the run has another source of its method, also where the run is done and would be returned."""
    if not os.path.exists(os.path.join(folder, "scenario.toml")):
        return
    strategy = tomllib.loads(Run(folder).scenario())["strategy"]
    for method in methods:
        if method.name != strategy["name"]:
            continue
        known, source = strategy.get("source"), method._source_digest()
        if known not in (None, source):
            raise ScenarioError([("strategy.source", f"this run was begun with another source of the method "
                                  f"'{method.name}': its digest was {known} and is {source}; take the same source, run "
                                  "the scenario again, or let mneme.resume(..., mended=True) go on with this one")])


@contextlib.contextmanager
def other_sources(methods):
    """Runs that other sources of these methods have begun may go on."""
    for method in methods:
        method._mended = True
    try:
        yield
    finally:
        for method in set(methods):
            del method._mended


def note_source(run, methods, rounds):
    """Notes that the run's method has another source from here on, where it has."""
    strategy = tomllib.loads(run.scenario())["strategy"]
    known = [strategy.get("source")] + [change["source"] for change in run.mended]
    source = next((method._source_digest() for method in methods if method.name == strategy["name"]), known[-1])
    if source != known[-1]:
        with open(run._path(MENDED), "a", encoding="utf-8") as file:
            file.write(json.dumps({"after_rounds": rounds, "source": source}) + "\n")


def validate(scenario: Scenario, overrides: Keys = {}, *, data: Data | bool | None = None,  # noqa: B006
             partition: Partition | None = None, methods: Sequence[type[Method]] = ()) -> list[tuple[str, str]]:
    """Checks a scenario and its data. Returns its warnings as (where, text); throws ScenarioError with all that is
    wrong. scenario, overrides, data, partition and methods are as of run(); data = False: the data is not read."""
    host(methods)
    own = None if isinstance(data, bool) else data
    if own is not None or partition is not None:
        overrides = {**overrides, **described(scenario, own, partition, dict(overrides))}
    with opened(scenario, overrides) as source:
        wrong, doubtful, _, _ = _engine._check(source.file, source.settings, data is not False)
        if wrong:
            raise ScenarioError(source.named(wrong))
        return source.named(doubtful)


def schema(methods: Sequence[type[Method]] = ()) -> dict[str, Any]:
    """The JSON schema of scenarios, as a dict; with these methods of Python."""
    host(methods)
    return json.loads(_engine._schema())


def load(folder: Path) -> Run:
    """The run in a folder."""
    return Run(folder)


def runs(folder: Path = "runs") -> list[Run]:
    """All runs below a folder, by path."""
    found = []
    for path, folders, names in os.walk(os.fspath(folder)):
        folders.sort()
        if "scenario.toml" in names:
            found.append(Run(path))
            folders.clear()
    return found
