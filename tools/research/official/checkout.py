"""Checks that a checkout of an official program has the commit for which its numbers were recorded."""
import subprocess


class Refused(Exception):
    """Error of bad input. main() prints it and exits with 2."""


def git(checkout, *words):
    done = subprocess.run(["git", "-C", checkout, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"{checkout}: not a git checkout ({done.stderr.strip()}); expected a clone of the official code")
    return done.stdout.strip()


def check_commit(checkout, repository, commit):
    """Refuses another commit and changed files, because the recorded numbers must come from the published code."""
    present = git(checkout, "rev-parse", "HEAD")
    if present != commit:
        raise Refused(f"{checkout}: commit {present}; expected {commit} of {repository}: "
                      f"git -C {checkout} checkout {commit}")
    changed = git(checkout, "status", "--porcelain", "--untracked-files=no")
    if changed:
        raise Refused(f"{checkout}: files differ from commit {commit}: {changed.splitlines()[0].strip()}; "
                      f"expected none: git -C {checkout} restore .")
