"""Language models (model.causal): each method either trains one, or `mneme validate` rejects it at its place."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import mneme, run_tests  # noqa: E402

SCENARIO = """seed = 1
[data]
name = "synthetic"
shape = [6]
vocabulary_size = 8
classes = 4
rows = 80
[tasks]
count = 2
[clients]
count = {clients}
[rounds]
per_task = 2
cohort = 1
[model]
name = "bert"
causal = true
width = 4
depth = 1
heads = 1
[training]
batch = 8
[evaluation]
every = 0
[strategy]
name = "{method}"
{keys}"""
CAUSAL_LINE = 1 + SCENARIO.splitlines().index("causal = true")
TRAINING = {"dp-fedavg", "dp-ftrl", "er", "fed-adam", "fed-dyn", "fed-et", "fed-ewc", "fed-nova", "fed-yogi", "fedavg",
            "fedprox", "finetune", "joint", "scaffold"}
KEYS = {"dp-fedavg": "[uploads]\nclip_norm = 1.0\nnoise_multiplier = 0.1\n"}
# Rejected at model.causal; the other methods need another net or images.
NO_CAUSAL = {"afc", "bic", "dde", "dytox", "fed-cil", "fed-il-plus", "fed-lwf", "fed-lwf-2t", "fedhaf", "geodl",
             "icarl", "moon", "podnet", "split-fedavg", "split-fedprox", "split-oracle", "ss-il", "stsa"}


def methods():
    return {line.split()[0] for line in mneme("list", "strategies").stdout.splitlines() if line.strip()}


class Causal(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def call(self, command, method, *words, keys=""):
        path = os.path.join(self.folder, "text.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SCENARIO.format(method=method, clients=1 if method == "central-rehearsal" else 4,
                                       keys=keys or KEYS.get(method, "")))
        return mneme(command, path, *words)

    def test_methods_that_accept_a_language_model_train_it(self):
        for method in sorted(TRAINING):
            with self.subTest(method):
                done = self.call("run", method, "--quiet", "--out", os.path.join(self.folder, method))
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_all_other_methods_are_rejected_before_the_run(self):
        for method in sorted(methods() - TRAINING):
            with self.subTest(method):
                done = self.call("validate", method)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn("expected", done.stderr)
                if method in NO_CAUSAL:
                    self.assertRegex(done.stderr, rf"text.toml:{CAUSAL_LINE}:10: error: .*model.causal = true.*; "
                                     'expected .*false, or a method that averages weights, such as "fedavg"')

    def test_a_variant_with_a_teacher_is_rejected(self):
        done = self.call("validate", "fed-et", keys='variant = "enhancer"\n')
        self.assertEqual(done.returncode, 2)
        self.assertIn('variant = "enhancer" distills class scores of rows; expected false', done.stderr)


if __name__ == "__main__":
    run_tests()
