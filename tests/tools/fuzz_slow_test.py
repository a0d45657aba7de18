"""Half an hour of search with tools/fuzz, from a seed that nobody has tried and that is printed. MNEME_FUZZ_SEED names
another."""
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

SECONDS = {"scenarios": 900, "readers": 500, "faults": 400}


class Search(unittest.TestCase):
    def test_nothing_is_found(self):
        seed = os.environ.get("MNEME_FUZZ_SEED") or str(int.from_bytes(os.urandom(4), "little"))
        print(f"MNEME_FUZZ_SEED={seed}", flush=True)
        for kind, seconds in SECONDS.items():
            with self.subTest(kind):
                words = [sys.executable, os.path.join(ROOT, "tools", "fuzz", "run"), kind, "--program", PROGRAM,
                         "--seconds", str(seconds), "--seed", "1" if kind == "faults" else seed]
                done = subprocess.run(words, capture_output=True, text=True)
                print(done.stdout, flush=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    run_tests()
