"""Starts, resumes and reads runs."""
import contextlib
import csv
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

from mneme import _deprecated, _engine, _progress
from mneme._errors import Interrupted, MnemeWarning, RunFailed, ScenarioError, finding_text
from mneme._data import Data, Partition, described
from mneme._methods import Method, host
from mneme._scenarios import opened
from mneme._types import Keys, Path, Record, Scenario
from mneme.cluster import Cluster

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "mneme")
_engine._set_program(PROGRAM)
LOOKS_PER_SECOND = 20
OnEvaluation = Callable[[Record], object]
OnEvaluations = OnEvaluation | Sequence[OnEvaluation] | None
SOURCE_CHANGES = "source_changes.jsonl"  # file in a run whose method's source has changed
OLD_SOURCE_CHANGES = "mended.jsonl"  # the same file in runs of older versions


class Run:
    """Results of a run in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = os.path.abspath(os.fspath(folder))
        if not os.path.exists(os.path.join(self.folder, "scenario.toml")):
            raise ScenarioError([(self.folder, "no run: there is no scenario.toml; mneme.runs(FOLDER) lists runs")])

    def _path(self, *names):
        return os.path.join(self.folder, *names)

    def _opened(self, name):
        """Opens a file of the run. Fails for pipes, because opening them would block."""
        if not os.path.isfile(self._path(name)):
            raise ScenarioError([(self._path(name), "is not an ordinary file; expected one, as a run writes it")])
        return open(self._path(name), encoding="utf-8")

    def _damaged(self, name, reason):
        return ScenarioError([(self._path(name), f"is damaged ({reason}); move it away and let mneme.resume() write it "
                                                 "again, or run the scenario again")])

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json as a dict; empty if the run never ended."""
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
        """The run digest; equal digests mean bitwise equal models in every round."""
        return self.summary.get("run_digest", "")

    @property
    def status(self) -> str:
        """"done", "failed" or "interrupted"; "" if the run was killed."""
        return self.summary.get("status", "")

    @property
    def records(self) -> list[Record]:
        """All evaluations in order, one dict each."""
        return self._lines("metrics.jsonl")

    @property
    def source_changes(self) -> list[dict[str, Any]]:
        """Changes by resume(..., allow_source_change=True), as [{"after_rounds", "source"}]: the method's source after
        that many rounds. Empty if the source never changed."""
        return self._lines(OLD_SOURCE_CHANGES) + self._lines(SOURCE_CHANGES)

    mended = _deprecated.OldName("source_changes")

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
        """The evaluations as a pandas DataFrame if pandas is installed, otherwise the records."""
        try:
            import pandas
        except ImportError:
            return self.records
        return pandas.DataFrame.from_records(self.records)

    @property
    def client_accuracy(self) -> Any:
        """Tests of the clients' own models (evaluation.personal), one per evaluation and client: task, round,
        virtual_s, client, train_rows, test_rows, accuracy_before, accuracy in percent. A pandas DataFrame if pandas is
        installed, otherwise dicts; empty without evaluation.personal."""
        name = "client_accuracy.csv"
        lines = []
        if os.path.exists(self._path(name)):
            with self._opened(name) as file:
                lines = [{key: float(value) if "accuracy" in key or key == "virtual_s" else int(value)
                          for key, value in line.items()} for line in csv.DictReader(file)]
        try:
            import pandas
        except ImportError:
            return lines
        return pandas.DataFrame.from_records(lines)

    @property
    def matrix(self) -> Any:
        """Accuracy in percent [T, T] on task s after task t; NaN if undefined. A numpy array if numpy is installed."""
        with open(self._path("accuracy_matrix.csv"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(",")[1:] for line in file][1:]
        rows = [[float(cell) if cell else float("nan") for cell in line] for line in lines]
        try:
            import numpy
        except ImportError:
            return rows
        return numpy.array(rows, dtype=float)

    def model(self, file: str = "model.safetensors", merge: bool = False) -> dict[str, torch.Tensor]:
        """Final net as torch tensors by name, like a state_dict. merge: low-rank adapters (model.low_rank) are added to
        the matrices of their layers, so that the tensors fit the net without adapters."""
        from mneme._safetensors import read
        from mneme._weights import merged
        tensors = read(self._path(file))
        if not merge:
            return tensors
        keys = tomllib.loads(self.scenario())["model"]
        rank = keys.get("low_rank", 0)
        if not rank:
            raise ValueError(f"{self.folder}: merge=True, and the net has no low-rank adapters; expected a run with "
                             "model.low_rank > 0")
        return merged(tensors, (keys.get("low_rank_alpha", 0.0) or rank) / rank)

    def scenario(self) -> str:
        """Resolved scenario as text. Running it gives the same digest."""
        with open(self._path("scenario.toml"), encoding="utf-8") as file:
            return file.read()

    def report(self) -> "Report":
        """The report page, which a notebook displays."""
        return Report([self.folder])

    def __repr__(self):
        accuracy = self.summary.get("final_accuracy")
        shown = f", final accuracy {accuracy:.2f} %" if isinstance(accuracy, float) else ""
        return f"<mneme run {os.path.basename(self.folder)}: {self.status or 'not ended'}{shown}>"


class Report:
    """An HTML report of runs: `str()` returns the page, and a notebook displays it."""

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
    """Runs the program and returns its output. Raises its errors as ScenarioError or RunFailed."""
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
    """Folders as command-line arguments, protected against being read as options."""
    names = [os.fspath(getattr(folder, "folder", folder)) for folder in folders]
    return [os.path.join(".", name) if name.startswith("-") else name for name in names]


def warn_of(found):
    for where, text in found:
        warnings.warn(finding_text(where, text), MnemeWarning, stacklevel=5)


def callbacks_of(on_evaluation, loggers):
    """List of all functions to call with each record."""
    given = [] if on_evaluation is None else list(on_evaluation) if isinstance(on_evaluation, (list, tuple)) else [
        on_evaluation]
    for name, listed in (("on_evaluation", given), ("loggers", loggers)):
        for callback in listed:
            if not callable(callback) or isinstance(callback, type):
                raise TypeError(f"{name}: {callback!r}; expected a callable that takes a record, as a function or "
                                "mneme.loggers.TensorBoard(folder), or a list of them")
    return [*given, *loggers]


def watch(handle, callbacks, progress, named, cluster):
    """Waits for the run, reports evaluations, and forwards Ctrl-C and exceptions of callbacks to the run. Stops the run
    if all nodes of its cluster have ended."""
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
            if cluster is not None:
                cluster.check()
        except BaseException as error:  # also KeyboardInterrupt; the run stops cleanly before it is raised
            stopped = stopped or error
            handle.interrupt()
    return stopped


def performed(handle, callbacks, progress, folder="", named=list, cluster=None):
    """Waits for the run and returns its Run. @param named converts the engine's errors"""
    stopped = watch(handle, callbacks, progress, named, cluster)
    if handle.findings():
        raise stopped or ScenarioError(named(handle.findings()))
    ended = handle.summary()
    if ended is None:
        return Run(folder)  # the run was done before
    status, error, folder, resume_from = ended
    cause = _engine._take_error()
    if isinstance(stopped, KeyboardInterrupt) and status != "done":
        raise Interrupted(resume_from or folder) from None
    if stopped:
        if status != "done" and not isinstance(stopped, KeyboardInterrupt):
            stopped.add_note(f"The run was ended; mneme.resume({resume_from or folder!r}) continues it")
        raise stopped
    if status == "failed":
        shown = "".join(traceback.format_exception(cause)) if cause is not None else ""
        raise RunFailed(error, folder, resume_from, shown) from cause
    if status == "interrupted":
        raise Interrupted(resume_from or folder)
    return Run(folder)


@contextlib.contextmanager
def finishing(loggers):
    """Calls finish() of the loggers with the run that was put into the list; without a run after a failure."""
    ended = []
    try:
        yield ended
    except BaseException:
        for logger in loggers:
            with contextlib.suppress(Exception):  # the run's own error takes precedence
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
        accept: str = "", workers_min: int = 0, secret: str | None = None, tls_files: Iterable[Path] = (),
        cluster: Cluster | None = None, keys: Iterable[Path] | None = None) -> Run:
    """Runs a scenario in this process and returns its Run.

    scenario: a path, a dict of the same keys, or a dict with "extends". overrides: a dict that takes precedence. data:
    a mneme.Data instead of [data]. partition: [rows] the client of each training row, or a function of (labels,
    clients, seed) that returns it. methods: Method classes that the scenario may name. threads: 0 means one per core.
    out: folder of the run, which must not exist. on_evaluation: a function, or a list of them, called with each record;
    if one raises, the run stops cleanly. loggers: a list of mneme.loggers, called with each record, and with the run at
    its end. trace: write events.csv, deliveries.csv and partition.csv. quiet: show no progress.

    accept: "HOST:PORT" at which nodes (`mneme node --join HOST:PORT`) join and compute clients; for Python methods
    start them with --python-code FILE. workers_min: begin once nodes with this many workers have joined. secret: shared
    secret of run and nodes, default $MNEME_SECRET; tls_files: files of certificate, key and authority instead.
    Addresses other than loopback need one of them. cluster: a mneme.cluster object that starts the nodes; it chooses
    address and secret. keys: deprecated, the old name of tls_files.

    Ctrl-C stops the run cleanly; resume() resumes it.
    Raises ScenarioError before anything is written, and RunFailed afterwards. Raises mneme.cluster.NodesEnded if all
    nodes of the cluster end before the run.
    """
    tls_files = _deprecated.argument(tls_files, (), keys, "tls_files", "keys")
    callbacks = callbacks_of(on_evaluation, loggers)
    host(methods)
    if data is not None or partition is not None:
        overrides = {**overrides, **described(scenario, data, partition, dict(overrides))}
    with opened(scenario, overrides) as source, finishing(loggers) as ended, \
            nodes_of(accept, workers_min, secret, tls_files, cluster) as nodes:
        handle = _engine._RunHandle(source.file, False, source.settings, os.fspath(out) if out else "", source.name,
                                    threads, not quiet and _progress.on_terminal(), trace, *nodes)
        ended.append(performed(handle, callbacks, progress_for(quiet), named=source.named, cluster=cluster))
    return ended[0]


