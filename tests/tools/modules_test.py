"""Exported programs through the program: damaged and hostile files, and digests that do not depend on threads.

The files are derived from scenarios/smoke/tiny.pt2; the memory of the program is limited.
"""
import ctypes
import io
import itertools
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import Node, free_port  # noqa: E402
from program import PROGRAM as MNEME, ROOT, mneme, run_tests  # noqa: E402
from resuming import Torture  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from program_draws import Program  # noqa: E402

SCENARIO = os.path.join(ROOT, "scenarios", "smoke", "module.toml")
MODULE = os.path.join(ROOT, "scenarios", "smoke", "tiny.pt2")
PROGRAM = "models/model.json"
MEMORY_BYTES = 8_000_000_000


class Instruction(ctypes.Structure):
    """An instruction of a system call filter: struct sock_filter."""
    _fields_ = [("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("value", ctypes.c_uint)]


class Filter(ctypes.Structure):
    """struct sock_fprog"""
    _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.POINTER(Instruction))]


def forbid_cells():
    """Forbids this process and its children to install system call filters, as some containers do."""
    seccomp = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
    lines = (Instruction * 4)(Instruction(0x20, 0, 0, 0),        # system call number
                              Instruction(0x15, 0, 1, seccomp),
                              Instruction(0x06, 0, 0, 0x00050001),  # EPERM
                              Instruction(0x06, 0, 0, 0x7fff0000))  # allowed
    system = ctypes.CDLL(None, use_errno=True)
    if system.prctl(38, 1, 0, 0, 0) != 0 or system.prctl(22, 2, ctypes.byref(Filter(4, lines)), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls")


def whole():
    with open(MODULE, "rb") as file:
        return file.read()


def entries():
    """{name: content} of the module."""
    with zipfile.ZipFile(MODULE) as archive:
        return {entry.filename: archive.read(entry) for entry in archive.infolist()}


def archive_of(content):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, value in content.items():
            packing = zipfile.ZIP_DEFLATED if name.endswith(".json") else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name), value, packing)
    return made.getvalue()


def changed(part, make):
    """Returns the module with new content of the entries whose names end with `part`."""
    return archive_of({name: make(value) if name.endswith(part) else value for name, value in entries().items()})


def bomb():
    """Returns an archive whose program unpacks to 128 MiB."""
    return changed(PROGRAM, lambda _: b" " * (1 << 27))


def overlapping():
    """Returns an archive with two directory records for one entry."""
    made = archive_of({"archive/a": b"12345678", "archive/b": b"12345678"})
    second = made.index(b"PK\x01\x02", made.index(b"PK\x01\x02") + 1)
    return made[:second + 42] + struct.pack("<I", 0) + made[second + 46:]


def integer(name):
    return {"as_sym_int": {"as_name": name}}


class SizedProgram(Program):
    """The module after additional calls that depend on the number of rows."""

    def __init__(self):
        super().__init__(entries())
        self.rows = self.size("torch.ops.aten.sym_size.int", self={"as_tensor": {"name": "x"}}, dim={"as_int": 0})

    def size(self, target, /, **inputs):
        """Adds a call whose result is an integer. Returns the result as an argument."""
        name = f"size{len(self.calls)}"
        self.calls.append({"target": target, "outputs": [{"as_sym_int": {"as_name": name}}], "metadata": {},
                           "name": name,
                           "inputs": [{"name": key, "arg": value, "kind": 1} for key, value in inputs.items()]})
        return integer(name)

    def arithmetic(self, operation, a, b):
        return self.size("_operator." + operation, a=a, b={"as_int": b})

    def one_for_eight_rows(self):
        """1 for a call of 8 rows, 0 for calls of 1 to 7 and of 16 rows."""
        return self.arithmetic("floordiv", self.arithmetic("mod", self.rows, 16), 8)

    def add_to_rows(self, value):
        """Adds a tensor, or an integer, to the rows that the net reads."""
        rows = self.call("add.Tensor", {"self": {"as_tensor": {"name": "x"}}, "other": value})
        nodes = self.document["graph_module"]["graph"]["nodes"]
        nodes[0]["inputs"][0]["arg"] = {"as_tensor": rows}

    def archive(self):
        self.document["graph_module"]["graph"]["nodes"][:0] = self.calls
        return archive_of(self.content())


