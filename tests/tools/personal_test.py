"""Clients' own models (evaluation.personal), one split for many seeds (data.seed), and mneme doctor --partition."""
import csv
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, mneme, run_tests  # noqa: E402

SCENARIO = """
seed = 3
[data]
name = "synthetic"
shape = [16]
classes = 4
rows = 600
[tasks]
kind = "{tasks}"
count = {count}
[partition]
kind = "dirichlet"
beta = 0.7
[clients]
count = {clients}
[rounds]
per_task = 3
cohort = {cohort}
[model]
name = "linear"
[training]
batch = {batch}
learning_rate = 0.1
[strategy]
name = "fedavg"
[evaluation]
personal = "{personal}"
{keys}
[checkpoint]
force = true
"""
USUAL = {"tasks": "class-incremental", "count": 2, "clients": 6, "cohort": 3, "batch": 8, "personal": "fine-tuned",
         "keys": ""}


def tensors_file(path, **tensors):
    """Writes float32 tensors, given as (shape, values), in the safetensors format."""
    header, content = {}, b""
    for name, (shape, values) in tensors.items():
        data = struct.pack(f"<{len(values)}f", *values)
        header[name.replace("_", ".")] = {"dtype": "F32", "shape": shape,
                                          "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + content)


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def file(self, **given):
        path = os.path.join(self.folder, "test.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SCENARIO.format(**{**USUAL, **given}))
        return path

    def run_of(self, *words, name="run", **given):
        """Runs the scenario and returns its folder."""
        out = os.path.join(self.folder, name)
        done = mneme("run", self.file(**given), "--out", out, "--quiet", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def summary(self, folder):
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def accuracy_lines(self, folder):
        return lines_of(os.path.join(folder, "client_accuracy.csv"))


class Personal(Runs):
    def test_held_out_rows_are_a_share_of_each_clients_rows_of_each_task(self):
        run = self.run_of("--trace", keys="personal_share = 0.25")
        rows = {}
        for line in lines_of(os.path.join(run, "partition.csv")):
            owner = int(line["client"]), int(line["task"])
            rows[owner] = rows.get(owner, 0) + 1
        held = {}
        for line in lines_of(os.path.join(run, "client_classes.csv")):
            owner = int(line["client"]), int(line["task"])
            held[owner] = held.get(owner, 0) + int(line["rows"])
        self.assertEqual(held, rows)
        tests = self.accuracy_lines(run)
        self.assertEqual({int(line["round"]) for line in tests}, set(range(1, 7)))
        for line in tests:
            client, task = int(line["client"]), int(line["task"])
            own = [rows.get((client, t), 0) for t in range(1, task + 1)]
            self.assertEqual(int(line["train_rows"]), own[-1] - own[-1] // 4)
            self.assertEqual(int(line["test_rows"]), sum(n // 4 for n in own))

    def test_accuracies_of_a_constant_prediction_are_shares_of_classes(self):
        scores = os.path.join(self.folder, "scores.safetensors")
        tensors_file(scores, fc_weight=([4, 16], [0.0] * 64), fc_bias=([4], [0.0, 1.0, 0.0, 2.0]))
        keys = 'personal_rows = "classes"\nmask = "all"\nevery = 0'
        settings = ["--set", f"model.seed_weights={scores}", "--set", "training.learning_rate=1e-12"]
        run = self.run_of(*settings, tasks="single", count=1, keys=keys)
        described = json.loads(mneme("doctor", self.file(), "--json").stdout)
        tested = [part["test"] for part in described["classes"]]
        classes = {}
        for line in lines_of(os.path.join(run, "client_classes.csv")):
            classes.setdefault(int(line["client"]), set()).add(int(line["class"]))
        tests = self.accuracy_lines(run)
        self.assertEqual({int(line["client"]) for line in tests}, set(classes))
        accuracies = []
        for line in tests:
            own = classes[int(line["client"])]
            rows = sum(tested[label] for label in own)
            expected = 100 * tested[3] / rows if 3 in own else 0.0
            self.assertEqual(int(line["test_rows"]), rows)
            self.assertAlmostEqual(float(line["accuracy_before"]), expected, places=9)
            self.assertAlmostEqual(float(line["accuracy"]), expected, places=9)
            accuracies.append(expected)
        summary = self.summary(run)
        self.assertEqual(summary["personal_clients"], len(tests))
        self.assertAlmostEqual(summary["personal_accuracy"], sum(accuracies) / len(accuracies), places=9)
        self.assertAlmostEqual(summary["personal_accuracy_before"], sum(accuracies) / len(accuracies), places=9)
        self.assertEqual(len(summary["personal_accuracy_deciles"]), 9)

    def test_fine_tuning_of_the_only_client_is_its_next_round(self):
        run = self.run_of(clients=1, cohort=1, batch=0, count=1, tasks="single", keys="personal_share = 0.5")
        tests = self.accuracy_lines(run)
        self.assertEqual(len(tests), 3)
        for now, after in zip(tests, tests[1:]):
            self.assertEqual(now["accuracy"], after["accuracy_before"])
        self.assertNotEqual(tests[0]["accuracy_before"], tests[-1]["accuracy"])

    def test_the_local_model_of_the_only_client_is_the_servers(self):
        run = self.run_of(clients=1, cohort=1, personal="local")
        tests = self.accuracy_lines(run)
        self.assertEqual(len(tests), 6)
        for line in tests:
            self.assertEqual(line["accuracy"], line["accuracy_before"])

    def test_local_tests_the_clients_that_have_uploaded(self):
        run = self.run_of("--trace", personal="local")
        uploaded = {line["client"] for line in lines_of(os.path.join(run, "deliveries.csv")) if line["round"] == "1"}
        self.assertEqual({line["client"] for line in self.accuracy_lines(run) if line["round"] == "1"}, uploaded)
        self.assertTrue(any(line["accuracy"] != line["accuracy_before"] for line in self.accuracy_lines(run)))

    def test_results_are_equal_for_any_number_of_threads(self):
        for personal in ("fine-tuned", "local"):
            runs = [self.run_of("--threads", str(threads), "--set", f"worker.fused_clients_max={width}",
                                name=f"{personal}-{threads}", personal=personal)
                    for threads, width in ((1, 0), (2, 1), (3, 4))]
            self.assertEqual(len({self.summary(run)["run_digest"] for run in runs}), 1)
            self.assertEqual(self.accuracy_lines(runs[0]), self.accuracy_lines(runs[1]))
            self.assertEqual(self.accuracy_lines(runs[0]), self.accuracy_lines(runs[2]))

    def test_the_results_are_part_of_the_digest(self):
        plain = self.summary(self.run_of(name="plain", personal="none"))
        tested = self.summary(self.run_of(name="tested", keys='personal_rows = "classes"'))
        self.assertNotEqual(plain["run_digest"], tested["run_digest"])
        self.assertEqual(plain["final_accuracy"], tested["final_accuracy"])  # the tests change no model
        self.assertNotIn("personal_accuracy", plain)

    def test_a_killed_run_resumes_to_the_same_results(self):
        for personal in ("fine-tuned", "local"):
            whole = self.run_of(name=f"whole-{personal}", personal=personal)
            out = os.path.join(self.folder, f"killed-{personal}")
            process = subprocess.Popen([PROGRAM, "run", self.file(personal=personal), "--out", out, "--quiet"])
            checkpoints = os.path.join(out, "checkpoint")
            while process.poll() is None and not (os.path.isdir(checkpoints) and any(
                    name.endswith(".checkpoint") for name in os.listdir(checkpoints))):
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if not os.path.exists(os.path.join(out, "summary.json")):
                done = mneme("resume", out, "--quiet", "--threads", "1")
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.summary(out)["run_digest"], self.summary(whole)["run_digest"])
            self.assertEqual(self.accuracy_lines(out), self.accuracy_lines(whole))

    def test_bad_values_are_explained_at_their_place(self):
        cases = (({"personal": "tuned"}, "test.toml:27:12: error: ", '"none" | "fine-tuned" | "local"'),
                 ({"keys": "personal_share = 1.0"}, "test.toml:28:18: error: ", "0.9"),
                 ({"keys": "personal_epochs = 0"}, "test.toml:28:19: error: ", "in [1, 1000000]"),
                 ({"keys": 'personal_rows = "class"'}, "test.toml:28:17: error: ", "held-out"),
                 ({"keys": "personal_share = 0.001"}, "test.toml:28:18: error: ", "no client has a test row"))
        for given, place, text in cases:
            with self.subTest(text):
                done = mneme("validate", self.file(**given))
                self.assertEqual(done.returncode, 2)
                self.assertIn(place, done.stderr)
                self.assertIn(text, done.stderr)
        methods = (("joint", ["--set", "strategy.centralised=true"], "fine-tuned", "clients have no models of their"),
                   ("stsa", [], "local", "are not models of the net"))
        for method, words, personal, text in methods:
            with self.subTest(method):
                done = mneme("validate", self.file(personal=personal), "--set", f"strategy.name={method}", *words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(text, done.stderr)

    def test_the_local_model_of_a_client_is_its_processed_upload(self):
        plain = self.run_of(name="plain", personal="local")
        clipped = self.run_of("--set", "uploads.clip_norm=1e-3", name="clipped", personal="local")
        self.assertEqual(len(self.accuracy_lines(clipped)), len(self.accuracy_lines(plain)))
        for line in self.accuracy_lines(clipped):  # updates of at most 1e-3 hardly change the model
            self.assertAlmostEqual(float(line["accuracy"]), float(line["accuracy_before"]), delta=10.0)

    def test_keys_without_effect_are_reported(self):
        done = mneme("validate", self.file(personal="none", keys="personal_share = 0.5"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("personal_share", done.stderr)


class Splits(Runs):
    def test_a_fixed_data_seed_keeps_the_split_while_the_seed_varies(self):
        runs = {}
        for name, words in (("a", ["--set", "data.seed=7"]), ("b", ["--set", "data.seed=7", "--set", "seed=4"]),
                            ("c", ["--set", "seed=4"]), ("d", ["--set", "data.seed=3"]), ("e", [])):
            runs[name] = self.run_of("--trace", "--set", "tasks.class_order=seeded", *words, name=name)
        split = {}
        for name, run in runs.items():
            with open(os.path.join(run, "partition.csv"), encoding="utf-8") as file:
                split[name] = file.read()
        digests = {name: self.summary(run)["run_digest"] for name, run in runs.items()}
        self.assertEqual(split["a"], split["b"])
        self.assertNotEqual(digests["a"], digests["b"])
        self.assertNotEqual(split["a"], split["c"])
        self.assertEqual((split["d"], digests["d"]), (split["e"], digests["e"]))

    def test_doctor_shows_who_holds_which_class(self):
        run = self.run_of("--trace")
        rows = {}
        for line in lines_of(os.path.join(run, "client_classes.csv")):
            rows[int(line["client"]), int(line["class"])] = int(line["rows"])
        shown = mneme("doctor", "--partition", self.file(), "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        counts = json.loads(shown.stdout)
        self.assertEqual(len(counts["classes"]), 4)
        self.assertEqual(counts["rows"], [[rows.get((client, label), 0) for label in range(4)] for client in range(6)])
        text = mneme("doctor", "--partition", self.file()).stdout
        self.assertNotIn("\x1b", text)
        for client, line in enumerate(text.splitlines()[2:]):
            self.assertEqual([int(word) for word in line.split()],
                             [client, *counts["rows"][client], sum(counts["rows"][client])])
        other = json.loads(mneme("doctor", "--partition", self.file(), "--set", "clients.count=3", "--json").stdout)
        self.assertEqual(len(other["rows"]), 3)

    def test_errors_of_a_partition_have_their_place(self):
        done = mneme("doctor", "--partition", self.file(), "--set", "partition.beta=-1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("partition.beta", done.stderr)
        done = mneme("doctor", "--partition", os.path.join(self.folder, "none.toml"))
        self.assertEqual(done.returncode, 2)

    def test_a_parquet_file_is_refused_with_the_line_that_converts_it(self):
        path = os.path.join(self.folder, "rows.parquet")
        with open(path, "wb") as file:
            file.write(b"PAR1")
        settings = ["--set", "data.name=arrays", "--set", f"data.file={path}"]
        for words in (["doctor", path], ["validate", self.file(), *settings]):
            done = mneme(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("mneme.Data.from_parquet(", done.stderr)

    def test_large_arrays_stay_in_their_file(self):
        rows, width = 90_000, 3072  # 276 MB, nearly all of it holes in the file
        self.write_npy("train_x", "|u1", (rows, 3, 32, 32), rows * width)
        self.write_npy("test_x", "|u1", (4, 3, 32, 32), 4 * width)
        self.write_npy("train_y", "|u1", (rows,), rows, bytes(row % 4 for row in range(rows)))
        self.write_npy("test_y", "|u1", (4,), 4, bytes(range(4)))
        with open(os.path.join(self.folder, "train_x.npy"), "r+b") as file:
            file.seek(128 + 5 * width)
            file.write(b"\xff" * width)
        done = mneme("doctor", os.path.join(self.folder, "train_x.npy"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        mapped = json.loads(done.stdout)
        self.assertEqual((mapped["train_rows"], mapped["test_rows"]), (rows, 4))
        self.assertEqual([part["train"] for part in mapped["classes"]], [rows // 4] * 4)
        scenario = self.file(count=1, tasks="single", clients=90_000, cohort=3, personal="none")
        settings = ["data.name=arrays", f"data.file={self.folder}/train_x.npy", "partition.kind=iid",
                    "rounds.per_task=2"]
        out = os.path.join(self.folder, "run")
        code = subprocess.run([PROGRAM, "run", scenario, "--out", out, "--quiet", "--threads", "1",
                               *(word for setting in settings for word in ("--set", setting))], check=False).returncode
        self.assertEqual(code, 0)

    def write_npy(self, name, dtype, shape, size, values=b""):
        """Writes a .npy file of this size; values that are not given are holes of zeros."""
        header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
        with open(os.path.join(self.folder, name + ".npy"), "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header + values)
            file.truncate(128 + size)


if __name__ == "__main__":
    run_tests()
