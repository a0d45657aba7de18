"""Old names of keys, options and fields through the program: each is accepted, warns and gives the same results."""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import mneme, run_tests  # noqa: E402

SCENARIO = """[data]
name = "synthetic"
shape = [16]
classes = 4
rows = 400
[tasks]
count = 2
[clients]
count = 4
[rounds]
per_task = 2
[model]
name = "linear"
[strategy]
name = "er"
"""
OLD = SCENARIO.replace("count = 2\n", "count = 2\nstaying_share = 0.5\n") + "replayed = 4\n"
NEW = SCENARIO.replace("count = 2\n", "count = 2\nkeep_task_share = 0.5\n") + "replay_rows = 4\n"


class Deprecated(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        for name, text in (("old.toml", OLD), ("new.toml", NEW)):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def ran(self, scenario, out, *words):
        done = mneme("run", self.path(scenario), "--out", self.path(out), "--threads", "1", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file), done.stderr

    def test_a_run_with_old_keys_warns_once_and_has_the_same_digests(self):
        old, said = self.ran("old.toml", "old")
        new, _ = self.ran("new.toml", "new", "--quiet")
        for name in ("scenario_digest", "run_digest"):
            self.assertEqual(old[name], new[name])
        self.assertEqual([line for line in said.splitlines() if "deprecated" in line], [
            f"{self.path('old.toml')}:8:1: warning: tasks.staying_share is deprecated; use tasks.keep_task_share",
            f"{self.path('old.toml')}:17:1: warning: strategy.replayed is deprecated; use strategy.replay_rows"])

    def test_the_folder_of_an_older_version_is_read(self):
        new, _ = self.ran("new.toml", "new", "--quiet", "--trace")
        shutil.copytree(self.path("new"), self.path("old"))
        path = self.path("old", "scenario.toml")
        with open(path, encoding="utf-8") as file:
            resolved = file.read()
        for old, name in (("staying_share", "keep_task_share"), ("replayed", "replay_rows"), ("wire", "transfer_dtype"),
                          ("models_max", "fused_clients_max"), ("node_silence", "node_timeout"),
                          ("without_nodes = \"here\"", "no_nodes = \"local\"")):
            self.assertIn(f"\n{name}", resolved)
            resolved = resolved.replace(f"\n{name}", f"\n{old}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(resolved)
        verified = mneme("verify", self.path("old"), "--threads", "1")
        self.assertIn(new["run_digest"], verified.stdout)
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))
        compared = mneme("diff", self.path("old"), self.path("new"))
        self.assertEqual(compared.returncode, 0, compared.stdout)
        self.assertNotIn("staying_share", compared.stdout)
        for name in ("tasks.staying_share", "tasks.keep_task_share"):
            done = mneme("compare", self.path("old"), "--by", name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("0.5", done.stdout)
            listed = mneme("list", "runs", "--in", self.folder, "--where", f"{name}=0.5")
            self.assertEqual((listed.returncode, listed.stderr), (0, ""))
            self.assertEqual(len(listed.stdout.splitlines()), 3, listed.stdout)
        for condition in ("worker.without_nodes=here", "worker.no_nodes=here", "worker.no_nodes=local"):
            listed = mneme("list", "runs", "--in", self.folder, "--where", condition)
            self.assertEqual(len(listed.stdout.splitlines()), 3, listed.stdout)

    def test_an_old_name_that_another_method_uses_selects_runs_of_both(self):
        """strategy.replayed is the old name of er's replay_rows, and may be the key of a method in Python."""
        self.ran("new.toml", "new", "--quiet")
        os.mkdir(self.path("other"))
        with open(self.path("other", "scenario.toml"), "w", encoding="utf-8") as file:
            file.write('seed = 1\n[strategy]\nname = "own"\nreplayed = 4\n')
        listed = mneme("list", "runs", "--in", self.folder, "--where", "strategy.replayed=4")
        self.assertEqual((listed.returncode, len(listed.stdout.splitlines())), (0, 3), listed.stdout)

    def test_the_old_name_of_dump_round_is_accepted(self):
        for option in (["--round", "3"], ["--round=3"]):
            out = f"run{len(option)}"
            _, said = self.ran("new.toml", out, "--quiet", *option)
            self.assertEqual(said, "warning: --round is deprecated; use --dump-round\n")
            self.assertTrue(os.path.exists(self.path(out, "values", "round_3.safetensors")))
        done = mneme("verify", self.path("run1"), "--round", "1", "--quiet", "--threads", "1")
        self.assertEqual((done.returncode, done.stderr), (0, "warning: --round is deprecated; use --dump-round\n"))
        self.assertNotIn("--round ", mneme("run", "--help").stdout)

    def test_old_keys_are_accepted_by_set_and_over(self):
        setting = ["--set", "tasks.staying_share=0.25"]
        warning = "--set: warning: tasks.staying_share is deprecated; use tasks.keep_task_share\n"
        done = mneme("validate", self.path("new.toml"), *setting)
        self.assertEqual((done.returncode, done.stderr), (0, warning))
        made = mneme("new", "fedavg", "synthetic", *setting)
        self.assertEqual((made.returncode, made.stderr), (0, warning))
        self.assertIn("\nkeep_task_share = 0.25\n", made.stdout)
        made = mneme("new", "fedavg", "synthetic", "--set", "worker.without_nodes=here")
        self.assertEqual((made.returncode, made.stderr), (0, (
            "--set: warning: worker.without_nodes is deprecated; use worker.no_nodes\n"
            "--set: warning: worker.no_nodes = \"here\" is deprecated; use \"local\"\n")))
        done = mneme("validate", self.path("new.toml"), *setting, "--set", "tasks.keep_task_share=0.25")
        self.assertEqual((done.returncode, done.stderr), (
            2, "--set: error: tasks.staying_share is the old name of tasks.keep_task_share, which is set at --set, "
               "too; remove one of them\n"))
        swept = mneme("sweep", self.path("new.toml"), "--over", "strategy.replayed=2,3", "--out", self.path("runs"),
                      "--jobs", "1")
        self.assertEqual(swept.returncode, 0, swept.stderr)
        self.assertEqual(swept.stderr.count("strategy.replayed is deprecated; use strategy.replay_rows"), 1)
        self.assertTrue(swept.stderr.startswith("--over: warning: "), swept.stderr)
        self.assertIn("strategy.replayed", swept.stdout)

    def test_help_maps_old_keys_to_new_ones_and_lists_omit_old_ones(self):
        done = mneme("help", "node_silence")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("worker.node_silence is deprecated; use worker.node_timeout\n\n"
                                               "  worker.node_timeout = \"3 s\"\n"), done.stdout)
        done = mneme("help", "strategy.p")
        self.assertTrue(done.stdout.startswith(
            "strategy.p of osi-fl is deprecated; use strategy.retained_per_class\n\n"), done.stdout)
        for words in (["schema"], ["completion", "bash"], ["help", "worker"]):
            text = mneme(*words).stdout
            self.assertIn("node_timeout", text)
            self.assertNotIn("node_silence", text)


if __name__ == "__main__":
    run_tests()