@contextlib.contextmanager
def nodes_of(accept, workers_min, secret, tls_files, cluster):
    """Starts the nodes of a cluster. Yields address, minimum of workers, secret, TLS files and number of started nodes
    for the engine."""
    tls_files = list(tls_files)
    if cluster is not None:
        if accept or secret or tls_files:
            raise ValueError("cluster: chooses address and secret; expected no accept, secret and tls_files")
        with cluster as (address, own_secret):
            yield address, workers_min or cluster.nodes, own_secret, tls_files, cluster.nodes
        return
    if secret is None:  # certificates take precedence over $MNEME_SECRET
        secret = "" if tls_files or not accept else os.environ.get("MNEME_SECRET", "")
    if accept and secret and len(secret) < 16:
        raise ValueError(f"secret: expected at least 16 characters, found {len(secret)}; use secrets.token_hex(32)")
    yield accept, workers_min, secret, tls_files, 0


def resume(folder: Path | Run, *, methods: Sequence[type[Method]] = (), allow_source_change: bool = False,
           threads: int = 0, on_evaluation: OnEvaluations = None, loggers: Sequence[Any] = (), quiet: bool = False,
           accept: str = "", workers_min: int = 0, secret: str | None = None, tls_files: Iterable[Path] = (),
           cluster: Cluster | None = None, mended: bool | None = None, keys: Iterable[Path] | None = None) -> Run:
    """Resumes an interrupted, killed or failed run and returns its Run. The digest equals that of an uninterrupted run.
    `methods` must be the same classes with the same source.

    allow_source_change: accept a changed source. Existing results are kept, the run records the round from which the
    source differs (`Run.source_changes`), and `mneme verify` rejects it. threads, on_evaluation, loggers, quiet,
    accept, workers_min, secret, tls_files and cluster: see run(). mended, keys: deprecated, the old names of
    allow_source_change and tls_files.
    Raises ScenarioError if the run cannot be resumed, and RunFailed if it fails.
    """
    allow_source_change = _deprecated.argument(allow_source_change, False, mended, "allow_source_change", "mended")
    tls_files = _deprecated.argument(tls_files, (), keys, "tls_files", "keys")
    callbacks = callbacks_of(on_evaluation, loggers)
    host(methods)
    folder = os.fspath(folder.folder if isinstance(folder, Run) else folder)
    if not allow_source_change:
        expect_source(folder, methods)
    with other_sources(methods if allow_source_change else []), finishing(loggers) as ended, \
            nodes_of(accept, workers_min, secret, tls_files, cluster) as nodes:
        handle = _engine._RunHandle(folder, True, [], "", "", threads, not quiet and _progress.on_terminal(), False,
                                    *nodes)
        try:
            ended.append(performed(handle, callbacks, progress_for(quiet), folder, cluster=cluster))
        finally:
            if allow_source_change and not handle.findings():
                note_source(Run(folder), methods, handle.rounds_before())
    return ended[0]