def with_segment():
    """The module with sine, dropout and cosine after its ReLU. No layer of mneme computes sine and cosine, so the three
    calls are a segment of the net."""
    def call(target, argument, value, result, *more):
        return {"target": f"torch.ops.aten.{target}.default", "metadata": {}, "name": result,
                "inputs": [{"name": argument, "arg": {"as_tensor": {"name": value}}, "kind": 1}, *more],
                "outputs": [{"as_tensor": {"name": result}}]}

    def add_calls(text):
        document = json.loads(text)
        nodes = document["graph_module"]["graph"]["nodes"]
        place = next(i for i, node in enumerate(nodes) if node["target"].startswith("torch.ops.aten.avg_pool2d"))
        nodes[place]["inputs"][0]["arg"] = {"as_tensor": {"name": "cosine"}}
        options = [{"name": name, "arg": value, "kind": 1}
                   for name, value in (("p", {"as_float": 0.25}), ("train", {"as_bool": True}))]
        nodes[place:place] = [call("sin", "self", "relu", "sine"),
                              call("dropout", "input", "sine", "dropped", *options),
                              call("cos", "self", "dropped", "cosine")]
        return json.dumps(document).encode()
    return changed(PROGRAM, add_calls)


def divides_by_zero():
    made = SizedProgram()
    rows = made.rows
    made.add_to_rows(made.size("_operator.floordiv", a=rows, b=made.arithmetic("sub", rows, 8)))
    return made.archive()


def takes_much_memory():
    made = SizedProgram()
    numbers = made.arithmetic("mul", made.arithmetic("mul", made.one_for_eight_rows(), 1 << 28), 4)
    ones = made.call("ones.default", {"size": {"as_sym_ints": [{"as_name": numbers["as_sym_int"]["as_name"]}]}})
    made.add_to_rows({"as_tensor": made.call("sum.default", {"self": {"as_tensor": ones}})})
    return made.archive()


def has_fewer_keys():
    """Attention with fewer keys than values for 8 rows."""
    made = SizedProgram()
    end = made.size("_operator.sub", a={"as_int": 3}, b=made.one_for_eight_rows())
    values = {"as_tensor": made.call("flatten.using_ints", {"self": {"as_tensor": {"name": "x"}},
                                                            "start_dim": {"as_int": 2}})}
    keys = {"as_tensor": made.call("slice.Tensor", {"self": values, "dim": {"as_int": 1}, "start": {"as_int": 0},
                                                    "end": end})}
    attended = made.call("scaled_dot_product_attention.default", {"query": values, "key": keys, "value": values})
    total = made.call("sum.default", {"self": {"as_tensor": attended}})
    made.add_to_rows({"as_tensor": made.call("mul.Tensor", {"self": {"as_tensor": total}, "other": {"as_int": 0}})})
    return made.archive()


def computes_long():
    """Products of matrices of ones [4096, 4096], which take minutes."""
    made = SizedProgram()
    product = made.call("full.default", {"size": {"as_ints": [4096, 4096]}, "fill_value": {"as_float": 1 / 4096}})
    for _ in range(100):
        product = made.call("matmul.default", {"self": {"as_tensor": product}, "other": {"as_tensor": product}})
    made.add_to_rows({"as_tensor": made.call("sum.default", {"self": {"as_tensor": product}})})
    return made.archive()


