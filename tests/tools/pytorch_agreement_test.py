"""mneme's averaging agrees with plain PyTorch: same initial weights and rows, equal weights after five rounds or fifty
asynchronous server steps.

References are from tools/research/export/fedavg_reference.py and async_reference.py in float64. Tolerance: 1e-5 per
weight, a hundred times PyTorch's float32 error; the variants differ from each other by a thousand times as much.
"""
import json
import math
import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, needs_data, run_tests  # noqa: E402

GOLDEN = os.path.join(ROOT, "tests", "golden")
FOLDERS = {"fedavg_fashion_mnist": {"client_rounds": 20}, "async_fashion_mnist": {"rounds": 50}}


def variants(folder):
    return sorted(name[len("expected_"):-len(".safetensors")] for name in os.listdir(os.path.join(GOLDEN, folder))
                  if name.endswith(".safetensors") and name.startswith("expected_"))


def expected_weights(folder, name):
    return read_safetensors(os.path.join(GOLDEN, folder, f"expected_{name}.safetensors"))


DIFFERENCE_MAX = 1e-5
ROW_PERCENT = 0.1  # one of a thousand test rows


def read_safetensors(path):
    """{name: (shape, values)} of a file of float32 tensors."""
    with open(path, "rb") as file:
        content = file.read()
    header_bytes = struct.unpack_from("<Q", content)[0]
    payload = content[8 + header_bytes:]
    tensors = {}
    for name, entry in json.loads(content[8:8 + header_bytes]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", f"{path}: {name} is {entry['dtype']}"
        low, high = entry["data_offsets"]
        tensors[name] = entry["shape"], struct.unpack(f"<{(high - low) // 4}f", payload[low:high])
    return tensors


def worst_difference(found, expected):
    """(difference, location) of the worst element; names and shapes must be equal."""
    shapes = [{name: shape for name, (shape, _) in tensors.items()} for tensors in (found, expected)]
    assert shapes[0] == shapes[1], f"found {shapes[0]}, expected {shapes[1]}"
    worst = 0.0, "all equal"
    for name, (_, values) in sorted(expected.items()):
        for i, (is_, should) in enumerate(zip(found[name][1], values)):
            apart = abs(is_ - should) if is_ == is_ else math.inf
            if apart > worst[0]:
                worst = apart, f"{name}[{i}] is {is_!r}, expected {should!r}"
    return worst


class Agreement(unittest.TestCase):
    def test_the_variants_differ_by_far_more_than_the_tolerance(self):
        weights = [expected_weights(folder, name) for folder in FOLDERS for name in variants(folder)]
        self.assertGreaterEqual(len(weights), 10)
        for i, one in enumerate(weights):
            for other in weights[:i]:
                self.assertGreater(worst_difference(one, other)[0], 100 * DIFFERENCE_MAX)

    def test_a_difference_is_located(self):
        expected = {"a": ([2], (1.0, 2.0)), "b": ([1], (3.0,))}
        found = {"a": ([2], (1.0, 2.5)), "b": ([1], (3.25,))}
        self.assertEqual(worst_difference(found, expected), (0.5, "a[1] is 2.5, expected 2.0"))
        broken = {"a": ([2], (1.0, float("nan"))), "b": ([1], (3.0,))}
        self.assertEqual(worst_difference(broken, expected), (math.inf, "a[1] is nan, expected 2.0"))

    def agree(self, folder, name):
        needs_data(self, "fashion-mnist")
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "run")
            done = mneme("run", os.path.join(GOLDEN, folder, f"{name}.toml"), "--out", out, "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            difference, where = worst_difference(read_safetensors(os.path.join(out, "model.safetensors")),
                                                 expected_weights(folder, name))
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                summary = json.load(file)
        print(f"{name}: worst difference {difference:.3g}: {where}; accuracy {summary['final_accuracy']:.1f} %")
        self.assertLessEqual(difference, DIFFERENCE_MAX, where)
        for key, value in FOLDERS[folder].items():
            self.assertEqual(summary[key], value, key)
        accuracies = os.path.join(GOLDEN, folder, "expected_accuracy.json")
        if os.path.exists(accuracies):
            with open(accuracies, encoding="utf-8") as file:
                self.assertLessEqual(abs(summary["final_accuracy"] - json.load(file)[name]), ROW_PERCENT + 1e-6)


def add_variant(folder, name):
    setattr(Agreement, f"test_{name}_agrees_with_pytorch", lambda self: self.agree(folder, name))


for each in FOLDERS:
    for variant in variants(each):
        add_variant(each, variant)

if __name__ == "__main__":
    run_tests()
