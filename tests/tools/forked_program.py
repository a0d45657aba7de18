"""Runs `python -m mneme` in forks of a process that has imported mneme: importing torch takes 2 s of processor time."""
import multiprocessing
import os
import subprocess
import sys
import tempfile

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["mneme"])


def become_program(words, out, errors, folder, settings):
    for number, path in ((1, out), (2, errors)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.chdir(folder)
    os.environ.update(settings)
    sys.argv[1:] = words
    from mneme._program import main
    main()


def started(*words, out, errors=None, folder=".", **settings):
    """Starts a command with stdout and stderr in files and these environment variables. Returns its process."""
    process = FORKS.Process(target=become_program,
                            args=(words, out, errors or out, os.path.abspath(folder), settings))
    process.start()
    return process


def completed(*words, folder="."):
    """Runs a command to its end. Returns what subprocess.run() returns for captured text."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = [os.path.join(scratch, name) for name in ("out", "errors")]
        process = started(*words, out=paths[0], errors=paths[1], folder=folder)
        process.join()
        texts = []
        for path in paths:
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        return subprocess.CompletedProcess(words, process.exitcode, *texts)
