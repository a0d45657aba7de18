"""Methods with exemplars, generated images, prompts or low-rank updates: neither two nodes nor a kill changes results,
and invalid combinations are refused."""
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import NodesCase, words  # noqa: E402
from program import mneme, run_tests  # noqa: E402
from resuming import check_equal, checkpoints, is_done, start  # noqa: E402

# One method of each kind; exemplar_runs_slow_test.py runs all of them.
FEW = ("bic", "afc", "dytox", "target", "fed-dualp", "stsa-pilora")

SETTINGS = words(["checkpoint.every=1", "checkpoint.force=true"])  # not part of any digest


class ExemplarRuns(NodesCase):
    methods = FEW
    undisturbed = {}  # runs in one process by method, for comparison in both tests

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def expected(self, name):
        """The folder of an uninterrupted run."""
        if name not in self.undisturbed:
            out = os.path.join(self.folder.name, name)
            done = mneme("run", f"scenarios/smoke/{name}.toml", *SETTINGS, "--threads", "1", "--out", out, "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.undisturbed[name] = out
        return self.undisturbed[name]

    def test_two_nodes_give_the_digest_of_one_process(self):
        folder = self.out()
        accept, _ = self.cluster(1, 2)
        done = mneme("run", *(f"scenarios/smoke/{name}.toml" for name in self.methods), "--quiet", "--threads", "1",
                     "--out", folder, *accept)
        self.assertEqual(done.returncode, 0, done.stderr)
        shared = []  # one node may finish a short run before the other takes a job
        for name in self.methods:
            found = self.read(os.path.join(folder, name))
            self.assertEqual(found["run_digest"], self.read(self.expected(name))["run_digest"], name)
            self.assertEqual(len(found["nodes"]), 2, name)
            shared.append(all(node["client_rounds"] for node in found["nodes"]))
        self.assertTrue(any(shared))

    def test_a_run_killed_after_a_checkpoint_resumes_to_the_same_digest(self):
        for name in self.methods:
            with self.subTest(name):
                killed = self.out()
                process = start("run", f"scenarios/smoke/{name}.toml", *SETTINGS, "--threads", "2", "--out", killed)
                while process.poll() is None and len(checkpoints(killed)) < 2:
                    time.sleep(0.005)
                process.kill()
                process.communicate()
                self.assertEqual(process.returncode, -signal.SIGKILL)
                self.assertFalse(is_done(killed))
                done = mneme("resume", killed, "--threads", "3", "--quiet")
                self.assertEqual(done.returncode, 0, done.stderr)
                check_equal(self, killed, self.expected(name))

    def test_invalid_settings_are_refused_before_the_run(self):
        for name, setting, expected in (
                ("dytox", 'model.name="mlp"',
                 r"error: dytox: the net 'mlp.*has no token per task.*\"convit\""),
                ("dytox", "model.patch=3", r"10 x 10 pixels into patches of 3; model\.patch must divide"),
                ("dytox", "strategy.memory=9", r"strategy\.memory = 9: 9 exemplars .* cannot cover the 10 classes"),
                ("dytox", 'model.trainable="head"', r"model\.trainable.*expected \"all\""),
                ("fed-codap", 'model.name="mlp"',
                 r"error: fed-codap: the net 'mlp.*has no attention blocks to read prompts.*\"vit\""),
                ("fed-codap", 'model.weights=""', r"the net is frozen and untrained"),
                ("fed-codap", "strategy.length=5", r"strategy\.length = 5: half of a prompt precedes the keys"),
                ("fed-dualp", "strategy.blocks=[0, 1]", r"strategy\.blocks: block 0 has two prompts"),
                ("fed-dualp", "strategy.blocks=[3]", r"block 3 is outside a vit of 3 blocks"),
                ("fed-cprompt", "model.adapter=4", r"adapted by prompts or by adapters; expected model\.adapter = 0"),
                ("fed-cprompt", "training.weight_decay=0.1", r"prompts of earlier tasks would shrink"),
                ("pilora", 'model.name="mlp"',
                 r"error: pilora: the net 'mlp.*has no attention blocks for low-rank adapters.*\"vit\""),
                ("pilora", 'model.weights=""', r"the net is frozen and untrained"),
                ("pilora", "strategy.blocks=[0, 0]", r"strategy\.blocks: block 0 has two low-rank adapters"),
                ("pilora", "strategy.blocks=[3]", r"is outside a vit of 3 blocks"),
                ("stsa-pilora", 'model.name="mlp"', r"error: stsa: the net 'mlp.*has no attention"),
                ("stsa-pilora", 'strategy.adaptation="none"', r"no task adapts the net; expected"),
                ("stsa-cprompt", 'model.name="mlp"', r"error: stsa: the net 'mlp.*has no attention"),
                ("bic", "strategy.memory=10", r"strategy\.holdout_share = 0\.1: of the 1 exemplars that a class has")):
            with self.subTest(f"{name}, {setting}"):
                done = mneme("validate", f"scenarios/smoke/{name}.toml", "--set", setting)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertRegex(done.stderr, r"(?s)" + expected)


if __name__ == "__main__":
    run_tests()
