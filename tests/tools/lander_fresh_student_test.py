"""tools/research/studies/lander_fresh_student.py finds the server's results in a checkpoint."""
import collections
import os
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "research", "studies"))
sys.dont_write_bytecode = True
import lander_fresh_student as study  # noqa: E402


class Pools(unittest.TestCase):
    def test_the_pool_is_read_from_the_last_task(self):
        """Three rounds of twelve images, the first of which is the warm-up; four earlier classes."""
        with tempfile.TemporaryDirectory() as folder:
            done = mneme("run", "scenarios/smoke/lander.toml", "--quiet", "--out", folder + "/run", "--set",
                         "checkpoint.force=true")
            self.assertEqual(done.returncode, 0, done.stderr)
            pool = study.pool_of(pathlib.Path(folder) / "run")
        (image_sizes, pixels), (label_sizes, labels) = pool["images"], pool["labels"]
        self.assertEqual((image_sizes, label_sizes), ([24, 3, 8, 8], [24]))
        self.assertEqual(len(pixels), 24 * 3 * 8 * 8)
        self.assertGreater(len(set(pixels)), 100)  # images, not a constant
        self.assertEqual(collections.Counter(struct.unpack("<24q", labels)), {label: 6 for label in range(4)})

    def test_a_checkpoint_without_a_pool_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "no tensor 'images'"):
            study.tensor_of(b"images" * 4, "images", study.BYTE)


if __name__ == "__main__":
    run_tests()
