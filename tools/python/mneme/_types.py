"""Types that the public functions of the package share."""
import os
from collections.abc import Mapping
from typing import Any, Protocol

Path = str | os.PathLike[str]
Keys = Mapping[str, Any]   # {"section.key": value} or {"section": {"key": value}}
Scenario = Path | Keys
Record = dict[str, Any]    # an evaluation, as metrics.jsonl has it


class Executor(Protocol):
    """What a pool of concurrent.futures, Dask's Client and submitit's executors have in common."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...
