"""The console script `mneme`: the program that lies in the package."""
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "mneme")


def main():
    """Becomes the program; `mneme export` alone is Python's."""
    if sys.argv[1:2] == ["export"]:
        from mneme.loggers import export
        sys.exit(export(sys.argv[2:]))
    os.execv(PROGRAM, ["mneme", *sys.argv[1:]])
