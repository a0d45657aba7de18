"""tools/bootstrap and tools/build: downloads are verified, and folders may contain a space."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
import unittest
from unittest import mock
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

VERSION = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True).stdout.strip()
COMPILER = "gcc" + VERSION.split(".")[0]
CAF, CATCH2 = f"caf-0.18.7-{COMPILER}", f"catch2-3-{COMPILER}"
OLDER = os.path.join("lib", "python3.11", "site-packages")  # location of LibTorch in folders of earlier versions
SCRIPTS = ("bootstrap", "build", "build_time.py", "build_costs.tsv", "steps.sh", "packages.sh")
# Fakes of the programs that use the network: they deliver wrong bytes.
CURL = """#!/bin/sh
while [ $# -gt 1 ]; do if [ "$1" = -o ]; then echo another release >"$2"; fi; shift; done
"""
CMAKE = """#!/bin/sh
for argument in "$@"; do echo "[$argument]" >>"$ARGUMENTS"; done
"""


class Bootstrap(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="a folder ")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.programs = os.path.join(self.folder, "programs")
        self.deps = os.path.join(self.folder, "deps")
        os.mkdir(self.programs)
        self.given("torch-2.11.0-cpu", "torch-2.11.0-cuda", CATCH2)
        if glob.glob("/usr/*/lib/cmake/CAF") or os.path.isdir("/usr/lib/cmake/CAF"):
            self.skipTest("CAF is installed on this machine, and nothing would be fetched")

    def given(self, *folders):
        for folder in folders:
            os.makedirs(os.path.join(self.deps, folder))

    def program(self, name, text):
        path = os.path.join(self.programs, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)

    def run_script(self, *command, **variables):
        path = f"{self.programs}:{os.environ['PATH']}"
        environment = {**os.environ, "MNEME_DEPS": self.deps, "PATH": path, **variables}
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def test_a_tarball_with_another_hash_is_refused(self):
        self.program("curl", CURL)
        done = self.run_script(os.path.join(ROOT, "tools", "bootstrap"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("0.18.7.tar.gz has another sha256 than d5c3abe8fd67", done.stderr)
        self.assertIn("actor-framework_0.18.7.orig.tar.gz has another sha256 than d5c3abe8fd67", done.stderr)
        self.assertEqual([name for name in os.listdir(self.deps) if name.startswith("caf")], [])
        self.assertEqual(os.listdir(os.path.join(self.deps, "download")), [])
        self.assertEqual(done.stdout, "")

    def test_every_wheel_has_a_hash(self):
        script = os.path.join(ROOT, "tools", "bootstrap")
        with open(script, encoding="utf-8") as file:
            self.assertRegex(file.read(), "download .*--require-hashes")
        for path in glob.glob(os.path.join(ROOT, "tools", "wheels", "*.txt")):
            with open(path, encoding="utf-8") as file:
                lines = file.read().replace("\\\n", " ").splitlines()
            wheels = [line for line in lines if line and not line.startswith(("#", "-r "))]
            self.assertGreater(len(wheels), 0)
            for line in wheels:
                self.assertTrue(re.fullmatch(r"[a-z0-9-]+==[0-9.]+( +--hash=sha256:[0-9a-f]{64})+", line), line)

    def test_bootstrap_installs_the_build_requirements_of_a_wheel(self):
        with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
            wheel = tomllib.load(file)
        with open(os.path.join(ROOT, "tools", "wheels", "python.txt"), encoding="utf-8") as file:
            brought = {line.split()[0] for line in file if "==" in line}
        self.assertEqual(set(wheel["build-system"]["requires"]) - brought, set())
        self.assertEqual(wheel["tool"]["dynamic-metadata"][0]["provider"],
                         {"path": "tools/packaging", "module": "wheel_metadata"})
        sys.path.insert(0, os.path.join(ROOT, "tools", "packaging"))
        import wheel_metadata  # noqa: E402
        with mock.patch.dict(os.environ, {"MNEME_TORCH_VERSION": ""}):
            default = wheel_metadata.dynamic_metadata()
        self.assertRegex(default["version"], r"^[0-9]+[.][0-9]+[.][0-9]+$")
        self.assertEqual(default["dependencies"], ["torch==2.11.*", "numpy"])
        with mock.patch.dict(os.environ, {"MNEME_TORCH_VERSION": "2.13.1"}):
            other = wheel_metadata.dynamic_metadata()
        self.assertEqual(other["version"], default["version"] + "+torch2.13")
        self.assertEqual(other["dependencies"], ["torch==2.13.*", "numpy"])

    def test_a_version_of_torch_without_hashes_is_refused(self):
        done = self.run_script(os.path.join(ROOT, "tools", "bootstrap"), MNEME_TORCH_VERSION="2.99.0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("MNEME_TORCH_VERSION=2.99.0: no hashes in tools/wheels/", done.stderr)

    def test_installed_libraries_may_be_in_a_folder_with_a_space(self):
        self.given(CAF)
        tree = os.path.join(self.folder, "tree")
        shutil.copytree(os.path.join(ROOT, "tools", "wheels"), os.path.join(tree, "tools", "wheels"))
        for script in SCRIPTS:
            shutil.copy(os.path.join(ROOT, "tools", script), os.path.join(tree, "tools"))
        self.program("cmake", CMAKE)
        arguments = os.path.join(self.folder, "arguments")
        done = self.run_script(os.path.join(tree, "tools", "build"), "release", ARGUMENTS=arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(arguments, encoding="utf-8") as file:
            said = file.read().splitlines()
        self.assertIn(f"[-DMNEME_CAF:PATH={os.path.join(self.deps, CAF)}]", said)
        self.assertIn(f"[-DMNEME_CATCH2:PATH={os.path.join(self.deps, CATCH2)}]", said)
        torch = [word for word in said if word.startswith("[-DMNEME_TORCH")]
        self.assertEqual(len(torch), 1)
        self.assertRegex(torch[0], r"deps/torch-2\.11\.0-(cpu|cuda)\]$")

    def test_a_folder_of_an_earlier_version_is_reused(self):
        self.given(CAF, *[os.path.join(f"torch-2.11.0-{flavour}", OLDER) for flavour in ("cpu", "cuda")])
        done = self.run_script(os.path.join(ROOT, "tools", "bootstrap"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, rf"MNEME_TORCH=.*/torch-2.11.0-\w+/{OLDER} ")

    def carried(self, **files):
        """Returns a folder as --download writes it."""
        folder = os.path.join(self.folder, "carried")
        os.mkdir(folder)
        for name, content in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content)
        return folder

    def test_an_offline_folder_is_verified_by_its_checksums_and_the_known_ones(self):
        folder = self.carried(SHA256SUMS="0" * 64 + "  package\n", package="other bytes\n")
        done = self.run_script(os.path.join(ROOT, "tools", "bootstrap"), "--from", folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("package: FAILED", done.stderr)
        shutil.rmtree(folder)
        folder = self.carried(SHA256SUMS="", **{"caf-0.18.7.tar.gz": "another release\n"})
        done = self.run_script(os.path.join(ROOT, "tools", "bootstrap"), "--from", folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("carried has no caf-0.18.7.tar.gz with the sha256 d5c3abe8fd67", done.stderr)
        done = self.run_script(os.path.join(ROOT, "tools", "bootstrap"), "--from", self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no file SHA256SUMS; tools/bootstrap --download creates such a folder", done.stderr)
        done = self.run_script(os.path.join(ROOT, "tools", "bootstrap"), "--python", "--from", folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no wheels of Python packages; tools/bootstrap --download DIR --python", done.stderr)
        done = self.run_script(os.path.join(ROOT, "tools", "bootstrap"), "--download")
        self.assertEqual((done.returncode, done.stderr), (2, "bootstrap: --download needs a folder\n"))

    def test_only_libraries_and_headers_of_a_wheel_are_unpacked(self):
        wheels, into = os.path.join(self.folder, "wheels"), os.path.join(self.folder, "into")
        os.makedirs(wheels)
        kept = ["torch/include/ATen/ATen.h", "torch/version.py", "torch/lib/libc10.so", "torch/lib/libgomp.so.1",
                "torch-2.11.0.dist-info/licenses/LICENSE"]
        for_devices = ["torch/lib/libtorch_cuda.so"]
        left_out = ["torch/nn/functional.py", "torch/lib/libtorch_python.so", "torch/../escaped/include/x.h"]
        with zipfile.ZipFile(os.path.join(wheels, "torch-2.11.0-cp311.whl"), "w") as archive:
            for name in kept + for_devices + left_out:
                archive.writestr(name, name)
        unpack = [sys.executable, os.path.join(ROOT, "tools", "wheels", "unpack.py"), into, wheels]
        for more in ([], for_devices):
            subprocess.run(unpack, check=True)
            there = [os.path.relpath(path, into) for path in glob.glob(os.path.join(into, "**"), recursive=True)
                     if os.path.isfile(path)]
            self.assertEqual(sorted(there), sorted(kept + more))
            zipfile.ZipFile(os.path.join(wheels, "nvidia_cudnn_cu13-9.whl"), "w").close()  # requests devices


class Stubs(unittest.TestCase):
    """tools/wheels/stubs.py, for a library that is linked with two others; one has versioned functions."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="a folder ")
        self.addCleanup(folder.cleanup)
        self.site = folder.name
        self.cuda = os.path.join(self.site, "nvidia", "cu13", "lib")
        self.library = os.path.join(self.site, "torch", "lib", "libtorch_cuda.so")
        for path in (self.cuda, os.path.dirname(self.library)):
            os.makedirs(path)
        versions = os.path.join(self.site, "versions")
        with open(versions, "w", encoding="utf-8") as file:
            file.write("libcublas.so.99 { global: *; };")
        linked = [self.linked("libcublas.so.99", "cublasCreate_v2", f"-Wl,--version-script={versions}"),
                  self.linked("libnccl.so.99", "ncclSend")]
        self.compiled(self.library, 'extern "C" { void cublasCreate_v2(); void ncclSend(); void multiply() { '
                      'cublasCreate_v2(); } void send() { ncclSend(); } }',
                      "-Wl,-rpath,$ORIGIN/../../nvidia/cu13/lib", *linked)
        for path in linked:
            os.remove(path)

    def compiled(self, path, source, *options):
        subprocess.run(["g++", "-shared", "-fPIC", "-o", path, "-x", "c++", "-", "-x", "none", *options], input=source,
                       text=True, check=True)

    def linked(self, name, function, *options):
        path = os.path.join(self.cuda, name)
        self.compiled(path, f'extern "C" void {function}() {{}}', f"-Wl,-soname,{name}", *options)
        return path

    def call(self, function):
        code = f"import ctypes; ctypes.CDLL({self.library!r}).{function}()"
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    def test_a_library_loads_with_stubs_and_calling_one_prints_an_error(self):
        self.assertIn("cannot open shared object", self.call("multiply").stderr)
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "wheels", "stubs.py"), self.site], check=True)
        self.assertEqual(sorted(os.listdir(self.cuda)), ["libcublas.so.99", "libnccl.so.99"])
        for function, library in (("multiply", "libcublas.so.99"), ("send", "libnccl.so.99")):
            done = self.call(function)
            self.assertEqual(done.returncode, -signal.SIGABRT, done.stderr)
            self.assertIn(f"a function of {library} was called, which is a stub", done.stderr)


if __name__ == "__main__":
    run_tests()
