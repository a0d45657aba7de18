"""tools/package: mneme runs after its folder is moved, and finds libraries in it and in the system."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

# The C and C++ runtimes, the only libraries that a package takes from the system.
RUNTIME = {"linux-vdso.so.1", "ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1",
           "libpthread.so.0", "libutil.so.1", "libresolv.so.2", "libgcc_s.so.1", "libstdc++.so.6"}


def dynamic_entries(path):
    told = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"\((RPATH|RUNPATH|NEEDED)\)\s+[^\[]*\[([^\]]*)\]", told))


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists(os.path.join(ROOT, "build", "release", "mneme")):
            raise unittest.SkipTest("a package is made from build/release, which has no program")
        cls.folder = tempfile.TemporaryDirectory(prefix="packages ")
        cls.addClassCleanup(cls.folder.cleanup)
        made = os.path.join(cls.folder.name, "made")
        subprocess.run([os.path.join(ROOT, "tools", "package"), "folder", made], check=True)
        cls.moved = os.path.join(cls.folder.name, "another place", "mneme")
        os.makedirs(os.path.dirname(cls.moved))
        shutil.move(made, cls.moved)
        cls.program = os.path.join(cls.moved, "bin", "mneme")
        # The environment of a user without library cache, variables and data.
        cls.environment = {"HOME": cls.folder.name, "PATH": "/usr/bin:/bin"}

    def mneme(self, *arguments):
        return self.run_command(self.program, *arguments)

    def run_command(self, *command):
        return subprocess.run(command, cwd=self.folder.name, env=self.environment, capture_output=True, text=True)

    def test_the_packaged_program_searches_libraries_only_in_its_package(self):
        entries = dynamic_entries(self.program)
        self.assertEqual(entries.get("RPATH"), "$ORIGIN/../lib/mneme")
        self.assertNotIn("RUNPATH", entries)
        told = self.run_command("ldd", self.program).stdout
        places = dict(re.findall(r"^\s*(\S+)(?: => (.*))? \(0x", told, re.M))
        self.assertNotIn("not found", told)
        carried = os.path.join(self.moved, "lib", "mneme")
        for name, place in places.items():
            if os.path.basename(name) not in RUNTIME:
                self.assertEqual(os.path.normpath(os.path.dirname(place)), carried, name)
        self.assertIn("libtorch_cpu.so", places)
        self.assertIn("libssl.so.3", places)

    def test_the_packaged_program_gives_the_digest_of_the_build(self):
        version = self.mneme("--version")
        self.assertEqual((version.returncode, version.stderr), (0, ""))
        digests = []
        for program in (self.program, os.path.join(ROOT, "build", "release", "mneme")):
            out = os.path.join(self.folder.name, f"run{len(digests)}")
            scenario = os.path.join(self.moved, "share", "mneme", "scenarios", "smoke", "fedavg.toml")
            done = self.run_command(program, "run", scenario, "--quiet", "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                digests.append(json.load(file)["run_digest"])
        self.assertEqual(digests[0], digests[1])

    def test_the_package_contains_pages_scenarios_and_licenses(self):
        for name in ("LICENSE", "README.md", "docs/licences.md", "scenarios/quickstart.toml",
                     "packaging/mneme-node.service", "packaging/slurm.sh", "licences/torch-2.11.0/LICENSE"):
            self.assertTrue(os.path.isfile(os.path.join(self.moved, "share", "mneme", name)), name)

    def test_an_existing_folder_is_not_changed(self):
        done = self.run_command(os.path.join(ROOT, "tools", "package"), "folder", self.moved)
        self.assertEqual(done.returncode, 1)
        self.assertIn("already exists", done.stderr)


if __name__ == "__main__":
    run_tests()
