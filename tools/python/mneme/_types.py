"""Types of the package's public functions."""
import os
from collections.abc import Mapping
from typing import Any, Protocol

Path = str | os.PathLike[str]
Keys = Mapping[str, Any]   # {"section.key": value} or {"section": {"key": value}}
Scenario = Path | Keys
Record = dict[str, Any]    # an evaluation, as in metrics.jsonl


class Executor(Protocol):
    """Common interface of pools of concurrent.futures, Dask's Client and submitit's executors."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...
