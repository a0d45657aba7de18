"""A client's bits depend neither on the alignment of its operands nor on the other clients of its batch, for every
choice of kernels: runs runtime/models/placement_test.cpp with settings that make MKL, oneDNN, ATen and mneme choose
other kernels."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, run_tests  # noqa: E402

TESTS = os.path.join(os.path.dirname(PROGRAM), "tests", "test_models")
# With SSE4_2, as on unknown processors, bits of MKL's products depend on the alignment of operands.
SETTINGS = [{"MKL_CBWR": "AVX2"}, {"MKL_CBWR": "COMPATIBLE"}, {"MKL_ENABLE_INSTRUCTIONS": "AVX2"},
            {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}, {"ONEDNN_MAX_CPU_ISA": "AVX2"}, {"ATEN_CPU_CAPABILITY": "avx2"},
            {"ATEN_CPU_CAPABILITY": "default"}, {"MNEME_KERNELS": "avx2"}, {"MNEME_KERNELS": "plain"}]


class Placement(unittest.TestCase):
    def test_bits_depend_on_neither_alignment_nor_batch_under_any_setting(self):
        for setting in SETTINGS:
            with self.subTest(setting):
                done = subprocess.run([TESTS, "[placement]"], env={**os.environ, **setting}, capture_output=True,
                                      text=True)
                self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])


if __name__ == "__main__":
    run_tests()
