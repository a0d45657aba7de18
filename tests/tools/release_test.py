"""tools/release: its checks report all faults, and its files hold what the packages contain."""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

TOOL = os.path.join(ROOT, "tools", "release")
PACKAGE = """#!/bin/sh
mkdir -p dist
case $1 in sdist) name=mneme_fcl-0.7.0.tar.gz ;; wheel) name=mneme_fcl-0.7.0-py3.whl ;; *) name=mneme-$1 ;; esac
echo "$1" >dist/$name
echo dist/$name
"""


def load_tool():
    loader = importlib.machinery.SourceFileLoader("release", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
    loader.exec_module(module)
    return module


class Release(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="a tree ")
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        for name in ("tools", "docs"):
            os.mkdir(os.path.join(self.tree, name))
        shutil.copy(TOOL, os.path.join(self.tree, "tools"))
        shutil.copy(os.path.join(ROOT, "docs", "licences.md"), os.path.join(self.tree, "docs"))
        self.write("tools/package", PACKAGE)
        os.chmod(os.path.join(self.tree, "tools", "package"), 0o755)
        self.write("CMakeLists.txt", "project(mneme VERSION 0.7.0 LANGUAGES CXX)\n")
        self.write("CITATION.cff", "version: 0.7.0\n")
        self.write("CHANGELOG.md", "# Changes\n\n## Unreleased\n\n## 0.7.0\n\n### Added\n\n- A thing.\n\n"
                                   "## 0.6.0\n\n- Old.\n")
        self.write(".gitignore", "/build/\n/dist/\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("-c", "user.name=x", "-c", "user.email=x@localhost", "commit", "-qm", "All")
        os.mkdir(os.path.join(self.tree, "build"))
        self.write("build/passed", self.git("rev-parse", "HEAD"))

    def write(self, name, text):
        with open(os.path.join(self.tree, name), "w", encoding="utf-8") as file:
            file.write(text)

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.tree, capture_output=True, text=True, check=True).stdout

    def release(self, *words):
        return subprocess.run([sys.executable, os.path.join(self.tree, "tools", "release"), *words],
                              capture_output=True, text=True)

    def test_a_dry_run_makes_nothing(self):
        done = self.release("0.7.0", "--dry-run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertFalse(os.path.exists(os.path.join(self.tree, "dist")))

    def test_all_faults_are_reported_at_once(self):
        self.write("new", "")
        self.write("build/passed", "0123456789abcdef")
        self.git("tag", "v0.8.0")
        done = self.release("0.8.0")
        self.assertEqual(done.returncode, 2)
        for text in ("uncommitted changes", "CMakeLists.txt states version 0.7.0; expected 0.8.0",
                     "CITATION.cff states version 0.7.0", "no text below '## 0.8.0'", "the tag v0.8.0 exists",
                     "tests passed for 0123456789ab, not for"):
            self.assertIn(text, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.tree, "dist")))
        self.assertIn("'1.0' is not MAJOR.MINOR.PATCH", self.release("1.0").stderr)

    def test_a_release_has_packages_notes_checksums_and_a_bill_of_materials(self):
        done = self.release("0.7.0")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = os.path.join(self.tree, "dist", "0.7.0")
        self.assertEqual(sorted(os.listdir(out)), [
            "NOTES.md", "SHA256SUMS", "mneme-0.7.0.spdx.json", "mneme-deb", "mneme-tarball", "mneme_fcl-0.7.0-py3.whl",
            "mneme_fcl-0.7.0.tar.gz"])
        with open(os.path.join(out, "NOTES.md"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "# mneme 0.7.0\n\n### Added\n\n- A thing.\n")
        subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=out, check=True)
        with open(os.path.join(out, "mneme-0.7.0.spdx.json"), encoding="utf-8") as file:
            bill = json.load(file)
        self.assertEqual(bill["packages"][0]["versionInfo"], "0.7.0")
        names = " ".join(package["name"] for package in bill["packages"])
        for library in ("CAF", "LibTorch", "OpenSSL", "SQLite"):
            self.assertIn(library.lower(), names.lower())
        known = {package["SPDXID"] for package in bill["packages"]}
        self.assertEqual({relation["relatedSpdxElement"] for relation in bill["relationships"]}, known)
        self.assertEqual(self.release("0.7.0").returncode, 2)  # it exists

    def test_notes_of_an_unknown_version_are_empty(self):
        self.assertEqual(load_tool().release_notes("## 0.1.0\n\ntext\n", "0.1"), "")


if __name__ == "__main__":
    run_tests()
