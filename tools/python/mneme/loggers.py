"""Loggers: pass the records of a run to tracking tools, during the run or afterwards.

    mneme.run(scenario, loggers=[mneme.loggers.TensorBoard("logs")])
    mneme.loggers.MLflow("mlruns").log(mneme.load(folder))
    mneme export RUN --tensorboard DIR | --mlflow DIR | --wandb PROJECT

Each logger imports its library when it is created.
"""
import argparse
import os
import sys
from typing import Any

from mneme._errors import RunFailed, ScenarioError
from mneme._runs import Run
from mneme._types import Path, Record

STEP = "round"


def figures(record):
    """Returns [(name, number)] of an evaluation or a summary; a list gives one number per element."""
    for name, value in record.items():
        if isinstance(value, bool) or name in ("task", STEP):
            continue
        if isinstance(value, (int, float)):
            yield name, value
        elif isinstance(value, list) and all(isinstance(part, (int, float)) for part in value):
            yield from ((f"{name}/{index + 1}", part) for index, part in enumerate(value))
        elif isinstance(value, dict):
            yield from ((f"{name}/{part}", number) for part, number in figures(value))


def keys_of(run):
    """Returns {"section.key": value} of the run's resolved scenario."""
    import tomllib
    sections = tomllib.loads(run.scenario())
    flat = {}
    for name, value in sections.items():
        flat |= ({f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value})
    return flat


class Logger:
    """Base class. It is called with each evaluation, and with the run at its end."""

    def __call__(self, record: Record) -> None:
        raise NotImplementedError

    def finish(self, run: Run | None = None) -> None:
        """Writes remaining data. If the run is given, also writes its keys and its summary."""

    def log(self, run: Run) -> None:
        """Writes everything about a run that has ended."""
        for record in run.records:
            self(record)
        self.finish(run)


class TensorBoard(Logger):
    """Writes TensorBoard event files to a folder."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter
        self.writer = SummaryWriter(os.fspath(folder))

    def __call__(self, record: Record) -> None:
        for name, value in figures(record):
            self.writer.add_scalar(name, value, record[STEP])
        self.writer.flush()

    def finish(self, run: Run | None = None) -> None:
        if run is not None:
            self.writer.add_text("scenario", "    " + run.scenario().replace("\n", "\n    "))
        self.writer.close()


class MLflow(Logger):
    """Writes a run to an MLflow file store, or to a tracking server if `folder` is its address."""

    def __init__(self, folder: Path = "mlruns", experiment: str = "mneme", name: str | None = None) -> None:
        import mlflow
        address = folder if "://" in os.fspath(folder) else "file:" + os.path.abspath(folder)
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self.client = mlflow.MlflowClient(tracking_uri=address)
        known = self.client.get_experiment_by_name(experiment)
        experiment_id = known.experiment_id if known else self.client.create_experiment(experiment)
        self.id = self.client.create_run(experiment_id, run_name=name).info.run_id

    def __call__(self, record: Record) -> None:
        for name, value in figures(record):
            self.client.log_metric(self.id, name, value, step=record[STEP])

    def finish(self, run: Run | None = None) -> None:
        if run is not None:
            for name, value in keys_of(run).items():
                self.client.log_param(self.id, name, str(value)[:500])
            self.client.set_tag(self.id, "run_digest", run.digest)
        self.client.set_terminated(self.id)


class Wandb(Logger):
    """Writes a run to Weights & Biases; offline unless `mode` is set."""

    def __init__(self, project: str = "mneme", name: str | None = None, mode: str = "offline",
                 **options: Any) -> None:
        import wandb
        self.run = wandb.init(project=project, name=name, mode=mode, **options)

    def __call__(self, record: Record) -> None:
        self.run.log(dict(figures(record)), step=record[STEP])

    def finish(self, run: Run | None = None) -> None:
        if run is not None:
            self.run.config.update(keys_of(run))
            self.run.summary.update({"run_digest": run.digest, **dict(figures(run.summary))})
        self.run.finish()


def export(words):
    """Implements `mneme export RUN ...`. Returns 0, or 2 for invalid arguments."""
    parser = argparse.ArgumentParser(prog="mneme export", description="Hand a run's records to a logger.")
    parser.add_argument("run", metavar="RUN", help="folder of the run")
    parser.add_argument("--tensorboard", metavar="DIR", help="write event files for TensorBoard")
    parser.add_argument("--mlflow", metavar="DIR", help="write into an MLflow store of files, or to a server's address")
    parser.add_argument("--wandb", metavar="PROJECT", help="write an offline run of Weights & Biases")
    asked = parser.parse_args(words)
    chosen = [(TensorBoard, asked.tensorboard), (MLflow, asked.mlflow), (Wandb, asked.wandb)]
    if not any(target for _, target in chosen):
        parser.error("expected --tensorboard DIR, --mlflow DIR or --wandb PROJECT")
    try:
        run = Run(asked.run)
        for logger, target in chosen:
            if target:
                logger(target).log(run)
    except ImportError as missing:
        print(f"error: {missing}; pip install {missing.name}", file=sys.stderr)
        return 2
    except (ScenarioError, RunFailed) as wrong:
        print(f"error: {wrong}", file=sys.stderr)
        return 2
    return 0
