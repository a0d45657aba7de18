"""User data: the same rows give one digest in every format, every feature of built-in data sets works, and errors state
location and cause."""
import json
import os
import random
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import Node, free_port  # noqa: E402
from own_data import Numbers, Pictures  # noqa: E402, which finds the next two
from array_bytes import Array, npy, write_npy, write_npz, write_safetensors  # noqa: E402
from mutations import mutated  # noqa: E402
from program import mneme, run_tests  # noqa: E402

SCENARIO = """seed = 3
[data]
{data}
[tasks]
{tasks}
[partition]
kind = "dirichlet"
beta = 0.5
[clients]
count = 4
[rounds]
per_task = 2
cohort = 3
[model]
name = "{model}"
[training]
batch = 4
[strategy]
name = "{method}"
"""


class OwnData(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mneme-own-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.made = 0

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def scenario(self, data, tasks="count = 2", model="mlp", method="fedavg"):
        self.made += 1
        path = self.path(f"s{self.made}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SCENARIO.format(data=data, tasks=tasks, model=model, method=method))
        return path

    def run_of(self, scenario, *words, environment=None):
        """Runs a scenario and returns its summary.json."""
        self.made += 1
        out = self.path(f"r{self.made}")
        done = mneme("run", scenario, "--quiet", "--out", out, *words, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return {**json.load(file), "out": out}

    def refused(self, scenario, *texts):
        done = mneme("validate", scenario)
        self.assertEqual(done.returncode, 2, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)

    def test_images_in_every_format_have_one_digest(self):
        pictures = Pictures()
        pictures.write_folder(self.path("p"))
        write_npz(self.path("a.npz"), pictures.arrays())
        write_npz(self.path("b.npz"), pictures.arrays(last=True), packed=True)
        write_safetensors(self.path("c.safetensors"), pictures.arrays())
        write_npy(self.path("d"), pictures.arrays())
        runs = [self.run_of(self.scenario(data)) for data in (
            'name = "folder"\nroot = "p"', *(f'name = "arrays"\nfile = "{name}"' for name in (
                "a.npz", "b.npz", "c.safetensors", "d", "d/train_x.npy")))]
        self.assertEqual(len({run["run_digest"] for run in runs}), 1)
        self.assertEqual(runs[0]["dataset"], "folder")
        with open(os.path.join(runs[0]["out"], "accuracy_per_class.csv"), encoding="utf-8") as file:
            self.assertIn("dog", file.read())

    def test_numbers_in_every_format_have_one_digest(self):
        numbers = Numbers()
        numbers.write_csv(self.path("t.csv"))
        write_npz(self.path("a.npz"), numbers.arrays())
        write_safetensors(self.path("c.safetensors"), numbers.arrays())
        for normalize in ("mean-std", "measured"):
            digests = {self.run_of(self.scenario(data + f'\nnormalize = "{normalize}"'))["run_digest"] for data in (
                'name = "csv"\nfile = "t.csv"', 'name = "arrays"\nfile = "a.npz"',
                'name = "arrays"\nfile = "c.safetensors"')}
            self.assertEqual(len(digests), 1, normalize)

    def test_test_share_selects_equal_rows_in_every_format(self):
        pictures, numbers = Pictures(), Numbers()
        pictures.write_folder(self.path("p"), splits=("train",))
        write_npz(self.path("p.npz"), pictures.arrays(splits=("train",)))
        numbers.write_csv(self.path("t.csv"), splits=("train",))
        write_npz(self.path("t.npz"), numbers.arrays(splits=("train",)))
        for pair in (('name = "folder"\nroot = "p"', 'name = "arrays"\nfile = "p.npz"'),
                     ('name = "csv"\nfile = "t.csv"', 'name = "arrays"\nfile = "t.npz"')):
            digests = {self.run_of(self.scenario(data + "\ntest_share = 0.25"))["run_digest"] for data in pair}
            self.assertEqual(len(digests), 1)
        self.refused(self.scenario('name = "csv"\nfile = "t.csv"'), "has no test part; add one, or set")

    def test_test_share_is_refused_for_data_with_a_test_split(self):
        Pictures().write_folder(self.path("p"))
        scenario = self.scenario('name = "folder"\nroot = "p"\ntest_share = 0.25')
        with open(scenario, encoding="utf-8") as file:
            line = file.read().splitlines().index("test_share = 0.25") + 1
        self.refused(scenario, f"{scenario}:{line}:", "data.test_share is 0.25, but ", " has a test part; expected 0")

    def test_methods_train_on_domains_and_tokens(self):
        pictures = Pictures(channels=1, domains=("photo", "sketch"))
        pictures.write_folder(self.path("p"))
        write_npz(self.path("a.npz"), pictures.arrays())
        by_domain = 'kind = "domain-incremental"\ntransform = "domains"\ncount = 2'
        runs = [self.run_of(self.scenario(data, tasks=by_domain)) for data in (
            'name = "folder"\nroot = "p"', 'name = "arrays"\nfile = "a.npz"')]
        self.assertEqual(runs[0]["run_digest"], runs[1]["run_digest"])
        write_npz(self.path("t.npz"), {
            f"{split}_{kind}": Array("int64", [rows, 5] if kind == "x" else [rows],
                                     [(row * 7 + i) % 11 if kind == "x" else row % 4
                                      for row in range(rows) for i in range(5 if kind == "x" else 1)])
            for split, rows in (("train", 40), ("test", 12)) for kind in "xy"})
        self.assertEqual(self.run_of(self.scenario('name = "arrays"\nfile = "t.npz"', model="lstm"))["tasks"], 2)
        self.refused(self.scenario('name = "arrays"\nfile = "t.npz"'), "the data are rows of tokens")

    def test_user_data_support_threads_resume_limits_and_partitions(self):
        Pictures(train=20).write_folder(self.path("p"))
        scenario = self.scenario('name = "folder"\nroot = "p"\ntrain_per_class = 12')
        one = self.run_of(scenario, "--threads", "1", "--set", "checkpoint.force=true")
        self.assertEqual(self.run_of(scenario, "--threads", "4")["run_digest"], one["run_digest"])
        rows = "client,row\n" + "".join(f"{row % 4},{row // 12 * 20 + row % 12}\n" for row in range(48))
        with open(self.path("rows.csv"), "w", encoding="utf-8") as file:
            file.write(rows)
        self.run_of(scenario, "--set", "partition.kind=file", "--set", f"partition.file={self.path('rows.csv')}")
        for name in ("summary.json", "model.safetensors"):
            os.remove(os.path.join(one["out"], name))
        # Same names and sizes, but other pixels.
        first, second = self.path("p", "train", "ant", "001.png"), self.path("p", "train", "ant", "002.png")
        os.rename(first, first + ".kept")
        os.rename(second, first)
        os.rename(first + ".kept", second)
        done = mneme("resume", one["out"], "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("has changed since the run began", done.stderr)

    def test_nodes_read_their_own_folders_and_receive_files(self):
        Pictures().write_folder(self.path("here", "birds"))
        write_npz(self.path("a.npz"), Pictures().arrays())
        shutil.copytree(self.path("here"), self.path("there"))
        there = {**os.environ, "MNEME_DATA": self.path("there")}
        here = {**os.environ, "MNEME_DATA": self.path("here")}
        folder = self.scenario('name = "folder"\nfolder = "birds"')
        arrays = self.scenario('name = "arrays"\nfile = "a.npz"')
        alone = self.run_of(arrays)
        for scenario in (folder, arrays):
            address = f"127.0.0.1:{free_port()}"
            self.addCleanup(Node(self.folder, address, "--threads", "1", environment=there).end)
            run = self.run_of(scenario, "--accept", address, "--workers-min", "1", environment=here)
            self.assertEqual(run["run_digest"], alone["run_digest"])
            self.assertGreater(run["nodes"][0]["client_rounds"], 0)
        nameless = self.scenario('name = "folder"\nroot = "here/birds"')
        done = mneme("run", nameless, "--quiet", "--out",
                     self.path("refused"), "--accept", "127.0.0.1:0")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\.toml:\d+:8: error: data.root: every node .* expected data.folder, the name")
        write_npy(self.path("beside"), Pictures().arrays())
        several = self.scenario('name = "arrays"\nfile = "beside/train_x.npy"')
        done = mneme("run", several, "--quiet", "--out", self.path("refused"), "--accept", "127.0.0.1:0")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, r"\.toml:\d+:8: error: data.file: a run sends one .* expected \.npz or")

    def test_doctor_describes_the_data(self):
        pictures = Pictures(domains=("photo", "sketch"))
        pictures.write_folder(self.path("p"))
        done = mneme("doctor", "--json", self.path("p"))
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(done.stdout)
        self.assertEqual((told["data"], told["train_rows"], told["test_rows"]), ("folder", 80, 32))
        self.assertEqual(told["rows"], "3 x 8 x 8 (channels, height, width), uint8")
        self.assertEqual(told["memory_bytes"], 112 * 192)
        self.assertEqual(told["classes"][2], {"name": "cat", "train": 20, "test": 8})
        self.assertEqual(told["domains"][1], {"name": "sketch", "train": 40, "test": 16})
        Numbers().write_csv(self.path("t.csv"), splits=("train",))
        done = mneme("doctor", self.path("t.csv"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("32 + 8 of 8 numbers, float32", done.stdout)
        self.assertIn("missing: a scenario needs data.test_share, which is 0.2 here", done.stdout)
        done = mneme("doctor", "scenarios/quickstart.toml", "scenarios/smoke/fedavg.toml", "--json")
        self.assertIn('"data":"synthetic","train_rows":2000', done.stdout)
        run = self.run_of("scenarios/smoke/fedavg.toml")["out"]
        done = mneme("doctor", run)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "error: is the folder of a run, not a data set; .* mneme verify ")
        done = mneme("doctor", self.path("nothing"), self.path("t.csv"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("is neither an image folder nor a data file", done.stderr)

    def test_doctor_new_validate_and_run_recognize_equal_splits(self):
        """Kaggle's folder names are recognized as splits, with a warning from every command."""
        Pictures().write_folder(self.path("p"))
        for split, name in (("train", "Training"), ("test", "Testing")):
            os.rename(self.path("p", split), self.path("p", name))
        os.makedirs(self.path("p", "Training", ".ipynb_checkpoints"))
        warnings = ["'Training' is read as the training part, 'Testing' as the test part",
                    "1 hidden or system folders are left out: Training/.ipynb_checkpoints"]
        scenario = self.scenario('name = "folder"\nroot = "p"')
        for words in (["doctor", self.path("p")], ["new", "fedavg", self.path("p"), "-o", self.path("new.toml")],
                      ["validate", scenario], ["run", scenario, "--out", self.path("r")]):
            done = mneme(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            for text in warnings:
                self.assertRegex(done.stderr + done.stdout, f"warning: .*{text}|: warning: {text}", words[0])
        self.assertIn("40 + 16 of 3 x 8 x 8", mneme("doctor", self.path("p")).stdout)
        with open(self.path("new.toml"), encoding="utf-8") as file:
            self.assertIn("\ntest_share = 0.0", file.read())
        os.rename(self.path("p", "Training"), self.path("p", "cats"))
        for words in (["doctor", self.path("p")], ["new", "fedavg", self.path("p")], ["validate", scenario]):
            done = mneme(*words)
            self.assertEqual(done.returncode, 2, words[0])
            self.assertIn("has the part 'Testing' and no training part; expected", done.stderr)

    def test_a_new_scenario_is_written_for_a_path(self):
        Numbers().write_csv(self.path("t.csv"), splits=("train",))
        done = mneme("new", "er", self.path("t.csv"), "-o", self.path("new.toml"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(mneme("validate", self.path("new.toml")).returncode, 0)
        done = mneme("new", "fedavg", "folder")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('\nroot = ""\n', done.stdout)

    def test_damaged_files_of_every_format_are_refused_with_a_reason(self):
        pictures, numbers = Pictures(channels=1, train=2, test=1), Numbers(12, 8)
        pictures.write_folder(self.path("p"))
        write_npz(self.path("a.npz"), numbers.arrays())
        write_npz(self.path("b.npz"), pictures.arrays(), packed=True)
        write_safetensors(self.path("c.safetensors"), numbers.arrays())
        write_npy(self.path("d"), numbers.arrays())
        numbers.write_csv(self.path("t.csv"))
        doors = {"a.npz": "arrays", "b.npz": "arrays", "c.safetensors": "arrays", "d/train_x.npy": "arrays",
                 "t.csv": "csv", "p/train/cat/001.png": "folder"}
        for place, door in doors.items():
            with open(self.path(*place.split("/")), "rb") as file:
                honest = file.read()
            words, copies = [], []
            for seed in range(200):
                top, below = place.split("/", 1) if "/" in place else (place, "")
                copy = self.path("m", f"{seed}-{top}")
                if below:
                    shutil.copytree(self.path(top), copy)
                else:
                    os.makedirs(self.path("m"), exist_ok=True)
                with open(os.path.join(copy, below) if below else copy, "wb") as file:
                    file.write(mutated(honest, random.Random(f"{place} {seed}")))
                words.append(os.path.join(copy, below) if door != "folder" else copy)
                copies.append(copy)
            done = mneme("doctor", *words)
            self.assertIn(done.returncode, (0, 2), place + done.stderr[-500:])
            for copy in copies:
                self.assertIn(copy, done.stderr + done.stdout)
            shutil.rmtree(self.path("m"))

    def test_headers_with_wrong_sizes_allocate_no_memory(self):
        huge = npy(Array("float32", [1 << 40, 8], []))
        os.makedirs(self.path("d"))
        with open(self.path("d", "train_x.npy"), "wb") as file:
            file.write(huge)
        self.refused(self.scenario('name = "arrays"\nfile = "d"'),
                     "train_x.npy: error: the header states 35184372088832 bytes of values, and 0 follow")

    def test_a_large_array_stays_in_its_file(self):
        def peak_mib(rows):
            """Peak resident memory of a run with that many rows of 16 KiB, which are zeros that a file does not
            store."""
            folder = self.path(f"of-{rows}")
            small = {"train_y": Array("int64", [rows], [row % 2 for row in range(rows)]),
                     "test_x": Array("float32", [8, 4096], [0.0] * 8 * 4096),
                     "test_y": Array("int64", [8], [0, 1] * 4)}
            write_npy(folder, small)
            with open(os.path.join(folder, "train_x.npy"), "wb") as file:
                file.write(npy(Array("float32", [rows, 4096], [])))
                file.truncate(file.tell() + rows * 4096 * 4)
            scenario = self.scenario(f'name = "arrays"\nfile = "{folder}"', 'kind = "single"', "linear")
            return self.run_of(scenario, "--threads", "1", "--set", "rounds.per_task=1", "--set",
                               "rounds.cohort=1")["peak_rss_bytes"] / 2**20

        with_large = peak_mib(24576)  # 384 MiB; arrays of 256 MiB and more stay in their file
        self.assertLess(with_large - peak_mib(64), 240)  # pages of at most 128 MiB, and labels


if __name__ == "__main__":
    run_tests()
