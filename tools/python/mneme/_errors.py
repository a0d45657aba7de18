"""Exceptions with the messages of the program."""
from collections.abc import Iterable
from typing import Any


def finding_text(where: str, text: str) -> str:
    """Formats "where: text". Omits the location if the text begins with it."""
    return f"{where}: {text}" if where and not text.startswith(where) else text


class ScenarioError(ValueError):
    """Error of a scenario, its data or a run directory. Nothing was written.

    `findings` lists all errors as (where, text). `where` is FILE:LINE:COLUMN, or a key of a dict.
    """

    def __init__(self, findings: Iterable[tuple[str, str]]) -> None:
        self.findings = list(dict.fromkeys(findings))
        super().__init__("\n".join(finding_text(where, text) for where, text in self.findings))

    def __reduce__(self) -> tuple[Any, ...]:  # makes the exception picklable for workers of a sweep
        return type(self), (self.findings,)


class RunFailed(RuntimeError):
    """Error of a run that has started. `folder` has its results so far; mneme.resume(resume_from) resumes it unless
    `resume_from` is empty.

    `traceback` is the text of the method's exception; "" if none was raised in this process.
    """

    def __init__(self, text: str, folder: str = "", resume_from: str = "", traceback: str = "") -> None:
        self.text, self.folder, self.resume_from, self.traceback = text, folder, resume_from, traceback
        super().__init__(text + (f"\nmneme.resume({resume_from!r}) continues it" if resume_from else ""))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.folder, self.resume_from, self.traceback)


class Interrupted(KeyboardInterrupt):
    """Raised if Ctrl-C has stopped a run. mneme.resume(error.folder) resumes it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(f"interrupted; mneme.resume({folder!r}) continues it")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.folder,)


class MnemeWarning(UserWarning):
    """Warning about a valid scenario that is probably a mistake."""
