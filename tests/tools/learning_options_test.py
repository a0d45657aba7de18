"""Options of tasks and training, through the program: task sizes, domain orders, milestones, dropped batches, terms of
training losses, and numeric rows, which are not flipped."""
import csv
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from own_data import Pictures  # noqa: E402
from program import ROOT, mneme, run_tests  # noqa: E402
from array_bytes import Array, write_npz  # noqa: E402

SMALL = """seed = 1
[data]
name = "synthetic"
rows = 200
shape = [6]
classes = 10
[clients]
count = 2
[rounds]
per_task = 2
[partition]
kind = "iid"
[model]
name = "mlp"
hidden = [8]
"""
# Columns of 8 x 8 numbers; the class is the raised column. After a flip, columns 0 and 7 would be swapped.
COLUMNS = """seed = 1
[data]
name = "arrays"
file = "columns.npz"
[tasks]
count = 3
[clients]
count = 2
[rounds]
per_task = 2
[model]
name = "layers"
layers = ["conv 4 3x3 pad 1", "relu", "flatten", "linear 16", "relu", "linear classes"]
[training]
epochs = 5
batch = 8
learning_rate = 0.1
[strategy]
name = "icarl"
memory = 24
"""


class LearningOptions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_methods_that_generate_images_refuse_frozen_parameters(self):
        for method in ("lander", "mfcl", "target"):
            with self.subTest(method=method):
                done = mneme("validate", os.path.join(ROOT, "scenarios", "smoke", f"{method}.toml"),
                             "--set", 'model.frozen=["conv1.weight"]')
                self.assertEqual(done.returncode, 2)
                self.assertIn("model.frozen: the method trains whole nets", done.stderr)

    def scenario(self, text, name="a.toml"):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_of(self, path, *settings):
        """Runs a scenario. Returns the run folder and the output of the program."""
        out = os.path.join(tempfile.mkdtemp(dir=self.folder), "run")
        done = mneme("run", path, "--out", out, "--threads", "1",
                     *(word for setting in settings for word in ("--set", setting)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return out, done.stdout + done.stderr

    @staticmethod
    def summary(out):
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def error_of(self, path, *settings):
        done = mneme("validate", path, *(word for setting in settings for word in ("--set", setting)))
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_task_sizes_are_reported_if_classes_do_not_divide_evenly(self):
        path = self.scenario(SMALL + '[strategy]\nname = "fedavg"\n[tasks]\ncount = 3\n')
        out, said = self.run_of(path)
        self.assertIn("10 classes do not divide evenly, so the tasks have [4, 3, 3] classes", said)
        with open(os.path.join(out, "accuracy_per_class.csv"), encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        self.assertEqual([sum(line["after_task"] == task for line in lines) for task in "123"], [4, 7, 10])
        listed = self.scenario(SMALL + '[strategy]\nname = "fedavg"\n[tasks]\nsizes = [4, 3, 3]\n', "b.toml")
        again, said = self.run_of(listed)
        self.assertNotIn("warning", said)
        self.assertEqual(self.summary(again)["run_digest"], self.summary(out)["run_digest"])
        other, _ = self.run_of(listed, "tasks.sizes=[3,3,4]")
        self.assertNotEqual(self.summary(other)["run_digest"], self.summary(out)["run_digest"])
        self.assertIn("sizes add up to 9 of 10 classes", self.error_of(listed, "tasks.sizes=[3,3,3]"))

    def test_methods_with_parts_per_task_support_tasks_of_different_sizes(self):
        for name in ("bic", "ss-il", "dytox", "fedhaf", "fed-ewc", "osi-fl", "pilora", "fed-cprompt", "glfc", "stsa"):
            with self.subTest(name):
                done = mneme("run", f"scenarios/smoke/{name}.toml", "--set", "data.classes=5", "--set",
                             "tasks.sizes=[1,3,1]", "--set", "tasks.count=3", "--set", "tasks.first_classes=0", "--set",
                             "tasks.classes=0", "--set", "enrolment.kind=all", "--threads", "1", "--quiet",
                             "--out", os.path.join(self.folder, name))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_domains_follow_the_order_in_the_scenario(self):
        photos = Pictures(channels=1, domains=["photo", "sketch", "cartoon"])
        write_npz(os.path.join(self.folder, "photos.npz"), photos.arrays())
        path = self.scenario('[data]\nname = "arrays"\nfile = "photos.npz"\n[tasks]\nkind = "domain-incremental"\n'
                             'transform = "domains"\ncount = 3\n[clients]\ncount = 2\n[rounds]\nper_task = 1\n'
                             '[model]\nname = "mlp"\n[strategy]\nname = "fedavg"\n')
        natural, _ = self.run_of(path)
        same, _ = self.run_of(path, 'tasks.domain_order=["photo", "sketch", "cartoon"]')
        by_number, _ = self.run_of(path, "tasks.domain_order=[2, 0, 1]")
        by_name, _ = self.run_of(path, 'tasks.domain_order=["cartoon", "photo", "sketch"]')
        digests = [self.summary(out)["run_digest"] for out in (natural, same, by_number, by_name)]
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(digests[2], digests[3])
        self.assertNotEqual(digests[0], digests[2])
        self.assertIn('unknown domain "art"; expected names of "photo", "sketch", "cartoon"',
                      self.error_of(path, 'tasks.domain_order=["art", "photo", "sketch"]'))

    def test_a_milestone_takes_effect_after_its_round_and_useless_ones_are_named(self):
        path = self.scenario(SMALL + '[strategy]\nname = "fedavg"\n[tasks]\nkind = "single"\n[training]\nbatch = 0\n'
                             'learning_rate = 0.2\nschedule = "step"\nmilestones = [3]\nfactor = 1e-30\n')
        out, said = self.run_of(path, "rounds.per_task=4")
        self.assertNotIn("warning", said)
        with open(os.path.join(out, "digests.csv"), encoding="utf-8") as file:
            models = [line["model"] for line in csv.DictReader(file)]
        self.assertEqual(len(set(models[:3])), 3)
        self.assertEqual(models[3], models[2])  # no training in the fourth round
        _, said = self.run_of(path, "rounds.per_task=3")
        self.assertIn("training.milestones: 3 has no effect, because the rate changes after a milestone's round", said)
        self.assertIn("after which the rate is multiplied by factor", mneme("help", "milestones").stdout)

    def test_dropped_batches_that_leave_clients_idle_are_named(self):
        path = self.scenario(SMALL + '[strategy]\nname = "fedavg"\n[tasks]\nkind = "single"\n')
        _, said = self.run_of(path, "training.batch=64", "training.drop_last=true")
        self.assertNotIn("warning", said)
        out, said = self.run_of(path, "training.batch=128", "training.drop_last=true")
        self.assertIn("in task 1 2 of 2 clients hold fewer rows than a batch of 128", said)
        with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line["training_loss"] for line in lines], [None, None])
        self.assertEqual(lines[0]["accuracy"], lines[1]["accuracy"])
        _, said = self.run_of(path, "training.batch=0", "training.drop_last=true")
        self.assertIn("training.drop_last has no effect: only training.batch > 0", said)

    def test_loss_terms_have_the_names_in_the_documents(self):
        for name, terms in (("moon", {"cross_entropy", "contrast"}), ("scaffold", {"cross_entropy"}),
                            ("er", {"cross_entropy"})):
            with self.subTest(name):
                path = self.scenario(SMALL + f'[tasks]\ncount = 2\n[strategy]\nname = "{name}"\n')
                out, _ = self.run_of(path)
                with open(os.path.join(out, "metrics.jsonl"), encoding="utf-8") as file:
                    line = json.loads(file.readlines()[-1])
                self.assertEqual(set(line["training_loss_terms"]), terms)
                self.assertAlmostEqual(sum(line["training_loss_terms"].values()), line["training_loss"], places=9)

    def test_rows_of_numbers_in_image_shape_are_not_flipped(self):
        def rows(count):
            return [2.0 * (column == row % 6) + 0.01 * ((row * 31 + line * 7 + column * 3) % 11)
                    for row in range(count) for line in range(8) for column in range(8)]

        arrays = {}
        for split, count in (("train", 60), ("test", 30)):
            arrays[split + "_x"] = Array("float32", [count, 1, 8, 8], rows(count))
            arrays[split + "_y"] = Array("int64", [count], [row % 6 for row in range(count)])
        write_npz(os.path.join(self.folder, "columns.npz"), arrays)
        path = self.scenario(COLUMNS)
        usual, plain = self.summary(self.run_of(path)[0]), self.summary(self.run_of(path, "strategy.mirrored=false")[0])
        self.assertEqual(usual["run_digest"], plain["run_digest"])  # the digest includes virtual time
        self.assertIn("augmentation moves pixels", self.error_of(path, 'training.augment="crop-flip"'))


if __name__ == "__main__":
    run_tests()