def expect_source(folder, methods):
    """Raises if the method's source differs from the run's, even if the run is already done."""
    if not os.path.exists(os.path.join(folder, "scenario.toml")):
        return
    strategy = tomllib.loads(Run(folder).scenario())["strategy"]
    for method in methods:
        if method.name != strategy["name"]:
            continue
        known, source = strategy.get("source"), method._source_digest()
        if known not in (None, source):
            raise ScenarioError([("strategy.source", f"this run was started with another source of the method "
                                  f"'{method.name}': its digest was {known} and is {source}; use the same source, run "
                                  "the scenario again, or let mneme.resume(..., allow_source_change=True) continue it "
                                  "with this one")])


@contextlib.contextmanager
def other_sources(methods):
    """Allows resuming runs with other sources of these methods."""
    for method in methods:
        method._allows_source_change = True
    try:
        yield
    finally:
        for method in set(methods):
            del method._allows_source_change


def note_source(run, methods, rounds):
    """Records a changed source of the run's method."""
    strategy = tomllib.loads(run.scenario())["strategy"]
    known = [strategy.get("source")] + [change["source"] for change in run.source_changes]
    source = next((method._source_digest() for method in methods if method.name == strategy["name"]), known[-1])
    if source != known[-1]:
        with open(run._path(SOURCE_CHANGES), "a", encoding="utf-8") as file:
            file.write(json.dumps({"after_rounds": rounds, "source": source}) + "\n")


def validate(scenario: Scenario, overrides: Keys = {}, *, data: Data | bool | None = None,  # noqa: B006
             partition: Partition | None = None, methods: Sequence[type[Method]] = ()) -> list[tuple[str, str]]:
    """Checks a scenario and its data. Returns warnings as (where, text); raises ScenarioError with all errors.
    scenario, overrides, data, partition and methods: see run(); data = False skips reading the data."""
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
    """The JSON schema of scenarios as a dict, including these Python methods."""
    host(methods)
    return json.loads(_engine._schema())


def load(folder: Path) -> Run:
    """Returns the run in a folder."""
    return Run(folder)


def runs(folder: Path = "runs") -> list[Run]:
    """Returns all runs below a folder, sorted by path."""
    found = []
    for path, folders, names in os.walk(os.fspath(folder)):
        folders.sort()
        if "scenario.toml" in names:
            found.append(Run(path))
            folders.clear()
    return found
