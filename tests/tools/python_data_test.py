"""Rows, partitions and nets from Python: what the scenario says of them, and what is wrong with them."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from own_data import Numbers, Pictures  # noqa: E402
from torch import nn  # noqa: E402

IMAGES = torch.arange(40 * 64, dtype=torch.int64).reshape(40, 8, 8).mul(37).remainder(256).to(torch.uint8)
LABELS = torch.arange(40) % 4


class Block(nn.Module):
    """A residual block, as torchvision has it."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                  nn.BatchNorm2d(outputs)) if stride != 1 else None

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.down is None else self.down(x)))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1, 1)
        self.block1, self.block2 = Block(4, 4, 1), Block(4, 8, 2)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 4)

    def forward(self, x):
        x = self.block2(self.block1(torch.relu(self.conv1(x))))
        return self.fc(torch.flatten(self.pool(x), 1))


class Softmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 4)

    def forward(self, x):
        return torch.softmax(self.fc(torch.flatten(x, 1)), 1)


class Described(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def test_a_net_of_blocks_becomes_layers(self):
        layers = mneme.net(Residual(), strict=True).layers
        self.assertEqual(layers[:4], ["conv1: conv 4 3x3 pad 1", "relu", "residual [",
                                      "block1.conv1: conv 4 3x3 pad 1 no-bias"])
        self.assertIn("] shortcut [", layers)
        self.assertEqual(layers[-3:], ["global-avg-pool", "flatten", "fc: linear classes"])

    def test_what_is_no_layer_is_named(self):
        with self.assertRaisesRegex(mneme.ScenarioError, "softmax.*none of mneme's layers"):
            mneme.net(Softmax(), strict=True)
        with self.assertWarnsRegex(mneme.MnemeWarning, "unfused"):
            keys = mneme.net(Softmax()).model()
        self.assertTrue(os.path.exists(keys["module"]))
        for wrong in (nn.Sequential(nn.Conv2d(4, 4, 3, groups=2), nn.Flatten(), nn.Linear(9, 4)),
                      nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.ReLU())):
            with self.assertRaisesRegex(mneme.ScenarioError, "expected"):
                mneme.net(wrong, strict=True)

    def test_wrong_rows_are_named_before_anything_runs(self):
        for name, wrong in (("float64", dict(train_x=IMAGES.double())), ("labels of 40 rows", dict(train_y=LABELS[:3])),
                            ("row 2: label -1", dict(train_y=torch.tensor([0, 1, -1] + [0] * 37))),
                            ("whole numbers", dict(train_y=LABELS.float())), ("no array", dict(train_x="picture"))):
            with self.subTest(name), self.assertRaisesRegex(mneme.ScenarioError, name):
                mneme.Data(**{"train_x": IMAGES, "train_y": LABELS, **wrong})
        with self.assertRaisesRegex(mneme.ScenarioError, "expected both or none"):
            mneme.Data(IMAGES, LABELS, test_x=IMAGES)
        with self.assertRaisesRegex(mneme.ScenarioError, "expected mneme.Data"):
            mneme.run({"strategy": {"name": "fedavg"}}, data=[1])

    def test_rows_and_partition_run(self):
        if "arrays" not in str(mneme.schema()):
            self.skipTest("this program has no data of one's own")
        scenario = {"tasks": {"count": 2}, "clients": {"count": 4}, "rounds": {"per_task": 2},
                    "model": {"name": "linear"}, "strategy": {"name": "fedavg"}}
        owners = torch.arange(40) % 4
        data = mneme.Data(IMAGES, LABELS, IMAGES, LABELS)
        listed = mneme.run(scenario, data=data, partition=owners, out="listed")
        called = mneme.run(scenario, data=data, out="called",
                           partition=lambda labels, clients, seed: [row % clients for row in range(len(labels))])
        self.assertEqual(listed.digest, called.digest)
        numpy_rows = mneme.Data(IMAGES.numpy(), LABELS.tolist(), IMAGES.numpy(), LABELS.numpy())
        self.assertEqual(mneme.run(scenario, data=numpy_rows, partition=owners, out="numpy").digest, listed.digest)
        for wrong in (owners[:39], torch.cat([owners, owners])):
            with self.assertRaisesRegex(mneme.ScenarioError, f"{len(wrong)} clients of 40 training rows"):
                mneme.run(scenario, data=data, partition=wrong, out="never")
        with self.assertRaises(mneme.ScenarioError):
            mneme.run(scenario, data=mneme.Data(IMAGES, LABELS + 10**6, IMAGES, LABELS), out="never")

    def test_a_net_of_torch_scores_as_in_torch(self):
        if "arrays" not in str(mneme.schema()) or "layers" not in str(mneme.schema()):
            self.skipTest("this program has no data and nets of one's own")
        torch.manual_seed(0)
        module = Residual()
        scenario = {"data": {"normalize": "unit"}, "tasks": {"kind": "single"}, "clients": {"count": 2},
                    "rounds": {"per_task": 1}, "training": {"epochs": 0}, "strategy": {"name": "fedavg"},
                    "model": mneme.net(module, strict=True).model()}
        run = mneme.run(scenario, data=mneme.Data(IMAGES, LABELS, IMAGES, LABELS), out="run")
        for name, tensor in run.model().items():
            self.assertTrue(torch.equal(tensor, module.state_dict()[name]), name)
        with torch.no_grad():
            scores = module.eval()(IMAGES[:, None].float() / 255)
        self.assertAlmostEqual(run.records[-1]["loss"], float(nn.functional.cross_entropy(scores, LABELS)), places=5)


