"""The console script `mneme`: runs the program contained in the package."""
import os
import sys

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "mneme")
CODE = "--python-code"


def main():
    """Replaces this process with the program. `mneme export` and `mneme export-net` are implemented in Python. With
    --python-code FILE, which may be repeated, the program runs in this process, and all commands have the methods of
    these files."""
    words = sys.argv[1:]
    if words[:1] == ["export"]:
        from mneme.loggers import export
        sys.exit(export(words[1:]))
    if words[:1] == ["export-net"]:
        from mneme._exported import export_net
        sys.exit(export_net(words[1:]))
    files, others = parted(words)
    if not files:
        os.execv(PROGRAM, ["mneme", *words])
    from mneme._code import run_with
    code = run_with(files, others)
    sys.stdout.flush()
    os._exit(code)  # the program also ends without waiting for loading threads


def parted(words):
    """Splits the arguments: (files of --python-code, the others)."""
    files, others = [], []
    words = iter(words)
    for word in words:
        name, equals, value = word.partition("=")
        if name == CODE:
            files.append(value if equals else next(words, ""))
        else:
            others.append(word)
    return files, others