class Modules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def validated(self, content, *more, before=None):
        """Returns (exit code, output) of `mneme validate` for a module with these bytes. `before`: called first."""
        with open(os.path.join(self.folder, "net.pt2"), "wb") as file:
            file.write(content)
        path = os.path.join(self.folder, "scenario.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'extends = "{SCENARIO}"\n[model]\nmodule = "net.pt2"\n' + "\n".join(more))
        if before is None:
            done = mneme("validate", path, addresses_bytes=MEMORY_BYTES)
        else:
            done = subprocess.run([MNEME, "validate", path], capture_output=True, text=True, preexec_fn=before)
        return done.returncode, done.stdout + done.stderr

    def refused(self, content, text):
        code, said = self.validated(content)
        self.assertEqual(code, 2, said)
        self.assertIn("scenario.toml:3:10: ", said)
        self.assertIn(text, said)

    def test_a_valid_module_is_accepted_also_after_repacking(self):
        for content in (whole(), archive_of(entries())):
            code, said = self.validated(content)
            self.assertEqual(code, 0, said)

    def test_costs_are_printed(self):
        done = mneme("validate", SCENARIO, "--cost")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("FLOP to train", done.stdout)

    def test_damage_is_named_with_its_byte(self):
        content = whole()
        self.refused(content[:-1], "net.pt2: byte ")
        self.refused(content[:len(content) // 2], "directory is missing at the end; is the file truncated?")
        at = content.index(b"PK\x03\x04") + 80
        self.refused(content[:at] + bytes([content[at] ^ 1]) + content[at + 1:], "has another checksum than the")

    def test_invalid_archives_are_refused(self):
        self.refused(bomb(), "would unpack to 134217728 bytes; at most 67108864 bytes are accepted")
        self.refused(overlapping(), "'archive/a' is called 'archive/b' in the archive's directory")
        self.refused(b"", "net.pt2")
        self.refused(b"\x80\x02}q\x00.", "the file is one of torch.save")

    def test_files_of_other_formats_are_named(self):
        self.refused(archive_of({"net/code/__torch__.py": b"class Net:\n", "net/data.pkl": b"\x80"}),
                     "the file is TorchScript (torch.jit.save), whose code mneme does not run; expected an exported "
                     "program (.pt2): export the net by `python -m mneme export-net FILE.py:FUNCTION")
        self.refused(archive_of({"net/data.pkl": b"\x80"}), "the file is one of torch.save, a state_dict or a pickled")
        self.refused(archive_of({"x/data/aotinductor/model/x.wrapper.so": b"\x7fELF"}), "is an AOTInductor package")
        self.refused(archive_of({"x/models/model.json": b"{}"}), "expected archive_version 0, byteorder little")
        self.refused(archive_of({"x/y": b""}), "the file is an archive without a program")

    def test_another_version_and_other_operators_are_refused(self):
        self.refused(changed("archive_version", lambda _: b"9"), "the archive has another version")
        self.refused(changed(PROGRAM, lambda text: text.replace(b"aten.relu", b"aten.launch")), "launch")
        self.refused(changed(PROGRAM, lambda text: b"[" * 100_000 + text), "it is nested more than 64 deep")

    def test_no_change_of_a_program_crashes_the_reader(self):
        """All checksums are valid, so the parsers must detect the errors."""
        for part in (PROGRAM, "model_weights_config.json", "weights/weight_0"):
            size = next(len(value) for name, value in entries().items() if name.endswith(part))
            for at, flip in itertools.product(range(0, size, max(size // 6, 1)), (0x01, 0xff)):
                with self.subTest(part=part, at=at, flip=flip):
                    made = changed(part, lambda value, at=at, flip=flip:
                                   value[:at] + bytes([value[at] ^ flip]) + value[at + 1:])
                    code, said = self.validated(made)
                    self.assertIn(code, (0, 2), said)

    def test_a_machine_without_sandboxes_refuses_modules_unless_a_key_trusts_them(self):
        code, said = self.validated(whole(), before=forbid_cells)
        self.assertEqual(code, 2, said)
        self.assertIn("a sandbox, which this machine does not support (seccomp: ", said)
        self.assertIn("set model.native_code = true", said)
        code, said = self.validated(whole(), "native_code = true", before=forbid_cells)
        self.assertEqual(code, 0, said)
        hostile = changed(PROGRAM, lambda text: text.replace(b"aten.relu.default", b"aten.from_file.default"))
        code, said = self.validated(hostile, "native_code = true", before=forbid_cells)
        self.assertEqual(code, 2, said)
        self.assertIn("torch.ops.aten.from_file.default (relu): it is none of the operators", said)

    def test_a_module_that_computes_too_long_is_terminated(self):
        code, said = self.validated(computes_long(), before=lambda: resource.setrlimit(resource.RLIMIT_CPU, (2, 2)))
        self.assertEqual(code, 2, said)
        self.assertIn("of processor time, or was ended by the system", said)

    def run_with(self, content, *options):
        """Returns (exit code, stderr) of a run with this module."""
        with open(os.path.join(self.folder, "net.pt2"), "wb") as file:
            file.write(content)
        out = os.path.join(self.folder, f"run{len(os.listdir(self.folder))}")
        done = mneme("run", SCENARIO, "--quiet", "--out", out, "--set",
                     f"model.module={os.path.join(self.folder, 'net.pt2')}", *options)
        return done.returncode, done.stderr

    def test_a_module_that_fails_on_the_runs_rows_ends_the_run_with_a_reason(self):
        """The modules fail only in calls of 8 rows, which the probe does not make."""
        for content, text in (
                (divides_by_zero(), "a size of 8 is divided by 0"),
                (has_fewer_keys(), "aten::scaled_dot_product_attention: keys are [8, 2, 100] and values [8, 3, 100]"),
                (takes_much_memory(), "forward failed on rows 0 to 7 of 8: it needs more than ")):
            with self.subTest(text=text):
                code, said = self.run_with(content)
                self.assertEqual(code, 1, said)
                self.assertRegex(said, r"client \d+")
                self.assertRegex(said, r"round \d+")
                self.assertIn("module '" + os.path.join(self.folder, "net.pt2") + "': ", said)
                self.assertIn(text, said)

    def over_a_node(self):
        """Starts a node. Returns the options of a run that waits for it, and the node."""
        address = f"127.0.0.1:{free_port()}"
        node = Node(self.folder, address, "--threads", "1")
        self.addCleanup(node.end)
        return ("--accept", address, "--workers-min", "1"), node

    def test_a_module_that_ends_its_run_ends_its_node_with_the_reason(self):
        accept, node = self.over_a_node()
        code, said = self.run_with(divides_by_zero(), *accept)
        self.assertEqual(code, 1, said)
        self.assertIn("a size of 8 is divided by 0", said)
        self.assertEqual(node.process.wait(timeout=60), 1, node.text())  # the exit code of the run
        self.assertIn("error: the run has failed: client ", node.text())
        self.assertIn("a size of 8 is divided by 0", node.text())
        accept, _ = self.over_a_node()
        self.assertEqual(self.digest(*accept), self.digest())

    def digest(self, *options):
        out = os.path.join(self.folder, f"run{len(os.listdir(self.folder))}")
        done = mneme("run", SCENARIO, "--quiet", "--out", out, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)["run_digest"]

    def segmented(self):
        """Writes the module with a segment. Returns the setting that uses it."""
        path = os.path.join(self.folder, "segmented.pt2")
        with open(path, "wb") as file:
            file.write(with_segment())
        return f"model.module={path}"

    def test_operators_without_a_layer_are_counted(self):
        code, said = self.validated(with_segment())
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"5 of 8 operators of the module run as layers .*unfused: .*cos.default .*sin.default")

    def test_a_module_has_one_digest_for_all_threads_widths_and_shards(self):
        for trained in (("--set", "model.trainable=all"), ("--set", "model.trainable=head"),
                        ("--set", "model.module_training=true"), ("--set", "model.module_fused=false"),
                        ("--set", "model.module_training=true", "--set", self.segmented())):
            first = self.digest("--threads", "1", *trained)
            for threads, width, shards in ((3, 1, 1), (2, 7, 3), (4, 16, 5)):
                again = self.digest("--threads", str(threads), "--set", f"worker.fused_clients_max={width}",
                                    "--set", f"worker.shards={shards}", *trained)
                self.assertEqual(first, again, (trained, threads))

    def test_an_exported_program_has_one_digest_on_two_nodes(self):
        for module in (), ("--set", self.segmented()):
            address = f"127.0.0.1:{free_port()}"
            for _ in range(2):
                self.addCleanup(Node(self.folder, address, "--threads", "1").end)
            trained = ("--set", "model.module_training=true", *module)
            self.assertEqual(self.digest("--accept", address, "--workers-min", "2", *trained), self.digest(*trained))

    def test_another_module_gives_another_scenario_digest(self):
        other = os.path.join(self.folder, "other.pt2")
        with open(other, "wb") as file:
            file.write(changed("/weights/weight_0", lambda value: value[4:] + value[:4]))
        self.assertNotEqual(self.digest(), self.digest("--set", f"model.module={other}"))

    def test_killed_runs_resume_to_the_same_digest(self):
        for name, *settings in ("module",), ("exported",), ("exported", self.segmented()):
            folder = tempfile.mkdtemp(dir=self.folder)
            Torture(self, folder, f"smoke/{name}.toml", ["rounds.per_task=30", *settings]).kill(3, 3)


if __name__ == "__main__":
    run_tests()