class Doors(unittest.TestCase):
    """The same rows from files and from Hugging Face's `datasets` have one digest."""

    def setUp(self):
        try:
            import datasets
        except ImportError as missing:
            self.skipTest(f"{missing.name} is not installed")
        self.datasets = datasets
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)

    def digest(self, model, data=None, **section):
        scenario = {"seed": 3, "tasks": {"count": 2}, "partition": {"kind": "dirichlet", "beta": 0.5},
                    "clients": {"count": 4}, "rounds": {"per_task": 2, "cohort": 3}, "model": {"name": model},
                    "training": {"batch": 4}, "strategy": {"name": "fedavg"}}
        if section:
            scenario["data"] = section
        return mneme.run(scenario, data=data, out=tempfile.mkdtemp(dir=".") + "/run").digest

    def pictures(self, split, channels=3):
        """A split with a column of pictures, as Hugging Face has them."""
        from PIL import Image
        rows = Pictures(channels=channels).rows[split]
        pixels = [torch.frombuffer(bytearray(row), dtype=torch.uint8).reshape(channels, 8, 8) for row, _, _ in rows]
        images = [Image.fromarray((p.permute(1, 2, 0) if channels == 3 else p[0]).contiguous().numpy()) for p in pixels]
        features = self.datasets.Features({"image": self.datasets.Image(),
                                           "label": self.datasets.ClassLabel(names=Pictures.NAMES)})
        return self.datasets.Dataset.from_dict({"image": images, "label": [label for _, label, _ in rows]}, features)

    def table(self, split, **labels):
        """A split with a column for each number."""
        rows = Numbers().rows[split]
        columns = {f"n{i}": [float(values[i]) for values, _ in rows] for i in range(Numbers.WIDTH)}
        return self.datasets.Dataset.from_dict({**columns, "row": [values for values, _ in rows],
                                                "label": [Numbers.NAMES[label] for _, label in rows], **labels})

    def test_pictures(self):
        for channels in (3, 1):
            pictures, folder = Pictures(channels=channels), f"p{channels}"
            pictures.write_folder(folder)
            arrays = {name: torch.frombuffer(bytearray(array.values), dtype=torch.uint8).reshape(array.shape)
                      if array.dtype == "uint8" else torch.tensor(array.values)
                      for name, array in pictures.arrays().items() if name != "class_names"}
            theirs = [self.pictures(split, channels) for split in ("train", "test")]
            digests = {self.digest("mlp", name="folder", root=folder),
                       self.digest("mlp", mneme.Data(**arrays, class_names=Pictures.NAMES)),
                       self.digest("mlp", mneme.Data.from_datasets(*theirs))}
            self.assertEqual(len(digests), 1)

    def test_tables(self):
        Numbers().write_csv("t.csv")
        theirs = [self.table(split) for split in ("train", "test")]
        names = [f"n{i}" for i in range(Numbers.WIDTH)]
        by_name = mneme.Data.from_datasets(*theirs, rows=names)
        self.assertEqual(by_name.class_names, Numbers.NAMES)
        digests = {self.digest("mlp", name="csv", file="t.csv"), self.digest("mlp", by_name),
                   self.digest("mlp", mneme.Data.from_datasets(*theirs, rows="row"))}
        self.assertEqual(len(digests), 1)

    def test_what_is_wrong_with_a_column_is_said(self):
        train = self.table("train")
        ragged = self.datasets.Dataset.from_dict({"row": [[1.0, 2.0], [1.0]], "label": [0, 1]})
        hidden = self.table("test", label=[-1] * 16)
        odd = self.table("test", label=["eel"] * 16)
        for expected, splits, options in (("no such column; expected one of n0", (train,), {}),
                                          ("row 1 is \\[1\\] and row 0 is \\[2\\]", (ragged,), {"rows": "row"}),
                                          ("row 0: label -1", (train.remove_columns("label").add_column(
                                              "label", [0] * 40), hidden), {"rows": "row"}),
                                          ("row 0 of test: 'eel' is a class that no training row has", (train, odd),
                                           {"rows": "row"})):
            with self.subTest(expected), self.assertRaisesRegex(mneme.ScenarioError, expected):
                mneme.Data.from_datasets(*splits, **options)


class WrongValues(unittest.TestCase):
    """What only the values show is found before anything is written."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)

    def refused(self, expected, *arrays):
        scenario = {"tasks": {"count": 2}, "clients": {"count": 4}, "model": {"name": "linear"},
                    "strategy": {"name": "fedavg"}}
        with self.assertRaisesRegex(mneme.ScenarioError, expected):
            mneme.run(scenario, data=mneme.Data(*arrays), out="never")
        self.assertFalse(os.path.exists("never"))

    def test_numbers_that_are_none_and_labels_beyond_the_classes(self):
        numbers = torch.arange(80.0).reshape(40, 2)
        for wrong in (float("nan"), float("inf")):
            spoilt = numbers.clone()
            spoilt[17, 1] = wrong
            self.refused("train_x.*row 17", spoilt, LABELS, numbers, LABELS)
        beyond = LABELS.clone()
        beyond[5] = 10**6
        self.refused("label.*1000000", numbers, beyond, numbers, LABELS)
        self.refused("class|label", numbers, LABELS, numbers, LABELS + 1)


if __name__ == "__main__":
    python_package.run_tests()
