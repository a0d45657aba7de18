"""mneme's STSA and STSA-E agree with the same algebra on pooled rows, for any partition: on generated digits with plain
Python (ridge_algebra.py), and on Fashion-MNIST with plain PyTorch (tools/research/export/ridge_reference.py).

Both references compute in float64 from the same float32 weights. Features have a float32 error of 1e-7; a read-out may
differ by 1e-4 of its norm, and an accuracy by one test row.
"""
import csv
import json
import math
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ridge_algebra  # noqa: E402
from program import ROOT, mneme, needs_data, run_tests  # noqa: E402
from pytorch_agreement_test import read_safetensors  # noqa: E402

FOLDER = os.path.join(ROOT, "tests", "golden", "stsa_fashion_mnist")
READOUT_DIFFERENCE_MAX = 1e-4
ROW_PERCENT = 100.0 / 190  # one row of the smallest test set of the tasks of Fashion-MNIST
MADE_ROW_PERCENT = 100.0 * ridge_algebra.CLASSES / ridge_algebra.CLASSES_PER_TASK / ridge_algebra.TEST_ROWS
VARIANTS = {
    "exact_linear": {},
    "exact_cosine": {"cosine": True},
    "estimated_total": {"estimated": True},
    "estimated_nonempty": {"estimated": True, "nonempty": True},
    "official": {"estimated": True, "cosine": True, "clamped": True},
}


def matrix_of(folder):
    with open(os.path.join(folder, "accuracy_matrix.csv"), encoding="utf-8") as file:
        return [[float(value) for value in row[1:] if value] for row in list(csv.reader(file))[1:]]


class Agreement(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Writes generated digits to files, and computes their random features."""
        cls.made = tempfile.TemporaryDirectory()
        digits = ridge_algebra.MadeDigits()
        digits.write(cls.made.name)
        weights = read_safetensors(os.path.join(FOLDER, "weights.safetensors"))
        projection = read_safetensors(os.path.join(FOLDER, "projection.safetensors"))["W_R"]
        cls.train = ridge_algebra.features(digits.train, weights, projection)
        cls.test = ridge_algebra.features(digits.test, weights, projection)
        partition = os.path.join(cls.made.name, "partition.csv")
        settings = (f"data.root={cls.made.name}", f"partition.file={partition}",
                    f"data.train_rows={ridge_algebra.TRAIN_ROWS}", f"data.test_rows={ridge_algebra.TEST_ROWS}")
        cls.on_made_digits = [word for setting in settings for word in ("--set", setting)]

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def run_of(self, name, *options):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "run")
            done = mneme("run", os.path.join(FOLDER, f"{name}.toml"), "--out", out, "--quiet", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            return matrix_of(out), read_safetensors(os.path.join(out, "model.safetensors"))["readout.weight"]

    def apart(self, found, expected):
        """Returns the largest difference of two accuracy matrices."""
        self.assertEqual([len(row) for row in found], [len(row) for row in expected])
        return max(abs(a - b) for rows in zip(found, expected) for a, b in zip(*rows))

    def agree(self, name, found, expected, row_percent):
        """Compares two results: (accuracy matrix, (shape, values) of the read-out)."""
        matrix, (shape, values) = found
        self.assertEqual(shape, expected[1][0])
        difference = math.dist(values, expected[1][1]) / math.hypot(*expected[1][1])
        apart = self.apart(matrix, expected[0])
        print(f"{name}: read-out differs by {difference:.2g}, accuracy by {apart:.2g} points")
        self.assertLessEqual(difference, READOUT_DIFFERENCE_MAX)
        self.assertLessEqual(apart, row_percent + 1e-6)

    def agree_on_made_digits(self, name):
        matrix, readout = ridge_algebra.learn(VARIANTS[name], self.train, self.test)
        expected = [len(readout), len(readout[0])], [value for line in readout for value in line]
        self.assertLess(matrix[-1][0], 100.0)  # at 100 %, accuracies would hide errors
        self.agree(f"{name}, made-up digits", self.run_of(name, *self.on_made_digits), (matrix, expected),
                   MADE_ROW_PERCENT)

    def agree_on_fashion_mnist(self, name):
        needs_data(self, "fashion-mnist")
        with open(os.path.join(FOLDER, "expected_accuracy.json"), encoding="utf-8") as file:
            matrix = json.load(file)[name]
        readout = read_safetensors(os.path.join(FOLDER, f"expected_{name}.safetensors"))["readout.weight"]
        self.agree(f"{name}, Fashion-MNIST", self.run_of(name), (matrix, readout), ROW_PERCENT)

    def test_the_accuracy_matrix_is_equal_for_any_split_clients_and_workers(self):
        expected, _ = self.run_of("exact_linear", *self.on_made_digits)
        for clients, kind, threads in ((5, "dirichlet-capped", 1), (50, "dirichlet", 2), (200, "iid", 2)):
            found, _ = self.run_of("exact_linear", *self.on_made_digits, "--threads", str(threads),
                                   "--set", "partition.beta=0.3", "--set", f"clients.count={clients}",
                                   "--set", f"partition.kind={kind}")
            self.assertLessEqual(self.apart(found, expected), 0.01, f"{clients} clients, {kind}")

    def test_bad_files_are_refused_by_name(self):
        other = os.path.join(self.made.name, "without_dummies.csv")
        with open(other, "w", encoding="utf-8") as file:
            file.write("row,client\n" + "".join(f"{row},0\n" for row in range(ridge_algebra.TRAIN_ROWS)))
        no_column = ["--set", f"partition.file={other}"]
        weights = os.path.join(FOLDER, "weights.safetensors")
        for name, options, said in (
                ("exact_linear", ["--set", f"strategy.projection_file={weights}"], "found no tensor 'W_R'"),
                ("exact_linear", ["--set", "strategy.projection_file=none.safetensors"], "No such file or directory"),
                ("exact_linear", ["--set", "model.hidden=[25]"], "tensor 'fc1.weight' has shape [24, 784]"),
                ("exact_linear", ["--set", "strategy.ridge=0"], "strategy.ridge"),
                ("official", no_column, "the header names no column 'dummy'"),
                ("official", ["--set", "partition.kind=iid"], "partition.kind"),
                ("official", ["--set", "strategy.dummies=5"], "dummy 5 does not exist; expected 0..4")):
            done = mneme("run", os.path.join(FOLDER, f"{name}.toml"), "--quiet", *self.on_made_digits, *options)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn(said, done.stdout + done.stderr)


def add_variant(name):
    setattr(Agreement, f"test_{name}_agrees_with_python", lambda self: self.agree_on_made_digits(name))
    setattr(Agreement, f"test_{name}_agrees_with_pytorch", lambda self: self.agree_on_fashion_mnist(name))


for variant in VARIANTS:
    add_variant(variant)

if __name__ == "__main__":
    run_tests()
