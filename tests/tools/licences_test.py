"""docs/licences.md lists exactly the libraries that the build links; the version is defined in one place."""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

# The C and C++ runtimes, used by every program of the system.
RUNTIME = {"linux-vdso", "ld-linux-x86-64", "libc", "libm", "libdl", "librt", "libpthread", "libutil", "libgcc_s",
           "libstdc++"}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def linked_libraries():
    """Names, without versions, of all libraries that the program loads at its start."""
    told = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True).stdout
    names = (os.path.basename(line.split()[0]) for line in told.splitlines() if line.strip())
    return {re.sub(r"\.so.*", "", name) for name in names} - RUNTIME


class Licences(unittest.TestCase):
    def test_every_linked_library_has_a_row_and_every_row_a_library(self):
        lines = [line for line in read("docs", "licences.md").splitlines()
                 if line.startswith("| ") and not line.startswith("| dependency")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        named = {name for row in rows if len(row) == 3 for name in re.findall(r"\blib[a-z0-9_+-]+", row[2])}
        linked = linked_libraries()
        self.assertIn("libtorch_cpu", linked)
        devices = {name for name in linked if re.search("cuda|cu[a-z]*|nv|nccl", name)} - named
        self.assertEqual(linked - named - devices, set(), "linked, but no row of docs/licences.md names it")
        self.assertEqual(named - linked - {"libtorch"}, set(), "a row of docs/licences.md names it, in vain")
        for row in rows:
            self.assertTrue(row[1], f"no licence: {row}")

    def test_every_dependency_of_the_build_has_a_row(self):
        text = read("tools", "cmake", "dependencies.cmake")
        asked = set(re.findall(r"find_package\((\w+)", text))
        asked |= set(re.findall(r"find_(?:path|library)\(([A-Z0-9]+)_", text))
        self.assertGreater(len(asked), 15)
        page = read("docs", "licences.md").lower()
        absent = sorted(name for name in asked - {"TORCH"} if not re.search(rf"\b{name.lower()}\b", page))
        self.assertEqual(absent, [])

    def test_the_license_is_apache_2_and_the_version_is_the_builds(self):
        self.assertIn("Apache License\n                           Version 2.0, January 2004", read("LICENSE"))
        version = re.search(r"project\(mneme VERSION (\S+)", read("CMakeLists.txt")).group(1)
        self.assertRegex(read("CITATION.cff"), rf"(?m)^version: {re.escape(version)}$")
        told = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(told, f"mneme {version}\n")
        self.assertRegex(read("CHANGELOG.md"), r"(?m)^## Unreleased$")


if __name__ == "__main__":
    run_tests()
