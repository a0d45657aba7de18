"""`mneme verify` and `mneme diff` through the program: output and exit codes."""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import mneme, run_tests  # noqa: E402

SCENARIO = os.path.join("scenarios", "smoke", "fedavg.toml")
SMALL = ["--set", "data.name=synthetic", "--set", "data.shape=[16]", "--set", "data.classes=4",
         "--set", "data.rows=400", "--set", "tasks.count=2", "--set", "rounds.per_task=2", "--set", "model.name=linear"]


class Verify(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        for name, words in {"a": [], "seed": ["--set", "seed=7"]}.items():
            done = mneme("run", SCENARIO, *SMALL, *words, "--out", cls.folder(name), "--quiet")
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def folder(cls, name):
        return os.path.join(cls.scratch.name, name)

    def summary(self, name):
        with open(os.path.join(self.folder(name), "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_a_run_is_reproduced_with_any_number_of_threads(self):
        for threads in ("1", "3"):
            done = mneme("verify", self.folder("a"), "--threads", threads, "--quiet")
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        done = mneme("verify", self.folder("a"))
        self.assertIn("same: ", done.stdout)
        self.assertIn(self.summary("a")["run_digest"], done.stdout)

    def test_a_given_digest_is_compared(self):
        digest = self.summary("a")["run_digest"]
        for text in (digest, digest[:8].upper()):
            self.assertEqual(mneme("verify", self.folder("a"), "--digest", text).returncode, 0)
        other = ("0" if digest[0] != "0" else "1") + digest[1:]
        done = mneme("verify", self.folder("a"), "--digest", other, "--quiet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("DIFFERENT", done.stdout)
        self.assertIn("expected " + other, done.stdout)
        self.assertIn("the reproduced run equals its folder, so --digest belongs to another run", done.stdout)

    def test_a_round_beyond_the_run_is_named(self):
        done = mneme("verify", self.folder("a"), "--dump-round", "5", "--quiet")
        self.assertEqual((done.returncode, done.stderr),
                         (0, "warning: --dump-round 5: the run has only 4 rounds, so no values were written\n"))
        done = mneme("verify", self.folder("a"), "--keep", self.folder("a"))
        self.assertEqual((done.returncode, done.stderr),
                         (2, f"error: --keep '{self.folder('a')}' already exists; choose a new folder\n"))

    def test_runs_that_cannot_be_verified_are_refused_with_the_reason(self):
        for words, text in ((["verify"], "no run given"), (["verify", "nowhere"], "nowhere"),
                            (["verify", self.folder("a"), "--digest", "xyz"], "hex digits"),
                            (["diff", self.folder("a")], "expected two runs"),
                            (["diff", self.folder("a"), "nowhere"], "nowhere")):
            done = mneme(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(text, done.stderr)

    def test_a_run_with_changed_records_differs_from_its_rerun(self):
        forged = self.folder("forged")
        shutil.copytree(self.folder("a"), forged)
        path = os.path.join(forged, "digests.csv")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        fields = lines[2].split(",")
        fields[3] = "0" * 32
        lines[2] = ",".join(fields)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        text = json.dumps({**self.summary("a"), "run_digest": "f" * 32})
        with open(os.path.join(forged, "summary.json"), "w", encoding="utf-8") as file:
            file.write(text)
        done = mneme("verify", forged)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the first difference is in round 2: the server's model", done.stdout)

    def test_a_run_of_an_earlier_digest_epoch_is_named(self):
        old = self.folder("old")
        shutil.copytree(self.folder("a"), old)
        summary = self.summary("a")
        self.assertEqual(summary.pop("digest_epoch"), 2)
        summary["run_digest"] = "f" * 32
        with open(os.path.join(old, "summary.json"), "w", encoding="utf-8") as file:
            json.dump(summary, file)
        done = mneme("verify", old)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the run was recorded with digest epoch 1", done.stdout)
        done = mneme("diff", self.folder("a"), old)
        self.assertIn("digest_epoch: 2 | 1", done.stdout)

    def test_diff_finds_differing_settings(self):
        done = mneme("diff", self.folder("a"), self.folder("a"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the runs are the same", done.stdout)
        done = mneme("diff", self.folder("a"), self.folder("seed"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("  seed: 1 | 7", done.stdout)
        self.assertIn("the first difference is in round 1", done.stdout)
        done = mneme("diff", self.folder("a"), self.folder("seed"), "--again", "--threads", "1")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("round 1", done.stdout)

    def test_verify_stores_the_values_of_a_round(self):
        kept = self.folder("kept")
        done = mneme("verify", self.folder("a"), "--dump-round", "2", "--keep", kept, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.getsize(os.path.join(kept, "values", "round_2.safetensors")) > 1000)
        machine = self.summary("kept")["machine"]
        for name in ("processor", "build", "compiler", "LibTorch", "C library", "libm", "zlib", "JPEG", "PNG", "XZ",
                     "ICU"):
            self.assertTrue(machine.get(name), name)


if __name__ == "__main__":
    run_tests()
