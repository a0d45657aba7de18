"""Sweeps: runs the points of a study in sequence, or with an executor of concurrent.futures, Dask, Ray or submitit."""
import concurrent.futures
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mneme import _engine, _syntax
from mneme._data import Data, Partition, data_of, partition_keys
from mneme._errors import RunFailed, ScenarioError
from mneme._methods import Method, host
from mneme._runs import Run, resume, run
from mneme._scenarios import opened
from mneme._types import Executor, Keys, Path, Scenario

TRIES = 3  # attempts per point whose worker is killed


def sweep(scenario: Scenario, over: Mapping[str, Iterable[Any]] | None = None, seeds: Iterable[int] = (), *,
          overrides: Keys = {}, data: Data | None = None,  # noqa: B006
          partition: Partition | None = None, out: Path = "runs",
          executor: Executor | Any = None, methods: Sequence[type[Method]] = (), threads: int = 1) -> list[Run]:
    """Runs a grid and returns its Runs in grid order: each combination of the values in `over` ({key: values}), once
    for each of `seeds`. Keeps completed points and resumes started ones, so a second call completes an interrupted
    sweep.

    scenario, overrides, data, partition and methods: see run(); a partition function is called for each point. out:
    folder for the runs. threads: per run; 0 means one per core.

    executor: an object whose submit(function, *arguments) returns futures, such as a pool of concurrent.futures, Dask's
    Client and submitit's AutoExecutor, or the module `ray`. Its processes must be able to access `out` and to import
    the modules of `methods`. None: sequentially in this process. If a point's worker is killed, the point is submitted
    again, up to three times in total.
    Raises ScenarioError with all errors before the first run, and RunFailed if a run fails.
    """
    host(methods)
    if not isinstance(seeds, Iterable):
        raise ScenarioError([("seeds", f"{seeds!r}; expected a list of seeds, as in seeds=[1, 2, 3]")])
    grid = grid_of(dict(over or {}), list(seeds))
    points = planned(scenario, grid, dict(overrides), data, partition, os.path.abspath(os.fspath(out)))
    if executor is None:
        return [perform(point, methods, threads) for point in points]
    folders = submitted(executor, points, methods, threads)
    return [Run(folder) for folder in folders]


def grid_of(over, seeds):
    """Returns {key: values} of the grid, the seeds last."""
    def is_list(values):
        return isinstance(values, Iterable) and not isinstance(values, (str, bytes, dict))

    grid = {key: list(values) if is_list(values) else [] for key, values in over.items()}
    wrong = [(key, f"over has {over[key]!r} for it; expected a list of values, one or more, which it takes in turn")
             for key, values in grid.items() if not values]
    if wrong:
        raise ScenarioError(wrong)
    return {**grid, "seed": seeds} if seeds else grid


def planned(scenario, grid, overrides, data, partition, out):
    """Returns [(scenario, overrides, folder)] of all points, after validating them."""
    data = data_of(data)
    if data is not None:
        overrides.update(data.keys())
    is_drawn = callable(partition)  # true: depends on seed and clients of the point
    fixed = {} if partition is None or is_drawn else partition_keys(partition, data, scenario, overrides)
    points, wrong, taken = [], [], set()
    for values in itertools.product(*grid.values()):
        chosen = {**overrides, **dict(zip(grid, values))}
        chosen.update(partition_keys(partition, data, scenario, chosen) if is_drawn else fixed)
        with opened(scenario, chosen) as source:
            findings, _, resolved, digest = _engine._check(source.file, source.settings, False)
            wrong += source.named(findings)
        if digest in taken:
            continue
        taken.add(digest)
        name = source.name or os.path.splitext(os.path.basename(source.file))[0]
        points.append((scenario, chosen, os.path.join(out, f"{name}-{digest[:8]}")))
    if wrong:
        raise ScenarioError(wrong)
    return points


def perform(point, methods, threads):
    """Keeps, resumes or starts the run of a point. Returns its Run."""
    scenario, chosen, folder = point
    if os.path.exists(os.path.join(folder, "scenario.toml")):
        return resume(folder, methods=methods, threads=threads, quiet=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    return run(scenario, chosen, out=folder, methods=methods, threads=threads, quiet=True)


def perform_there(point, methods, threads, known):
    """Runs perform() in another process and returns the folder. @param known sources of the methods, and texts of their
    files, which that process may lack"""
    sources, texts = known
    for file, text in texts.items():
        _syntax.known_texts.setdefault(file, text)
    for method in methods:
        if method._source_digest() != sources[method.name]:
            raise ScenarioError([(method.__name__, "its source in the executor's process differs from that in this "
                                  "process: values that were changed after the import of a module are not sent; set "
                                  "them in the module, or make them keys of the method")])
    return perform(point, methods, threads).folder


class RayTasks:
    """Adapter that gives Ray's tasks submit() and result()."""

    def __init__(self, ray):
        self.ray = ray

    def submit(self, function, *arguments):
        reference = self.ray.remote(function).remote(*arguments)
        return RayResult(self.ray, reference)


class RayResult:
    def __init__(self, ray, reference):
        self.ray, self.reference = ray, reference

    def result(self):
        try:
            return self.ray.get(self.reference)
        except self.ray.exceptions.RayTaskError as error:  # exception of the function itself
            raise error.cause if isinstance(error.cause, Exception) else error from None


# Exceptions of submitit, Ray and Dask for a killed worker; only users of these libraries import them.
WORKER_DIED = {"UncompletedJobError", "WorkerCrashedError", "NodeDiedError", "KilledWorker"}


def worker_died(error):
    return isinstance(error, (concurrent.futures.BrokenExecutor, OSError)) or type(error).__name__ in WORKER_DIED


def submitted(executor, points, methods, threads):
    """Folders of all points. A point whose process was killed is submitted again."""
    if not hasattr(executor, "submit") and hasattr(executor, "remote"):
        executor = RayTasks(executor)
    known = {method.name: method._source_digest() for method in methods}, dict(_syntax.known_texts)
    folders, tries = {}, {}
    waiting = dict(enumerate(points))
    while waiting:
        futures = {index: executor.submit(perform_there, point, list(methods), threads, known)
                   for index, point in waiting.items()}
        for index, future in futures.items():
            try:
                folders[index] = future.result()
                waiting.pop(index)
            except Exception as error:  # noqa: BLE001  libraries have classes of their own for it
                if not worker_died(error):
                    raise
                tries[index] = tries.get(index, 0) + 1
                if tries[index] >= TRIES:
                    raise RunFailed(f"the worker of {points[index][2]} was killed {TRIES} times: {error}",
                                    points[index][2], points[index][2]) from error
        if waiting and isinstance(executor, concurrent.futures.ProcessPoolExecutor):
            executor = concurrent.futures.ProcessPoolExecutor(executor._max_workers, mp_context=executor._mp_context)
    return [folders[index] for index in range(len(points))]
