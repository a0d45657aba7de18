"""What can go wrong, as exceptions with the program's own words."""
from collections.abc import Iterable
from typing import Any


def finding_text(where: str, text: str) -> str:
    """"where: text"; the place is not repeated where the text begins with it."""
    return f"{where}: {text}" if where and not text.startswith(where) else text


class ScenarioError(ValueError):
    """A scenario, its data or a run directory is not what it should be; nothing was written.

    `findings` lists all of it as (where, text). The place is FILE:LINE:COLUMN, or a key of a dict.
    """

    def __init__(self, findings: Iterable[tuple[str, str]]) -> None:
        self.findings = list(dict.fromkeys(findings))
        super().__init__("\n".join(finding_text(where, text) for where, text in self.findings))

    def __reduce__(self) -> tuple[Any, ...]:  # as the next two: from a worker of a sweep
        return type(self), (self.findings,)


class RunFailed(RuntimeError):
    """A run began and failed. `folder` has what it had done; mneme.resume(resume_from) goes on unless it is empty.

    `traceback` is that of the method's own exception, as text; "" where none was raised in this process.
    """

    def __init__(self, text: str, folder: str = "", resume_from: str = "", traceback: str = "") -> None:
        self.text, self.folder, self.resume_from, self.traceback = text, folder, resume_from, traceback
        super().__init__(text + (f"\nmneme.resume({resume_from!r}) goes on" if resume_from else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.folder, self.resume_from, self.traceback)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a run in order; mneme.resume(error.folder) goes on."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(f"interrupted; mneme.resume({folder!r}) goes on")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder,)


class MnemeWarning(UserWarning):
    """Something in a scenario is well and can hardly be meant."""
