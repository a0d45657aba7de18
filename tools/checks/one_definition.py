"""Compiles all headers of the program as one source, without output: one_definition.py COMPILE_COMMANDS FOLDER...

Two headers that define a type or inline function of the same name violate the one-definition rule. Each source
compiles, and the linker keeps one definition without a warning; in one source the compiler reports both. This takes 20
s; a build with -flto -Wodr would compile the whole tree again. Types of .cpp files are checked by `one_type` of
tools/tidy.py.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from clang_check import entries_of, plain_flags  # noqa: E402

INCLUDE_FLAGS = ("-I", "-isystem", "-D", "-std=")


def include_flags(entries):
    """Include folders, macros and standard of all sources, each once, in the order of the sources."""
    flags = {}
    for _, entry in sorted(entries.items()):
        words = plain_flags(entry)
        for word, following in zip(words, words[1:] + [""]):
            if word == "-isystem":
                flags.setdefault((word, following))
            elif word.startswith(INCLUDE_FLAGS):
                flags.setdefault((word,))
    return [word for flag in flags for word in flag]


def headers_below(root, folders):
    """Paths, relative to the root, of all headers in the folders."""
    for folder in folders:
        for at, _, names in os.walk(os.path.join(root, folder)):
            yield from (os.path.relpath(os.path.join(at, name), root) for name in names if name.endswith(".hpp"))


def main():
    commands, folders = sys.argv[1], sys.argv[2:]
    # The Python package and the device kernels need libraries that some machines do not have.
    entries = {file: entry for file, entry in entries_of(commands).items() if file.endswith(".cpp")}
    root = os.getcwd()
    headers = sorted(headers_below(root, folders))
    if not headers:
        sys.exit(f"no headers below {', '.join(folders)}")
    if not any(os.path.relpath(file, root).startswith("tools/python/") for file in entries):
        headers = [header for header in headers if not header.startswith("tools/python/")]
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "all_headers.cpp")
        with open(source, "w", encoding="utf-8") as text:
            text.writelines(f'#include "{header}"\n' for header in headers)
        command = ["g++", "-fsyntax-only", "-w", f"-I{root}", *include_flags(entries), source]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{len(headers)} headers do not compile as one source:\n{done.stderr}")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
