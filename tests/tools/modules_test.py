"""TorchScript modules through the program: damaged and hostile files, and digests that do not depend on threads.

The files are derived from scenarios/smoke/tiny.pt; the memory of the program is limited.
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
from program import PROGRAM, ROOT, mneme, run_tests  # noqa: E402
from resuming import Torture  # noqa: E402

SCENARIO = os.path.join(ROOT, "scenarios", "smoke", "module.toml")
MODULE = os.path.join(ROOT, "scenarios", "smoke", "tiny.pt")
PROGRAM_FILE = MODULE + "2"
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
            packing = zipfile.ZIP_DEFLATED if name.endswith(".py") else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(name), value, packing)
    return made.getvalue()


def changed(part, make):
    """Returns the module with new content of the entries whose names end with `part`."""
    return archive_of({name: make(value) if name.endswith(part) else value for name, value in entries().items()})


def bomb():
    """Returns an archive whose only code file unpacks to 1 GiB."""
    return changed("code/__torch__.py", lambda _: b"#" * (1 << 30))


def overlapping():
    """Returns an archive with two directory records for one entry."""
    made = archive_of({"archive/a": b"12345678", "archive/b": b"12345678"})
    second = made.index(b"PK\x01\x02", made.index(b"PK\x01\x02") + 1)
    return made[:second + 42] + struct.pack("<I", 0) + made[second + 46:]


class Modules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def validated(self, content, *more, before=None):
        """Returns (exit code, output) of `mneme validate` for a module with these bytes. `before`: called first."""
        with open(os.path.join(self.folder, "net.pt"), "wb") as file:
            file.write(content)
        path = os.path.join(self.folder, "scenario.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'extends = "{SCENARIO}"\n[model]\nmodule = "net.pt"\n' + "\n".join(more))
        if before is None:
            done = mneme("validate", path, addresses_bytes=MEMORY_BYTES)
        else:
            done = subprocess.run([PROGRAM, "validate", path], capture_output=True, text=True, preexec_fn=before)
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

    def test_untrained_layers_give_a_warning_and_costs_are_printed(self):
        done = mneme("validate", SCENARIO, "--cost")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("in evaluation mode while it is trained: 1 batch normalisation keeps", done.stderr)
        self.assertIn("FLOP to train", done.stdout)
        still = mneme("validate", SCENARIO, "--set", "model.trainable=head")
        self.assertEqual(still.returncode, 0)
        self.assertNotIn("evaluation mode", still.stderr)
        self.assertEqual(still.stderr.count("the module is TorchScript, which PyTorch has deprecated"), 1)

    def test_damage_is_named_with_its_byte(self):
        content = whole()
        self.refused(content[:-1], "net.pt: byte ")
        self.refused(content[:len(content) // 2], "directory is missing at the end; was the file cut short?")
        at = content.index(b"PK\x03\x04") + 80
        self.refused(content[:at] + bytes([content[at] ^ 1]) + content[at + 1:], "has another checksum than the")

    def test_invalid_archives_are_refused(self):
        self.refused(bomb(), "would unpack to 1073741824 bytes; at most 67108864 bytes are taken")
        self.refused(overlapping(), "'archive/a' is called 'archive/b' in the archive's directory")
        self.refused(b"", "net.pt")
        self.refused(b"\x80\x02}q\x00.", "the file is one of torch.save")

    def test_files_of_other_formats_are_named(self):
        without_code = {name: value for name, value in entries().items() if "/code/" not in name}
        self.refused(archive_of(without_code), "the file is one of torch.save, a state_dict or a pickled net")
        self.refused(archive_of({"x/data/aotinductor/model/x.wrapper.so": b"\x7fELF"}), "is an AOTInductor package")
        self.refused(archive_of({"x/models/model.json": b"{}"}), "expected archive_version 0, byteorder little")
        self.refused(archive_of({"x/y": b""}), "the file is an archive without a program")

    def test_another_version_and_other_code_are_refused(self):
        self.refused(changed("/version", lambda _: b"99\n"), "version")
        code = "code/__torch__.py"
        self.refused(changed(code, lambda text: text.replace(b"torch.relu", b"torch.launch")), "launch")
        self.refused(changed(code, lambda text: b"(" * 100_000 + text), "brackets of its code nest deeper")
        chain = b"return" + b" -" * 100_000
        self.refused(changed(code, lambda text: text.replace(b"return", chain)), "more than 1000 operators")

    def test_no_change_of_a_pickle_or_of_code_crashes_the_program(self):
        """All checksums are valid, so the parsers must detect the errors."""
        for part in ("data.pkl", "constants.pkl", "code/__torch__.py", "modules/conv.py", "data/0"):
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
        self.assertIn("a process without rights first, and this machine gives none (seccomp: ", said)
        self.assertIn("set model.native_code = true", said)
        code, said = self.validated(whole(), "native_code = true", before=forbid_cells)
        self.assertEqual(code, 0, said)
        hostile = changed("code/__torch__.py", lambda text: text.replace(b"torch.relu", b"torch.from_file"))
        code, said = self.validated(hostile, "native_code = true", before=forbid_cells)
        self.assertEqual(code, 2, said)
        self.assertIn("its code calls aten::from_file", said)

    def test_an_endless_module_is_terminated(self):
        endless = b"    while True:\n      x = torch.add(x, 1)\n    x0 ="
        code, said = self.validated(changed("code/__torch__.py", lambda text: text.replace(b"    x0 =", endless)),
                                    before=lambda: resource.setrlimit(resource.RLIMIT_CPU, (4, 4)))
        self.assertEqual(code, 2, said)
        self.assertIn("of processor time, or was ended by the system", said)

    def run_with(self, lines, *options):
        """Returns (exit code, stderr) of a run whose module runs `lines` only for 8 rows, unlike the probe."""
        steps = "    if torch.eq(torch.size(x, 0), 8):\n" + "".join(f"      {line}\n" for line in lines) + \
            "    else:\n      pass\n    x0 ="
        made = changed("code/__torch__.py", lambda text: text.replace(b"    x0 =", steps.encode()))
        with open(os.path.join(self.folder, "net.pt"), "wb") as file:
            file.write(made)
        out = os.path.join(self.folder, f"run{len(os.listdir(self.folder))}")
        done = mneme("run", SCENARIO, "--quiet", "--out", out, "--set",
                     f"model.module={os.path.join(self.folder, 'net.pt')}", *options)
        return done.returncode, done.stderr

    def test_a_module_that_fails_on_the_runs_rows_ends_the_run_with_a_reason(self):
        """Numbers are derived from the size of dimension 2, which is 10, so that none is a constant before the call."""
        for lines, text in (
                (["n = torch.floordiv(torch.sub(-9223372036854775798, torch.size(x, 2)), "
                  "torch.sub(9, torch.size(x, 2)))", "x = torch.add(x, n)"],
                 "aten::floordiv: -9223372036854775808 is divided by -1"),
                (["q = torch.unsqueeze(torch.flatten(x, 2), 1)",
                  "x = torch.add(x, torch.sum(torch.scaled_dot_product_attention(q, torch.slice(q, 2, 0, 1), q)))"],
                 "aten::scaled_dot_product_attention: keys are [8, 1, 1, 100] and values [8, 1, 3, 100]"),
                (["x = torch.slice(x, 3, 0, 8)"],
                 "forward returned another form on rows 0 to 7 of 8: Float [8, "),
                (["x = torch.add(x, torch.sum(torch.ones([torch.mul(torch.size(x, 2), 107374182)])))"],
                 "forward failed on rows 0 to 7 of 8: it needs more than ")):
            with self.subTest(text=text):
                code, said = self.run_with(lines)
                self.assertEqual(code, 1, said)
                self.assertRegex(said, r"client \d+")
                self.assertRegex(said, r"round \d+")
                self.assertIn("module '" + os.path.join(self.folder, "net.pt") + "': ", said)
                self.assertIn(text, said)

    def over_a_node(self):
        """Starts a node. Returns the options of a run that waits for it, and the node."""
        address = f"127.0.0.1:{free_port()}"
        node = Node(self.folder, address, "--threads", "1")
        self.addCleanup(node.end)
        return ("--accept", address, "--workers-min", "1"), node

    def test_a_module_that_ends_its_run_does_not_kill_its_node(self):
        accept, node = self.over_a_node()
        code, said = self.run_with(["n = torch.remainder(torch.size(x, 2), torch.sub(10, torch.size(x, 2)))",
                                    "x = torch.add(x, n)"], *accept)
        self.assertEqual(code, 1, said)
        self.assertIn("aten::remainder: an integer is divided by zero", said)
        self.assertEqual(node.process.wait(timeout=60), 0, node.text())
        accept, _ = self.over_a_node()
        self.assertEqual(self.digest(*accept), self.digest())

    def digest(self, *options):
        out = os.path.join(self.folder, f"run{len(os.listdir(self.folder))}")
        done = mneme("run", SCENARIO, "--quiet", "--out", out, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)["run_digest"]

    def test_a_module_has_one_digest_for_all_threads_widths_and_shards(self):
        for trained in (("--set", "model.trainable=all"), ("--set", "model.trainable=head"),
                        ("--set", f"model.module={PROGRAM_FILE}"),
                        ("--set", f"model.module={PROGRAM_FILE}", "--set", "model.module_fused=false")):
            first = self.digest("--threads", "1", *trained)
            for threads, width, shards in ((3, 1, 1), (2, 7, 3), (4, 16, 5)):
                again = self.digest("--threads", str(threads), "--set", f"worker.fused_clients_max={width}",
                                    "--set", f"worker.shards={shards}", *trained)
                self.assertEqual(first, again, (trained, threads))

    def test_an_exported_program_has_one_digest_on_two_nodes(self):
        address = f"127.0.0.1:{free_port()}"
        for _ in range(2):
            self.addCleanup(Node(self.folder, address, "--threads", "1").end)
        trained = ("--set", f"model.module={PROGRAM_FILE}")
        self.assertEqual(self.digest("--accept", address, "--workers-min", "2", *trained), self.digest(*trained))

    def test_another_module_gives_another_scenario_digest(self):
        other = os.path.join(self.folder, "other.pt")
        with open(other, "wb") as file:
            file.write(changed("/data/0", lambda value: value[4:] + value[:4]))
        self.assertNotEqual(self.digest(), self.digest("--set", f"model.module={other}"))

    def test_an_exported_program_in_evaluation_mode_has_the_digest_of_torchscript(self):
        self.assertEqual(self.digest(), self.digest("--set", f"model.module={PROGRAM_FILE}", "--set",
                                                    "model.module_training=false", "--set",
                                                    "model.module_fused=false"))

    def test_killed_runs_resume_to_the_same_digest(self):
        for name in ("module", "exported"):
            folder = os.path.join(self.folder, name)
            os.mkdir(folder)
            Torture(self, folder, f"smoke/{name}.toml", ["rounds.per_task=60"]).kill(3, 3)


if __name__ == "__main__":
    run_tests()
