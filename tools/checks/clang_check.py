"""Compiles the sources of a folder with clang++, without output: clang_check.py COMPILE_COMMANDS FOLDER

g++ 12 and clang treat coroutines differently, and a method must compile with both. The flags are those of the build.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile


def entries_of(commands):
    """Build commands by source path. A source of a unity build has the command of the combined source."""
    entries = {}
    with open(commands, encoding="utf-8") as file:
        listed = json.load(file)
    for entry in listed:
        sources = [entry["file"]]
        if os.path.basename(entry["file"]).startswith("unity_"):
            with open(entry["file"], encoding="utf-8") as text:
                sources = re.findall(r'^#include "(/[^"]+)"', text.read(), re.M)
        entries.update({source: {**entry, "file": source} for source in sources})
    return entries


def plain_flags(entry):
    """Flags of the build command for this source, without output, optimization and precompiled headers."""
    words = shlex.split(entry["command"])
    start = next(i for i, word in enumerate(words) if word.startswith("-"))
    kept, skip_next = [], False
    for word, following in zip(words[start:], words[start + 1:] + [""]):
        if skip_next:
            skip_next = False
        elif word in ("-o", "-c") or word == "-include" and following.endswith("cmake_pch.hxx"):
            skip_next = True
        elif not word.startswith("-O") and word not in ("-Winvalid-pch", "-fpch-preprocess"):
            kept.append(word)
    return kept


def clang_command(entry, *options):
    """Syntax check of this source by clang++, with the flags of the build."""
    # The build's flags include warnings that clang does not have.
    return ["clang++", "-fsyntax-only", *plain_flags(entry), "-Werror", "-Wno-unknown-warning-option", *options,
            entry["file"]]


def header_of(entry):
    """Returns the header that the build precompiles for this source, or None."""
    words = shlex.split(entry["command"])
    return next((following for word, following in zip(words, words[1:])
                 if word == "-include" and following.endswith("cmake_pch.hxx")), None)


def precompiled(entries, folder):
    """Compiles the build's precompiled headers with clang++, once for all sources with the same flags."""
    made = {}
    for entry in entries:
        header, flags = header_of(entry), tuple(plain_flags(entry))
        if header is not None and (header, flags) not in made:
            out = os.path.join(folder, f"{len(made)}.pch")
            done = subprocess.run(["clang++", *flags, "-Wno-everything", "-x", "c++-header", header, "-o", out],
                                  cwd=entry["directory"], capture_output=True, text=True)
            made[header, flags] = out if done.returncode == 0 else None  # errors appear when sources are compiled
    return made


def check(entry, headers):
    header = headers.get((header_of(entry), tuple(plain_flags(entry))))
    done = subprocess.run(clang_command(entry, *(["-include-pch", header] if header else [])),
                          cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], done.returncode, done.stderr


def main():
    commands, folder = sys.argv[1], os.path.abspath(sys.argv[2]) + os.sep
    entries = {file: entry for file, entry in entries_of(commands).items() if file.startswith(folder)}
    if not entries:
        sys.exit(f"{commands}: no source below {folder}")
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = precompiled(entries.values(), scratch)
        results = list(pool.map(lambda entry: check(entry, headers), entries.values()))
    for file, status, said in sorted(results):
        if status != 0:
            print(f"{os.path.relpath(file)}: refused by clang++\n{said}")
    sys.exit(any(status != 0 for _, status, _ in results))


if __name__ == "__main__":
    main()
