"""mneme simulates federated continual learning. You describe runs in Python; native code computes them.

    import mneme
    run = mneme.run("scenarios/quickstart.toml")
    print(run.summary["final_accuracy"], run.digest)

`docs/python.md` is the guide.
"""
from mneme import _torch  # noqa: F401  first: it loads the LibTorch that the engine uses
from mneme._engine import (Broadcast, ClientContext, Delivery, Job, Loss, Outcome, Random, RoundInfo, Rows,
                           ServerContext, Setup, Upload, corrected, distillation, proximal, quadratic)
from mneme._errors import Interrupted, MnemeWarning, RunFailed, ScenarioError
from mneme._methods import AveragingServer, Method, Round, Server, cross_entropy, key, loss
from mneme._data import Data
from mneme._nets import Net, net
from mneme._comparison import compare
from mneme._partition import PartitionCounts, partition
from mneme._runs import Run, load, resume, run, runs, schema, validate
from mneme._sweeps import sweep
from mneme._weights import weights
from mneme._version import version as __version__
from mneme import _deprecated, cluster, loggers, privacy

__all__ = ["AveragingServer", "Broadcast", "ClientContext", "Data", "Delivery", "Interrupted", "Job", "Loss",
           "Method", "MnemeWarning", "Net", "Outcome", "PartitionCounts", "Random", "Round", "RoundInfo", "Rows",
           "Run", "RunFailed", "ScenarioError", "Server", "ServerContext", "Setup", "Upload", "cluster", "compare",
           "corrected", "cross_entropy", "distillation", "key", "load", "loggers", "loss", "net", "partition",
           "privacy", "proximal", "quadratic", "resume", "run", "runs", "schema", "sweep", "validate", "weights",
           "__version__"]


def __getattr__(name: str) -> object:
    if name == "Place":
        _deprecated.warn("mneme.Place", "mneme.RoundInfo")
        return RoundInfo
    raise AttributeError(f"module 'mneme' has no attribute '{name}'")
