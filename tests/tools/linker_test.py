"""Every function of the program has an entry in the search table for exception handlers (.eh_frame_hdr)."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

CMAKE = os.path.join(ROOT, "tools", "cmake")
EMPTY_FUNCTION = os.path.join(CMAKE, "linker", "empty_function.cpp")
LINKERS = ("bfd", "gold", "lld", "mold")
PROJECT = f"""cmake_minimum_required(VERSION 3.25)
project(linked LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH {CMAKE})
include(linker)
get_property(options DIRECTORY PROPERTY LINK_OPTIONS)
message(STATUS "links with [${{options}}]")
"""


def sections(elf):
    """Address and bytes of each section of a 64-bit ELF file, by name."""
    start, entry_size, count, names_at = struct.unpack_from("<Q", elf, 40) + struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<II4Q", elf, start + i * entry_size) for i in range(count)]
    names = headers[names_at][4]
    return {elf[names + name:elf.index(0, names + name)].decode(): (address, elf[offset:offset + size])
            for name, _, _, address, offset, size in headers}


def functions(address, frames):
    """(address, code size) of each function in .eh_frame, in the x86-64 encoding: 32 bits, relative to their
    position."""
    place = 0
    while place + 4 <= len(frames):
        (length,) = struct.unpack_from("<I", frames, place)
        if length == 0:
            return
        (common,) = struct.unpack_from("<I", frames, place + 4)
        if common != 0:
            offset, size = struct.unpack_from("<iI", frames, place + 8)
            yield address + place + 8 + offset, size
        place += 4 + length


def table(address, header):
    """Addresses in the search table: pairs of 32 bits relative to the start of the section, function and entry."""
    assert header[:4] == b"\x01\x1b\x03\x3b", header[:4]
    (count,) = struct.unpack_from("<I", header, 8)
    return [(address + struct.unpack_from("<i", header, 12 + 8 * i)[0],
             address + struct.unpack_from("<i", header, 16 + 8 * i)[0]) for i in range(count)]


def hidden_functions(path):
    """Addresses of functions for which the search table has no entry, or a wrong one."""
    with open(path, "rb") as file:
        parts = sections(file.read())
    frames_at, frames = parts[".eh_frame"]
    entered = {}
    for start, entry in table(*parts[".eh_frame_hdr"]):
        (size,) = struct.unpack_from("<I", frames, entry - frames_at + 12)
        entered[start] = size  # the unwinder uses the last of several entries of one address
    return sorted(hex(start) for start, size in functions(frames_at, frames) if size and entered.get(start) != size)


def linked(linker, folder):
    """Links the reduced program with this linker. Returns its path; None if the linker is not installed."""
    program = os.path.join(folder, linker)
    command = ["c++", "-O2", f"-fuse-ld={linker}", EMPTY_FUNCTION, "-o", program]
    return program if subprocess.run(command, capture_output=True).returncode == 0 else None


class Linker(unittest.TestCase):
    def test_every_function_of_the_program_is_in_its_exception_table(self):
        self.assertEqual(hidden_functions(PROGRAM), [])

    def test_a_program_terminates_only_if_its_exception_table_lacks_a_function(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = {linker: linked(linker, folder) for linker in LINKERS if shutil.which(f"ld.{linker}")}
            self.assertTrue(programs.get("bfd"), "GNU ld is what the build falls back to")
            status = {linker: subprocess.run([path]).returncode for linker, path in programs.items() if path}
            hiding = {linker: bool(hidden_functions(path)) for linker, path in programs.items() if path}
            print("exit codes by linker:", status)
            self.assertEqual(status["bfd"], 0)
            self.assertEqual({linker: code != 0 for linker, code in status.items()}, hiding)

    def test_the_build_rejects_linkers_that_lose_exception_handlers(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as file:
                file.write(PROJECT)
            lld = linked("lld", folder) if shutil.which("ld.lld") else None
            if lld is None:
                self.skipTest("no lld here")
            right = subprocess.run([lld]).returncode == 0
            taken = self.configured(folder, "taken")
            self.assertIn("links with [-fuse-ld=lld]" if right else "links with []", taken.stdout)
            insisted = self.configured(folder, "insisted", "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld")
            self.assertEqual(insisted.returncode == 0, right, insisted.stderr)
            if not right:
                self.assertIn("-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=bfd", insisted.stderr)

    def configured(self, folder, build, *options):
        command = ["cmake", "-S", folder, "-B", os.path.join(folder, build), "-G", "Ninja", *options]
        return subprocess.run(command, capture_output=True, text=True)


if __name__ == "__main__":
    run_tests()
