"""Compiles sources without precompiled headers, without output: includes_check.py COMPILE_COMMANDS COUNT

Checks that a source includes the headers of all that it uses; precompiled headers hide missing ones. Compiling all
sources takes too long, so COUNT are selected at random with the commit as seed.
"""
import concurrent.futures
import hashlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from clang_check import entries_of, plain_flags  # noqa: E402


def drawn(files, count, seed):
    """Selects `count` files at random. @param seed of the random order"""
    return sorted(files, key=lambda file: hashlib.sha256(f"{seed} {file}".encode()).hexdigest())[:count]


def check(entry):
    command = [entry["command"].split()[0], "-fsyntax-only", *plain_flags(entry), entry["file"]]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], done.returncode, done.stderr


def main():
    commands, count = sys.argv[1], int(sys.argv[2])
    entries = {os.path.relpath(file): entry for file, entry in entries_of(commands).items()
               if "cmake_pch.hxx" in entry["command"]}
    sources = [file for file in entries if not file.startswith("build" + os.sep)]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    chosen = drawn(sources, count, commit)
    if not chosen:
        sys.exit(f"{commands}: no source uses precompiled headers")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, (entries[file] for file in chosen)))
    for file, status, said in sorted(results):
        if status != 0:
            print(f"{os.path.relpath(file)}: does not include what it uses\n{said}")
    sys.exit(any(status != 0 for _, status, _ in results))


if __name__ == "__main__":
    main()
