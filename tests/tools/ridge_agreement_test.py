"""mneme's STSA and STSA-E agree with the same algebra on pooled rows in plain PyTorch, for any split of clients.

Made by tools/export/ridge_reference.py in float64 from the same float32 weights. Features cost 1e-7 in float32; a
read-out may differ by 1e-4 of its norm, and an accuracy by one test row.
"""
import csv
import json
import math
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, needs_data, run_tests  # noqa: E402
from pytorch_agreement_test import read_safetensors  # noqa: E402

FOLDER = os.path.join(ROOT, "tests", "golden", "stsa_mnist")
READOUT_DIFFERENCE_MAX = 1e-4
ROW_PERCENT = 100.0 / 170  # one row of the smallest task's test set


def matrix_of(folder):
    with open(os.path.join(folder, "accuracy_matrix.csv"), encoding="utf-8") as file:
        return [[float(value) for value in row[1:] if value] for row in list(csv.reader(file))[1:]]


class Agreement(unittest.TestCase):
    def run_of(self, folder, name, *options):
        out = os.path.join(folder, "run")
        done = mneme("run", os.path.join(FOLDER, f"{name}.toml"), "--out", out, "--quiet", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return matrix_of(out), read_safetensors(os.path.join(out, "model.safetensors"))

    def apart(self, found, expected):
        """The largest difference of two accuracy matrices."""
        self.assertEqual([len(row) for row in found], [len(row) for row in expected])
        return max(abs(a - b) for rows in zip(found, expected) for a, b in zip(*rows))

    def agree(self, name):
        needs_data(self, "mnist")
        with open(os.path.join(FOLDER, "expected_accuracy.json"), encoding="utf-8") as file:
            expected = json.load(file)[name]
        with tempfile.TemporaryDirectory() as folder:
            found, model = self.run_of(folder, name)
        readout = read_safetensors(os.path.join(FOLDER, f"expected_{name}.safetensors"))["readout.weight"]
        self.assertEqual(model["readout.weight"][0], readout[0])
        difference = math.dist(model["readout.weight"][1], readout[1]) / math.hypot(*readout[1])
        print(f"{name}: read-out differs by {difference:.2g}, accuracy by {self.apart(found, expected):.2g} points")
        self.assertLessEqual(difference, READOUT_DIFFERENCE_MAX)
        self.assertLessEqual(self.apart(found, expected), ROW_PERCENT + 1e-6)

    def test_the_matrix_is_the_same_for_any_split_and_number_of_clients_and_workers(self):
        needs_data(self, "mnist")
        with tempfile.TemporaryDirectory() as folder:
            expected, _ = self.run_of(folder, "exact_linear")
        for clients, kind, threads in ((5, "dirichlet-capped", 1), (50, "dirichlet", 2), (500, "iid", 2)):
            with tempfile.TemporaryDirectory() as folder:
                found, _ = self.run_of(folder, "exact_linear", "--threads", str(threads), "--set", "partition.beta=0.3",
                                       "--set", f"clients.count={clients}", "--set", f"partition.kind={kind}")
            self.assertLessEqual(self.apart(found, expected), 0.01, f"{clients} clients, {kind}")

    def test_bad_files_are_refused_by_name(self):
        needs_data(self, "mnist")
        other = os.path.join(ROOT, "tests", "golden", "fedavg_mnist", "partition.csv")
        no_column = ["--set", f"partition.file={other}"]
        weights = os.path.join(FOLDER, "weights.safetensors")
        for name, options, said in (
                ("exact_linear", ["--set", f"strategy.projection_file={weights}"], "found no tensor 'W_R'"),
                ("exact_linear", ["--set", "strategy.projection_file=none.safetensors"], "there is no such file"),
                ("exact_linear", ["--set", "model.hidden=[25]"], "tensor 'fc1.weight' has shape [24, 784]"),
                ("exact_linear", ["--set", "strategy.ridge=0"], "strategy.ridge"),
                ("official", no_column, "the header names no column 'dummy'"),
                ("official", ["--set", "partition.kind=iid"], "partition.kind"),
                ("official", ["--set", "strategy.dummies=5"], "dummy 5 does not exist; expected 0..4")):
            done = mneme("run", os.path.join(FOLDER, f"{name}.toml"), "--quiet", *options)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(said, done.stdout + done.stderr)


def add_variant(name):
    setattr(Agreement, f"test_{name}_agrees_with_pytorch", lambda self: self.agree(name))


for variant in ("exact_linear", "exact_cosine", "estimated_total", "estimated_nonempty", "official"):
    add_variant(variant)

if __name__ == "__main__":
    run_tests()
