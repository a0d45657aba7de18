"""Sweeps: the points of a study, done one by one or by an executor of concurrent.futures, Dask, Ray or submitit."""
import concurrent.futures
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mneme import _engine
from mneme._errors import RunFailed, ScenarioError
from mneme._methods import Method, host
from mneme._runs import Run, resume, run
from mneme._scenarios import opened
from mneme._types import Executor, Keys, Path, Scenario

TRIES = 3  # of a point whose worker was killed


def sweep(scenario: Scenario, over: Mapping[str, Iterable[Any]] | None = None, seeds: Iterable[int] = (), *,
          overrides: Keys = {}, out: Path = "runs", executor: Executor | Any = None,
          methods: Sequence[type[Method]] = (), threads: int = 1) -> list[Run]:
    """Runs a grid and returns its Runs in the order of the grid: each combination of values in `over` ({key: values}),
    once with each seed. Points that are done are kept, and what began is gone on with, so that calling it again ends
    what was interrupted.

    executor: anything with submit(function, *arguments) that returns futures, as a pool of concurrent.futures, Dask's
    Client and submitit's AutoExecutor, or the module `ray`; their processes have to see `out`, and import the modules
    of `methods`. None: one point after the other, in this process. A point whose worker was killed is submitted again,
    three times at most.
    """
    host(methods)
    points = planned(scenario, dict(over or {}), list(seeds), dict(overrides), os.path.abspath(os.fspath(out)))
    if executor is None:
        return [perform(point, methods, threads) for point in points]
    folders = submitted(executor, points, methods, threads)
    return [Run(folder) for folder in folders]


def planned(scenario, over, seeds, overrides, out):
    """[(scenario, overrides, folder)]; all points are checked before one runs."""
    if seeds:
        over = {**over, "seed": seeds}
    points, wrong, taken = [], [], set()
    for values in itertools.product(*over.values()):
        chosen = {**overrides, **dict(zip(over, values))}
        with opened(scenario, chosen) as (file, settings, name):
            findings, _, resolved, digest = _engine._check(file, settings, False)
        wrong += [finding for finding in findings if finding not in wrong]
        if digest in taken:
            continue
        taken.add(digest)
        name = name or os.path.splitext(os.path.basename(file))[0]
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


def perform_there(point, methods, threads):
    """perform() in another process; what comes back is its folder."""
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
    folders, tries = {}, {}
    waiting = dict(enumerate(points))
    while waiting:
        futures = {index: executor.submit(perform_there, point, list(methods), threads)
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
