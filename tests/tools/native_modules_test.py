"""AOTInductor packages through the program: enabled explicitly, checked before and after loading, equal digests.

Their libraries are compiled from tests/support/native_net.cpp, which has the interface of PyTorch's code;
native_modules_slow_test.py has a package compiled by PyTorch itself.
"""
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import NodesCase  # noqa: E402
from program import ROOT, mneme, run_tests  # noqa: E402
from resuming import Torture  # noqa: E402

SCENARIO = os.path.join(ROOT, "scenarios", "smoke", "module.toml")
SOURCE = os.path.join(ROOT, "tests", "support", "native_net.cpp")
TORCH = "2.11.0"
NOTES = {"AOTI_DEVICE_KEY": "cpu", "mneme.torch": TORCH, "mneme.threads": "1", "mneme.dtype": "float32",
         "mneme.march": "x86-64", "mneme.rows": "16,3,10,10"}
MEMORY_BYTES = 8_000_000_000
ASKED = ["model.native_code=true", "model.trainable=\"head\""]


@functools.cache
def library(defect="none", *options):
    """Bytes of the compiled library of the net with this defect."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.so")
        subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-shared", "-fPIC", f"-DDEFECT={defect}",
                        *options, SOURCE, "-o", path], check=True)
        with open(path, "rb") as file:
            return file.read()


def package(code=None, notes=None, more=()):
    """An AOTInductor package with this library and these notes instead of the default ones."""
    said = {key: value for key, value in {**NOTES, **(notes or {})}.items() if value is not None}
    folder = "net/data/aotinductor/model/"
    content = {"net/archive_format": b"pt2", folder + "c1.wrapper.so": library() if code is None else code,
               folder + "c1.wrapper_metadata.json": json.dumps(said).encode(), **dict(more)}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, value in content.items():
            archive.writestr(zipfile.ZipInfo(name), value)
    return made.getvalue()


class PackageCase(unittest.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def put(self, content, name="net.pt2"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return path

    def settings(self, path, *more):
        given = [f"model.module=\"{path}\"", *ASKED, *more]
        return [word for setting in given for word in ("--set", setting)]

    def run_of(self, path, *options, more=()):
        """Folder and summary of a run with the module."""
        out = os.path.join(self.folder, f"run{len(os.listdir(self.folder))}")
        done = mneme("run", SCENARIO, "--quiet", "--out", out, *self.settings(path, *more), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return out, json.load(file)

    def validated(self, content, *more):
        """(exit code, output) of `mneme validate` for a package with these bytes."""
        keys = dict(setting.split("=", 1) for setting in (f"model.module=\"{self.put(content)}\"", *ASKED, *more))
        lines = [key.removeprefix("model.") + " = " + value for key, value in keys.items()]
        path = self.put("\n".join([f"extends = \"{SCENARIO}\"", "[model]", *lines]).encode(), "scenario.toml")
        done = mneme("validate", path, addresses_bytes=MEMORY_BYTES)
        return done.returncode, done.stdout + done.stderr

    def refused(self, content, *texts, more=()):
        code, said = self.validated(content, *more)
        self.assertEqual(code, 2, said)
        self.assertIn("scenario.toml:3:10: ", said)
        for text in texts:
            self.assertIn(text, said)


class Packages(PackageCase):
    def test_compiled_code_has_to_be_asked_for(self):
        self.refused(package(), "compiled code, which cannot be checked before it runs",
                     "say model.native_code = true", more=["model.native_code=false"])
        self.refused(package(), "it cannot be trained; model.trainable = \"head\" leaves it as it is",
                     more=["model.trainable=\"all\""])
        self.assertEqual(self.validated(package())[0], 0)

    def test_a_run_computes_what_the_code_says(self):
        """The same net as TorchScript also returns the first 64 numbers times 2.5."""
        with zipfile.ZipFile(os.path.join(ROOT, "scenarios", "smoke", "tiny.pt")) as archive:
            entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for name, value in entries.items():
                if name.endswith("code/__torch__.py"):
                    value = value[:value.index(b"    bn = self.bn")] + (
                        b"    return torch.mul(torch.slice(torch.flatten(x, 1), 1, 0, 64), 2.5)\n")
                archive.writestr(zipfile.ZipInfo(name), value)
        script = self.put(made.getvalue(), "net.pt")
        folders = [self.run_of(path)[0] for path in (script, self.put(package()))]
        accuracies = []
        for folder in folders:
            with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
                accuracies.append([(line["accuracy"], line["loss"]) for line in map(json.loads, file)])
        self.assertEqual(*accuracies)

    def test_a_digest_depends_on_no_thread_width_or_shard(self):
        for rows in (16, 1):
            path = self.put(package(library("none", f"-DROWS={rows}"), {"mneme.rows": f"{rows},3,10,10"}))
            first = self.run_of(path, "--threads", "1")[1]["run_digest"]
            for threads, width, shards in ((3, 1, 1), (4, 16, 5)):
                more = [f"worker.models_max={width}", f"worker.shards={shards}"]
                self.assertEqual(first, self.run_of(path, "--threads", str(threads), more=more)[1]["run_digest"])

    def test_runs_that_are_killed_go_on_to_the_same_digest(self):
        path = self.put(package())
        settings = ["rounds.per_task=60", f"model.module=\"{path}\"", *ASKED]
        Torture(self, self.folder, "smoke/module.toml", settings).kill(3, 3)

    def test_nothing_is_left_behind_by_loading(self):
        scratch = os.path.join(self.folder, "scratch")
        os.mkdir(scratch)
        before = os.environ.get("TMPDIR")
        self.addCleanup(lambda: os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before))
        os.environ["TMPDIR"] = scratch
        self.assertEqual(self.validated(package())[0], 0)
        self.assertEqual(os.listdir(scratch), [])

    def test_files_that_are_damaged_are_named_with_their_byte(self):
        whole = package()
        self.refused(whole[:-1], "net.pt2: byte ")
        self.refused(whole[:len(whole) // 2], "directory is missing at the end; was the file cut short?")
        at = whole.index(b"\x7fELF") + 900
        self.refused(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:], "has another checksum than the")

    def test_what_the_package_says_of_itself_is_compared_before_its_code_is_loaded(self):
        """All differences are reported together; loading the library would end the program."""
        deadly = library("none", "-DDEADLY")
        self.refused(package(deadly, {"mneme.torch": "2.10.0+cpu", "AOTI_DEVICE_KEY": "cuda", "mneme.threads": "4",
                                      "mneme.dtype": "float64", "mneme.march": "x86-64-v9",
                                      "mneme.rows": "16,3,32,32"}),
                     "PyTorch 2.10.0+cpu has compiled it; expected 2.11.0", "the device of its code is cuda",
                     "the number of threads of its code is 4; expected 1",
                     "the type of the rows that forward takes is float64; expected float32", "processors of x86-64-v9",
                     "forward takes rows of shape [16,3,32,32]; expected [B, 3, 10, 10]")
        self.refused(package(deadly, dict.fromkeys(NOTES)), "the package does not say AOTI_DEVICE_KEY, mneme.threads,")
        for rows in ("", "16", "16,3,10,10,", "0,3,10,10", "-1,3,10,10", "1e3,3,10,10", "99999999999999999999,3,10,10"):
            self.refused(package(deadly, {"mneme.rows": rows}), f"shape [{rows}]; expected [B, 3, 10, 10]")

    def test_packages_that_are_not_whole_or_not_alone_are_refused(self):
        inner = "net/data/aotinductor/model/"
        self.refused(package(b"no library"), "its library is none that this machine can load")
        self.refused(package(library()[:5000]), "its library is none that this machine can load, or not whole")
        self.refused(package(library("none", "-DLACKING")), "its code cannot be loaded", "aoti_torch_of_tomorrow")
        self.refused(package(more={inner + "c2.wrapper.so": library()}), "the package holds 2 compiled nets; expected")
        self.refused(package(more={inner + "c1.wrapper.json": b"{}"}), "its code calls operators by name")
        self.refused(package(more={"net/data/weights/weight_0": b""}), "its weights lie beside its code")
        self.refused(package(more={inner + "c2.wrapper_metadata.json": b"{}"}), "no notes about its code that can be")
        self.refused(package(library("threads", "-fopenmp")), "its code runs on several threads")

    def test_signatures_and_results_are_compared_with_what_a_run_needs(self):
        for defect, text in {"two_arguments": "forward takes 2 tensors; expected one",
                             "two_results": "forward returns 2 tensors; expected one",
                             "fails": "forward failed on rows of shape [16, 3, 10, 10]",
                             "nan": "values that are NaN or infinite", "infinite_scale": "NaN or infinite",
                             "counts": "other numbers when it was called again",
                             "writes": "forward writes to 'calls'; a result must not depend on earlier calls",
                             "mixes": "depend on its place among the 16 rows of a call; compile it"}.items():
            with self.subTest(defect):
                self.refused(package(library(defect)), text)

    def test_scores_have_to_be_as_many_as_the_run_has_classes(self):
        self.refused(package(), "forward returns 64 numbers for a row, but the run has 10 classes",
                     more=["model.module_output=\"scores\""])

    def test_weights_that_are_compiled_in_cannot_be_replaced(self):
        path = self.put(package())
        folder, _ = self.run_of(path)
        weights = os.path.join(folder, "model.safetensors")
        self.assertEqual(self.validated(package(), f"model.seed_weights=\"{weights}\"")[0], 0)
        with open(weights, "rb") as file:
            content = file.read()
        begin = 8 + int.from_bytes(content[:8], "little")
        low, high = json.loads(content[8:begin])["scale"]["data_offsets"]
        other = self.put(content[:begin + low] + b"\0\0\x80\x3f" + content[begin + high:], "other.safetensors")
        for key in ("model.seed_weights", "model.weights"):
            code, said = self.validated(package(), f"{key}=\"{other}\"")
            self.assertEqual(code, 2, said)
            self.assertIn("'scale' has other values than model.module, whose weights are compiled in", said)

    def test_the_key_is_not_read_without_a_module(self):
        path = self.put(b'strategy.name = "fedavg"\n[model]\nnative_code = true\n', "plain.toml")
        done = mneme("validate", path)
        self.assertIn("model.native_code has no effect here: only scenarios with modules read it",
                      done.stdout + done.stderr)


class PackagesOnNodes(PackageCase, NodesCase):
    def test_a_node_takes_compiled_code_only_where_it_was_started_so(self):
        path = self.put(package())
        alone = self.run_of(path)[1]["run_digest"]
        careful, trusting = self.node("--threads", "1"), self.node("--threads", "1", "--native-code")
        done = mneme("run", SCENARIO, "--quiet", "--out", self.out(), *self.settings(path), "--nodes", careful.address)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("this node takes no compiled code from others; start it with --native-code", done.stderr)
        self.assertEqual(self.run_of(path, "--nodes", trusting.address)[1]["run_digest"], alone)


if __name__ == "__main__":
    run_tests()
