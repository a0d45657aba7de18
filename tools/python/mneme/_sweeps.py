"""Sweeps: the points of a study, done one by one or by an executor of concurrent.futures, Dask, Ray or submitit."""
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

TRIES = 3  # of a point whose worker was killed


def sweep(scenario: Scenario, over: Mapping[str, Iterable[Any]] | None = None, seeds: Iterable[int] = (), *,
          overrides: Keys = {}, data: Data | None = None,  # noqa: B006
          partition: Partition | None = None, out: Path = "runs",
          executor: Executor | Any = None, methods: Sequence[type[Method]] = (), threads: int = 1) -> list[Run]:
    """Runs a grid and returns its Runs in the order of the grid: each combination of values in `over` ({key: values}),
    once with each of `seeds`. Points that are done are kept, and points that were begun are resumed, so that calling it
    again completes a sweep that was interrupted.

    scenario, overrides, data, partition and methods are as of run(); a partition that is a function is called for each
    point. out: the folder that holds the runs. threads: of each run; 0 is one per core.

    executor: anything with submit(function, *arguments) that returns futures, as a pool of concurrent.futures, Dask's
    Client and submitit's AutoExecutor, or the module `ray`; their processes have to see `out`, and import the modules
    of `methods`. None: one point after the other, in this process. A point whose worker was killed is submitted again,
    three times at most.
    Throws ScenarioError with all that is wrong before the first run, RunFailed where one fails.
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
    """{key: values}, the seeds last."""
    def is_list(values):
        return isinstance(values, Iterable) and not isinstance(values, (str, bytes, dict))

    grid = {key: list(values) if is_list(values) else [] for key, values in over.items()}
    wrong = [(key, f"over has {over[key]!r} for it; expected a list of values, one or more, which it takes in turn")
             for key, values in grid.items() if not values]
    if wrong:
        raise ScenarioError(wrong)
    return {**grid, "seed": seeds} if seeds else grid


def planned(scenario, grid, overrides, data, partition, out):
    """[(scenario, overrides, folder)]; all points are checked before one runs."""
    data = data_of(data)
    if data is not None:
        overrides.update(data.keys())
    is_drawn = callable(partition)  # from the seed and the clients of each point
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
    """The Run of a point, kept, gone on with or begun."""
    scenario, chosen, folder = point
    if os.path.exists(os.path.join(folder, "scenario.toml")):
        return resume(folder, methods=methods, threads=threads, quiet=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    return run(scenario, chosen, out=folder, methods=methods, threads=threads, quiet=True)


def perform_there(point, methods, threads, known):
    """perform() in another process; what comes back is its folder. @param known the sources of the methods, and the
    texts of files in which they were found, which the process may not have"""
    sources, texts = known
    for file, text in texts.items():
        _syntax.known_texts.setdefault(file, text)
    for method in methods:
        if method._source_digest() != sources[method.name]:
            raise ScenarioError([(method.__name__, "its source in the executor's process is not that of this one: "
                                  "values that were changed after the import of a module are not sent; set them in the "
                                  "module, or make them keys of the method")])
    return perform(point, methods, threads).folder


class RayTasks:
    """Ray's tasks by submit() and result()."""

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
        except self.ray.exceptions.RayTaskError as error:  # the function's own exception
            raise error.cause if isinstance(error.cause, Exception) else error from None


# Exceptions of submitit, Ray and Dask for a worker that died; their libraries are imported by those who use them.
WORKER_DIED = {"UncompletedJobError", "WorkerCrashedError", "NodeDiedError", "KilledWorker"}


def worker_died(error):
    return isinstance(error, (concurrent.futures.BrokenExecutor, OSError)) or type(error).__name__ in WORKER_DIED


def submitted(executor, points, methods, threads):
    """Folders of all points. A future that failed because its process died is submitted again."""
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
