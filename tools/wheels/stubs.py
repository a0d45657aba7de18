"""python3 stubs.py SITE: stubs for CUDA's libraries that torch in the folder SITE is linked with and that are missing.

`import torch` loads all of these libraries, 4 GB on disk, even on machines without a device, where none of their
functions is ever called. A stub has the functions that torch's libraries refer to, by name and version. Each function
prints a line and ends the process. Stubs are written below SITE/nvidia, where torch searches. Needs g++.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

ABSENT = re.compile(r"lib(cu|nccl|nvshmem)\w*\.so")
FUNCTION = re.compile(r"cu(blas|dnn|fft|File|rand|solver|sparse)|nccl|nvshmem")
CALLED = """
extern "C" long write(int, const void *, unsigned long);
extern "C" void abort();
static const char text[] = "a function of {library} was called, which is a stub: a device needs CUDA's own library\\n";
extern "C" void called_stub() {{
  write(2, text, sizeof text - 1);
  abort();
}}
"""


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout


def needed_libraries(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(path, "-d"))


def symbols(path):
    """(names that the library defines, {name: version or ""} of names that it expects from others)"""
    defined, expected = set(), {}
    for line in readelf(path, "--dyn-syms").splitlines():
        words = line.split()
        if len(words) < 8 or words[4] != "GLOBAL":
            continue
        name, _, version = words[7].partition("@")
        if words[6] == "UND":
            expected[name] = version
        else:
            defined.add(name)
    return defined, expected


def versions(path):
    """{version: library} for the versioned names that the library expects."""
    libraries, library = {}, ""
    for line in readelf(path, "-V").splitlines():
        found = re.search(r"File: (\S+)", line)
        library = found.group(1) if found else library
        for version in re.findall(r"Name: (\S+)  Flags", line):
            libraries[version] = library
    return libraries


def absent_functions(site):
    """{library: {function: version or ""}} for functions that torch's libraries need and that no library below `site`
    has. The library of a function without a version is unknown, so all libraries without versions get it."""
    paths = glob.glob(os.path.join(site, "torch", "lib", "*.so*"))
    there = paths + glob.glob(os.path.join(site, "nvidia", "**", "*.so*"), recursive=True)
    names = {os.path.basename(path) for path in there}
    needed = {name for path in paths for name in needed_libraries(path)
              if ABSENT.match(name) and name not in names and name != "libcuda.so.1"}  # which the driver has
    defined, expected, library_of = set(), {}, {}
    for path in there:
        has, expects = symbols(path)
        defined |= has
        if path in paths:
            expected.update(expects)
            library_of.update(versions(path))
    absent = {library: {} for library in needed}
    for name, version in expected.items():
        if library_of.get(version) in absent:
            absent[library_of[version]][name] = version
    plain = {name: "" for name, version in expected.items()
             if not version and name not in defined and FUNCTION.match(name)}
    return {library: functions or plain for library, functions in absent.items()}


def write_stub(folder, library, functions):
    with tempfile.TemporaryDirectory() as scratch:
        source, script = os.path.join(scratch, "stub.cpp"), os.path.join(scratch, "stub.map")
        with open(source, "w", encoding="utf-8") as file:
            file.write(CALLED.format(library=library))
            for name in functions:
                file.write(f'extern "C" void {name}() __attribute__((alias("called_stub")));\n')
        options = []
        marks = set(functions.values()) - {""}
        if marks:
            with open(script, "w", encoding="utf-8") as file:
                for mark in sorted(marks):
                    names = [name + ";" for name, version in functions.items() if version == mark]
                    file.write(f"{mark} {{ {' '.join(names)} }};\n")
            options = ["-Wl,--version-script=" + script]
        subprocess.run(["g++", "-shared", "-fPIC", "-w", "-fno-builtin", "-nostdlib", source, "-Wl,-soname," + library,
                        *options, "-lc", "-o", os.path.join(folder, library)], check=True)


def main():
    site, = sys.argv[1:]
    folder = os.path.join(site, "nvidia", "cu13", "lib")
    os.makedirs(folder, exist_ok=True)
    for library, functions in sorted(absent_functions(site).items()):
        write_stub(folder, library, functions)


if __name__ == "__main__":
    main()
