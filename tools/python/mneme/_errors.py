"""What can go wrong, as exceptions with the program's own words."""
from collections.abc import Iterable
from typing import Any


class ScenarioError(ValueError):
    """A scenario, its data or a run directory is not what it should be; nothing was written.

    `findings` lists all of it as (where, text).
    """

    def __init__(self, findings: Iterable[tuple[str, str]]) -> None:
        self.findings = list(findings)
        super().__init__("\n".join(f"{where}: {text}" if where else text for where, text in self.findings))

    def __reduce__(self) -> tuple[Any, ...]:  # as the next two: from a worker of a sweep
        return type(self), (self.findings,)


class RunFailed(RuntimeError):
    """A run began and failed. `folder` has what it had done; mneme.resume(resume_from) goes on unless it is empty."""

    def __init__(self, text: str, folder: str = "", resume_from: str = "") -> None:
        self.text, self.folder, self.resume_from = text, folder, resume_from
        super().__init__(text + (f"\nmneme.resume({resume_from!r}) goes on" if resume_from else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.folder, self.resume_from)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run in order; mneme.resume(error.folder) goes on."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(f"interrupted; mneme.resume({folder!r}) goes on")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder,)


class MnemeWarning(UserWarning):
    """Something in a scenario is well and can hardly be meant."""
