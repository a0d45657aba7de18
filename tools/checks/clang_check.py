"""Runs clang-tidy on the sources of folders: clang_check.py COMPILE_COMMANDS FOLDER...

.clang-tidy lists the checks. Errors and warnings of clang are findings, too: g++ 12 and clang treat coroutines
differently, and a method must compile with both. clang gets the flags of the build; the sources of a unity build are
checked together. tools/bootstrap --lint installs the version of clang that is used here.
"""
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile


TIDY, COMPILER = "clang-tidy-19", "clang++-19"


def sources_of(entry):
    """Sources that a build command compiles: all sources of a unity build, or a single one."""
    if not os.path.basename(entry["file"]).startswith("unity_"):
        return [entry["file"]]
    with open(entry["file"], encoding="utf-8") as text:
        return re.findall(r'^#include "(/[^"]+)"', text.read(), re.M)


def entries_of(commands):
    """Build commands by source path. A source of a unity build has the command of the combined source."""
    entries = {}
    with open(commands, encoding="utf-8") as file:
        for entry in json.load(file):
            entries.update({source: {**entry, "file": source} for source in sources_of(entry)})
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
        elif not word.startswith(("-O", "-ftree-", "-fno-tree-")) and word not in ("-Winvalid-pch", "-fpch-preprocess"):
            kept.append(word)
    return kept


def clang_command(entry, *options):
    """The clang-tidy command for this entry of the build."""
    # The build's flags include warnings that clang does not have.
    return [TIDY, "--quiet", entry["file"], "--", *plain_flags(entry), "-Wno-unknown-warning-option", *options]


def header_of(entry):
    """Returns the header that the build precompiles for this source, or None."""
    words = shlex.split(entry["command"])
    return next((following for word, following in zip(words, words[1:])
                 if word == "-include" and following.endswith("cmake_pch.hxx")), None)


def precompiled(entries, folder):
    """{header: precompiled header or None}: compiles the build's precompiled headers with clang.

    Each is compiled once, with the flags of the first source that includes it. Other sources differ only in macros and
    include folders that the header does not use; clang reports any other difference.
    """
    made = {}
    for entry in entries:
        header = header_of(entry)
        if header is not None and header not in made:
            out = os.path.join(folder, f"{len(made)}.pch")
            command = [COMPILER, *plain_flags(entry), "-Wno-everything", "-x", "c++-header", header, "-o", out]
            done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
            made[header] = out if done.returncode == 0 else None  # errors appear when sources are compiled
    return made


def check(entry, headers):
    """(file, exit code, findings) of one entry."""
    header = headers.get(header_of(entry))
    done = subprocess.run(clang_command(entry, *(["-include-pch", header] if header else [])),
                          cwd=entry["directory"], capture_output=True, text=True)
    return entry["file"], done.returncode, done.stdout or done.stderr


def chosen_entries(commands, folders):
    """Entries of the build that compile sources below the folders."""
    with open(commands, encoding="utf-8") as file:
        return [entry for entry in json.load(file) if any(source.startswith(folders) for source in sources_of(entry))]


def main():
    commands, named = sys.argv[1], sys.argv[2:]
    folders = tuple(os.path.abspath(name) + os.sep for name in named)
    entries = chosen_entries(commands, folders)
    if not entries:
        sys.exit(f"{commands}: no source below {', '.join(folders)}")
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = precompiled(entries, scratch)
        results = list(pool.map(lambda entry: check(entry, headers), entries))
    for file, status, said in sorted(results):
        if status != 0:
            print(f"{os.path.relpath(file)}: findings of clang-tidy\n{said}")
    sys.exit(any(status != 0 for _, status, _ in results))


if __name__ == "__main__":
    main()
