"""Half an hour of tools/fuzz with a new seed, which is printed. MNEME_FUZZ_SEED sets another one."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from key_tables import KeyTables  # noqa: E402
from scenario_draws import drawn_scenario  # noqa: E402

FUZZ = os.path.join(ROOT, "tools", "fuzz", "run")
SECONDS = {"scenarios": 600, "readers": 400, "faults": 300, "modules": 180}

# A fake program whose digest depends on the width of fused groups.
SPOILT = """#!/usr/bin/env python3
import os, sys
words = sys.argv[1:]
if words[0] == "run" and any(word.startswith("worker.fused_clients_max") for word in words):
    words += ["--set", "training.learning_rate=0.011"]
os.execv({program!r}, [{program!r}, *words])
"""


class Search(unittest.TestCase):
    def test_the_searches_find_no_fault(self):
        seed = os.environ.get("MNEME_FUZZ_SEED") or str(int.from_bytes(os.urandom(4), "little"))
        print(f"MNEME_FUZZ_SEED={seed}", flush=True)
        for kind, seconds in SECONDS.items():
            with self.subTest(kind):
                # A seed of `faults` is an index into its list of faults.
                words = [sys.executable, FUZZ, kind, "--program", PROGRAM,
                         "--seconds", str(seconds), "--seed", "1" if kind == "faults" else seed]
                done = subprocess.run(words, capture_output=True, text=True)
                print(done.stdout, flush=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_digest_that_depends_on_the_width_is_found_and_shrunk(self):
        folder = tempfile.mkdtemp(prefix="mneme-fuzz-test-")
        self.addCleanup(shutil.rmtree, folder)
        spoilt = os.path.join(folder, "spoilt")
        with open(spoilt, "w", encoding="utf-8") as file:
            file.write(SPOILT.format(program=PROGRAM))
        os.chmod(spoilt, 0o755)
        for seed in range(100, 130):  # not every scenario trains
            done = subprocess.run([sys.executable, FUZZ, "scenarios", "--count", "1", "--seed", str(seed), "--program",
                                   spoilt, "--into", folder], capture_output=True, text=True)
            if done.returncode != 0:
                break
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"seed {seed}: --threads", done.stdout)
        self.assertIn("run_digest", done.stdout)
        with open(os.path.join(folder, f"found-{seed}.toml"), encoding="utf-8") as file:
            small = file.read()
        self.assertIn(f"# seed {seed}: ", small)
        drawn = drawn_scenario(KeyTables(PROGRAM), seed)
        self.assertLess(small.count(" = "), len(drawn.settings))


if __name__ == "__main__":
    run_tests()
