"""Limits on user input: sizes, numbers, special files, damaged run files. Each error is one sentence."""
import ctypes
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, mneme, needs_nodes, run_tests  # noqa: E402

TINY = """[data]
name = "synthetic"
shape = [4]
classes = 4
rows = 80
[tasks]
count = 2
[clients]
count = 4
[rounds]
per_task = 2
[model]
name = "mlp"
hidden = [5]
[training]
batch = 8
"""
PIPE = "is a named pipe; expected an ordinary file"


def refuse_clone3():
    """Makes clone3 fail with EPERM in this process and its children, as in some sandboxes."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    code = b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0),             # system call number
        (0x15, 0, 1, 435),           # clone3
        (0x06, 0, 0, 0x00050001),    # the error EPERM
        (0x06, 0, 0, 0x7fff0000)))   # all others are allowed
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)       # no new privileges
    libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0)


class Limits(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def path(self, name):
        return os.path.join(self.scratch.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def scenario(self, rest, name="a.toml", method="fedavg"):
        return self.write(name, TINY + rest + (f'[strategy]\nname = "{method}"\n' if "[strategy]" not in rest else ""))

    def refused(self, *words, command="validate", **options):
        """Returns the single error of a command that ends with exit code 2."""
        done = mneme(command, *words, **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("error: "), 1, done.stderr)
        return done.stderr

    def pipe(self, name="pipe"):
        os.mkfifo(self.path(name))
        return self.path(name)

    # -- numbers ------------------------------------------------------------------------------------------------------

    def test_an_integer_that_overflows_when_rounded_up_is_refused(self):
        for method, key in (("er", "strategy.replay_rows"), ("er", "strategy.buffer"), ("fedavg", "training.batch"),
                            ("fedavg", "clients.count"), ("fedavg", "rounds.per_task")):
            with self.subTest(key):
                said = self.refused(self.scenario("", method=method), "--set", f"{key}=9223372036854775807")
                self.assertIn(f"{key} = 9223372036854775807: expected an integer in [", said)

    def test_the_largest_integers_run_like_smaller_ones(self):
        digests = set()
        for replayed in (1000, 1_000_000_000):
            out = self.path(f"run-{replayed}")
            done = mneme("run", self.scenario(f'[strategy]\nname = "er"\nreplay_rows = {replayed}\n'), "--quiet",
                         "--set", "worker.arithmetic=machine", "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                digests.add(json.load(file)["run_digest"])
        self.assertEqual(len(digests), 1)  # each client has fewer rows than these numbers

    def test_a_number_beyond_float32_is_refused(self):
        for value in ("1e300", "1e-300", "inf", "nan"):
            with self.subTest(value):
                said = self.refused(self.scenario("", method="fed-dyn"), "--set", f"strategy.alpha={value}")
                self.assertIn("expected a number in [0, 1e12]", said)

    def test_a_server_momentum_without_a_learning_rate_is_refused(self):
        said = self.refused(self.scenario('learning_rate = 0.0\n[strategy]\nname = "fed-nova"\n'
                                          "server_momentum = 0.5\n"))
        self.assertIn("divided by training.learning_rate, which is 0", said)

    def test_a_number_in_another_notation_gets_one_hint(self):
        for value, hint in ((".5", "0.5"), ("5.", "5.0"), ("010", "10"), ("1_000.", "1000.0"), ("+.5", "0.5"),
                            ("0,5", "0.5")):
            with self.subTest(value):
                self.assertIn(f"write learning_rate = {hint}\n", self.refused(
                    self.scenario(f"learning_rate = {value}\n")))
                self.assertIn(f"; write {hint}\n", self.refused(
                    self.scenario(""), "--set", f"training.learning_rate={value}"))
        self.assertIn("; write 5\n", self.refused(self.scenario(""), "--set", "training.epochs=5."))
        self.assertIn("; write [10, 5.0]\n", self.refused(self.scenario(""), "--set", "model.hidden=[010, 5.]"))
        self.assertEqual(mneme("validate", self.scenario("learning_rate = 1e-1\n")).returncode, 0)
        self.assertEqual(mneme("validate", self.scenario(""), "--set", "title=.5").returncode, 0)

    def test_a_low_rank_update_above_its_layers_rank_is_refused(self):
        said = self.refused(self.write("vit.toml", TINY.replace('"mlp"\nhidden = [5]', '"vit"\npatch = 2\nwidth = 8\n'
                                                                'heads = 2\ndepth = 1\nweights = "as-drawn"').replace(
            "[4]", "[1, 4, 4]") + 'optimizer = "adam"\n[strategy]\nname = "pilora"\nrank = 9\n'))
        self.assertIn("rank 9 exceeds a vit of width 8", said)

    # -- files --------------------------------------------------------------------------------------------------------

    def test_special_files_are_refused_for_every_file_key(self):
        pipe = self.pipe()
        for rest in ('[devices]\nprofiles = [{{ file = "{}" }}]\n',
                     '[devices]\navailability = "file"\navailability_file = "{}"\n',
                     '[devices]\nlink_file = "{}"\n', '[devices]\ncapacity_file = "{}"\n',
                     '[partition]\nkind = "file"\nfile = "{}"\n'):
            for path, kind in ((pipe, "a named pipe"), ("/dev/zero", "a device"), (self.scratch.name, "a folder")):
                with self.subTest(rest=rest, kind=kind):
                    self.assertIn(kind, self.refused(self.scenario(rest.format(path))))
        for key in ("weights", "seed_weights", "module", "backbone"):
            with self.subTest(key):
                self.assertIn("a named pipe", self.refused(self.scenario(""), "--set", f"model.{key}={pipe}"))
        self.assertIn("a named pipe", self.refused(self.write("b.toml", 'extends = "pipe"\n')))
        self.assertIn("a device", self.refused("/dev/zero"))
        done = subprocess.run(["bash", "-c", 'exec "$0" validate <(cat "$1")', PROGRAM, self.scenario("")],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, "is a named pipe; expected" in done.stderr), (2, True), done.stderr)
        self.assertIn(PIPE, mneme("doctor", self.pipe("pipe.csv")).stderr)
        for name, file in (("csv", pipe), ("arrays", self.pipe("pipe.npz")), ("arrays", self.pipe("p.safetensors"))):
            with self.subTest(file=file):
                text = TINY.replace('name = "synthetic"\nshape = [4]\nclasses = 4\nrows = 80\n',
                                    f'name = "{name}"\nfile = "{file}"\n')
                own = self.write("own.toml", text + '[strategy]\nname = "fedavg"\n')
                self.assertIn("a named pipe", self.refused(own))

    def test_special_files_are_refused_as_secrets_and_keys(self):
        needs_nodes()
        pipe, scenario = self.pipe(), self.scenario("")
        accept = ("--accept", "127.0.0.1:0", "--secret")
        self.assertIn("a named pipe", self.refused(scenario, *accept, pipe, command="run"))
        self.assertIn("a device", self.refused(scenario, *accept, "/dev/zero", command="run"))
        for special, kind in ((pipe, "a named pipe"), ("/dev/zero", "a device")):
            done = mneme("node", "--join", "127.0.0.1:1", "--cert", special, "--key", special, "--ca", special)
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr.count(f"is {kind}; expected an ordinary file"), 3, done.stderr)

    def test_a_link_to_an_ordinary_file_is_followed(self):
        os.symlink(self.scenario(""), self.path("link.toml"))
        self.assertEqual(mneme("validate", self.path("link.toml")).returncode, 0)

    def test_a_name_with_an_unpaired_surrogate_gives_one_error(self):
        header = b'{"\\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        with open(self.path("w.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header + bytes(4))
        self.assertIn("w.safetensors", self.refused(self.scenario(""), "--set",
                                                    f"model.weights={self.path('w.safetensors')}"))

    # -- messages -----------------------------------------------------------------------------------------------------

    def test_a_message_does_not_flood_the_terminal(self):
        long = "x" * 10_000_000
        for text in (f'title = 1\n"{long}" = 1\n', f'[strategy]\nname = "{long}"\n', f"[{long}]\na = 1\n",
                     f"[training]\nbatch = {long}\n", f"[training]\n{long} = 1\n"):
            done = mneme("validate", self.write("long.toml", text))
            self.assertEqual(done.returncode, 2)
            self.assertLess(len(done.stderr), 20_000)
        done = mneme("validate", self.write("many.toml", "[training]\n" + "".join(f"k{i} = 1\n" for i in range(5000))))
        self.assertEqual(done.returncode, 2)
        self.assertLess(done.stderr.count("\n"), 300)
        self.assertIn("more errors are not shown", done.stderr)

    # -- folders of runs ----------------------------------------------------------------------------------------------

    def run_of(self, scenario, out):
        done = mneme("run", scenario, "--quiet", "--out", self.path(out))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path(out)

    def test_a_summary_that_cannot_be_read_is_named(self):
        run = self.run_of(self.scenario(""), "run")
        summary = os.path.join(run, "summary.json")
        for damage in ("{", '{"status": "\\ud800"}', "[]", ""):
            with self.subTest(damage), open(summary, "w", encoding="utf-8") as file:
                file.write(damage)
            self.assertIn("summary.json: error: is damaged", self.refused(run, command="resume"))
        os.remove(summary)
        os.mkfifo(summary)
        for command in ("resume", "compare"):
            self.assertIn(f"summary.json: error: {PIPE}", self.refused(run, command=command))
        os.remove(summary)
        self.assertEqual(mneme("resume", run, "--quiet").returncode, 0)

    def test_a_sweep_names_a_damaged_run_and_reruns_nothing(self):
        words = (self.scenario(""), "--seeds", "1,2", "--out", self.path("runs"))
        self.assertEqual(mneme("sweep", *words, "--quiet").returncode, 0)
        runs = sorted(name for name in os.listdir(self.path("runs")) if name.startswith("a-"))
        self.assertEqual(len(runs), 2)
        self.write(os.path.join("runs", runs[0], "summary.json"), "{")
        said = self.refused(*words, command="sweep")
        self.assertIn(f"{runs[0]}: error: summary.json: is damaged", said)
        self.assertEqual(sorted(name for name in os.listdir(self.path("runs")) if name.startswith("a-")), runs)
        self.assertIn("damaged", mneme("list", "runs", "--in", self.path("runs")).stdout)
        shutil.rmtree(os.path.join(self.path("runs"), runs[0]))
        self.assertEqual(mneme("sweep", *words, "--quiet").returncode, 0)

    def test_a_file_that_changed_since_a_run_began_is_named(self):
        trace = self.write("trace.csv", "client,from,to\n0,0,1000000\n1,0,1000000\n2,0,1000000\n3,0,1000000\n")
        run = self.run_of(self.scenario('[devices]\navailability = "file"\navailability_file = "trace.csv"\n'), "run")
        self.write("trace.csv", "client,from,to\n0,0,1000001\n1,0,1000000\n2,0,1000000\n3,0,1000000\n")
        for command in ("verify", "resume"):
            self.assertIn(f"{trace}: error: has changed since the run began (devices.availability_file)",
                          self.refused(run, command=command))
            if command == "verify":
                os.remove(os.path.join(run, "summary.json"))

    # -- the machine --------------------------------------------------------------------------------------------------

    @unittest.skipUnless(platform.machine() == "x86_64", "the filter is written for x86-64")
    def test_a_sandbox_that_refuses_threads_gives_one_error(self):
        done = subprocess.run([PROGRAM, "run", self.scenario(""), "--out", self.path("run")], capture_output=True,
                              text=True, preexec_fn=refuse_clone3, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("cannot start a thread: Operation not permitted; a sandbox refuses", done.stderr)


if __name__ == "__main__":
    run_tests()
