"""Rows, partitions and nets that are passed from Python: the resulting scenario, and errors."""
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from own_data import Numbers, Pictures  # noqa: E402
from torch import nn  # noqa: E402

IMAGES = torch.arange(40 * 64, dtype=torch.int64).reshape(40, 8, 8).mul(37).remainder(256).to(torch.uint8)
LABELS = torch.arange(40) % 4


class Block(nn.Module):
    """A residual block as in torchvision."""

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

    def test_a_net_of_blocks_is_converted_to_layers(self):
        layers = mneme.net(Residual(), strict=True).layers
        self.assertEqual(layers[:4], ["conv1: conv 4 3x3 pad 1", "relu", "residual [",
                                      "block1.conv1: conv 4 3x3 pad 1 no-bias"])
        self.assertIn("] shortcut [", layers)
        self.assertEqual(layers[-3:], ["global-avg-pool", "flatten", "fc: linear classes"])

    def test_unsupported_layers_are_named(self):
        with self.assertRaisesRegex(mneme.ScenarioError, "softmax.*none of mneme's layers"):
            mneme.net(Softmax(), strict=True)
        with self.assertWarnsRegex(mneme.MnemeWarning, "unfused"):
            keys = mneme.net(Softmax(), example=torch.zeros(2, 1, 8, 8)).model()
        self.assertTrue(os.path.exists(keys["module"]))
        for wrong in (nn.Sequential(nn.Conv2d(4, 4, (3, 1)), nn.Flatten(), nn.Linear(192, 4)),
                      nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.ReLU())):
            with self.assertRaisesRegex(mneme.ScenarioError, "expected"):
                mneme.net(wrong, strict=True)

    def test_invalid_rows_are_named_before_the_run(self):
        for name, wrong in (("torch.int64 of 3 axes", dict(train_x=IMAGES.long())),
                            ("labels of 40 rows", dict(train_y=LABELS[:3])),
                            ("row 2: label -1", dict(train_y=torch.tensor([0, 1, -1] + [0] * 37))),
                            ("whole numbers", dict(train_y=LABELS.float())),
                            ("not an array of numbers", dict(train_x="picture"))):
            with self.subTest(name), self.assertRaisesRegex(mneme.ScenarioError, name):
                mneme.Data(**{"train_x": IMAGES, "train_y": LABELS, **wrong})
        masked = numpy.ma.masked_array(numpy.zeros((4, 2), numpy.float32), mask=numpy.eye(4, 2))
        with self.assertRaisesRegex(mneme.ScenarioError, "its mask would be lost"):
            mneme.Data(masked, [0, 1, 0, 1])
        with self.assertRaisesRegex(mneme.ScenarioError, "expected both or none"):
            mneme.Data(IMAGES, LABELS, test_x=IMAGES)
        with self.assertRaisesRegex(mneme.ScenarioError, "expected mneme.Data"):
            mneme.run({"strategy": {"name": "fedavg"}}, data=[1])

    def test_a_run_uses_the_given_rows_and_partition(self):
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

    def test_a_torch_net_has_torchs_scores(self):
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
    """Equal rows from files and from Hugging Face `datasets` give one digest."""

    def setUp(self):
        try:
            import datasets
        except ImportError as missing:
            self.skipTest(f"{missing.name} is not installed")
        self.datasets = datasets
        scratch = tempfile.TemporaryDirectory()
        datasets.disable_progress_bars()
        datasets.config.HF_DATASETS_CACHE = os.path.join(scratch.name, "cache")
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
        """A split with an image column, as in Hugging Face `datasets`."""
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

    def test_images_of_datasets_become_data(self):
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

    def test_tables_become_data(self):
        Numbers().write_csv("t.csv")
        theirs = [self.table(split) for split in ("train", "test")]
        names = [f"n{i}" for i in range(Numbers.WIDTH)]
        by_name = mneme.Data.from_datasets(*theirs, rows=names)
        self.assertEqual(by_name.class_names, Numbers.NAMES)
        digests = {self.digest("mlp", name="csv", file="t.csv"), self.digest("mlp", by_name),
                   self.digest("mlp", mneme.Data.from_datasets(*theirs, rows="row"))}
        self.assertEqual(len(digests), 1)

    def test_a_dict_of_splits_and_a_domain_column_become_data(self):
        counts = {split: len(rows) for split, rows in Numbers().rows.items()}
        table = {split: self.table(split, domain=[["photo", "sketch"][row % 2] for row in range(count)])
                 for split, count in counts.items()}
        splits = self.datasets.DatasetDict(table)
        pair = mneme.Data.from_datasets(table["train"], table["test"], rows="row", domains="domain")
        both = mneme.Data.from_datasets(splits, rows="row", domains="domain")
        self.assertEqual(pair.keys(), both.keys())
        self.assertEqual(both.names["domain_names"], ["photo", "sketch"])
        self.assertEqual(both.arrays["train_domain"].tolist(), [row % 2 for row in range(len(table["train"]))])
        held = self.datasets.DatasetDict(train=table["train"], validation=table["test"])
        self.assertEqual(mneme.Data.from_datasets(held, rows="row", domains="domain").keys(), pair.keys())
        three = self.datasets.DatasetDict(**table, validation=table["test"])
        line = r'expected train and one for test, as in mneme.Data.from_datasets\(splits\["train"\], splits\["test"\]\)'
        for wrong, text in ((three, line), (table["train"].to_iterable_dataset(), "has no length")):
            with self.subTest(text), self.assertRaisesRegex(mneme.ScenarioError, text):
                mneme.Data.from_datasets(wrong, rows="row")

    def test_files_of_the_hub_become_data(self):
        os.mkdir("hub")
        splits = {split: self.table(split) for split in ("train", "test")}
        for split, rows in splits.items():
            rows.to_parquet(f"hub/{split}.parquet")
        expected = mneme.Data.from_datasets(*splits.values(), rows="row").keys()
        self.assertEqual(mneme.Data.from_hub("hub", rows="row").keys(), expected)
        self.assertEqual(mneme.Data.from_parquet("hub/train.parquet", "hub/test.parquet", rows="row").keys(), expected)
        one = mneme.Data.from_hub("hub", "train[:4]", rows="row", test_share=0.5)
        self.assertEqual((len(one.arrays["train_x"]), one.keys()["data.test_share"]), (4, 0.5))
        for call, text in ((lambda: mneme.Data.from_hub("hub", "dev", rows="row"), "'hub' cannot be loaded"),
                           (lambda: mneme.Data.from_hub("hub", ("train", "test", "dev")), "3 names; expected"),
                           (lambda: mneme.Data.from_parquet("hub/none.parquet"), "cannot be read as Parquet"),
                           (lambda: mneme.Data.from_parquet("hub/train.parquet", labels="class"),
                            "no such column; expected one of n0, ")):
            with self.subTest(text), self.assertRaisesRegex(mneme.ScenarioError, text):
                call()

    def test_packages_that_are_missing_are_named(self):
        for module, call in (("datasets", lambda: mneme.Data.from_hub("hub")),
                             ("pyarrow", lambda: mneme.Data.from_parquet("t.parquet"))):
            with self.subTest(module), unittest.mock.patch.dict(sys.modules, {module: None}), \
                    self.assertRaisesRegex(mneme.ScenarioError, f"install it: pip install {module}"):
                call()

    def test_columns_of_parquet_files_become_rows(self):
        import pyarrow
        from pyarrow import parquet
        table = {"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "kind": ["cat", "dog", "cat"], "place": [0, 1, 1]}
        parquet.write_table(pyarrow.table(table), "t.parquet")
        data = mneme.Data.from_parquet("t.parquet", labels="kind", domains="place", test_share=0.5)
        self.assertEqual(data.arrays["train_x"].tolist(), [[1.0, 0.5], [2.0, 1.5], [3.0, 2.5]])
        self.assertEqual((data.class_names, data.arrays["train_y"].tolist()), (["cat", "dog"], [0, 1, 0]))
        self.assertEqual(data.arrays["train_domain"].tolist(), [0, 1, 1])
        parquet.write_table(pyarrow.table({"x": [1, None], "label": [0, 1]}), "empty.parquet")
        with self.assertRaisesRegex(mneme.ScenarioError, "row 1 is empty"):
            mneme.Data.from_parquet("empty.parquet", test_share=0.5)
        self.pictures("train").to_parquet("p.parquet")
        shown = mneme.Data.from_parquet("p.parquet", rows="image", test_share=0.5)
        self.assertTrue(torch.equal(shown.arrays["train_x"],
                                    mneme.Data.from_datasets(self.pictures("train"), test_share=0.5).arrays["train_x"]))

    def test_pictures_of_several_sizes_are_resized_as_in_a_folder(self):
        from PIL import Image
        sizes, classes = [(8, 8), (12, 9), (7, 16), (8, 11)], ["cat", "dog"]
        pictures = [Image.frombytes("RGB", size, bytes((7 * i + 13 * n) % 256 for i in range(3 * size[0] * size[1])))
                    for n, size in enumerate(sizes * 2)]
        labels = [n % 2 for n in range(8)]
        for part in ("train", "test"):
            for n, picture in enumerate(pictures):
                os.makedirs(f"several/{part}/{classes[labels[n]]}", exist_ok=True)
                picture.save(f"several/{part}/{classes[labels[n]]}/{n}.png")
        order = sorted(range(8), key=lambda n: (labels[n], n))
        rows = [pictures[n] for n in order], [classes[labels[n]] for n in order]
        self.assertEqual(self.digest("mlp", name="folder", root="several", side=8),
                         self.digest("mlp", mneme.Data(*rows, *rows, side=8)))
        with self.assertRaisesRegex(mneme.ScenarioError, "side=64 resizes them"):
            mneme.Data(*rows, test_share=0.5)
        with self.assertRaisesRegex(mneme.ScenarioError, "side: resizes Pillow images, and the rows are arrays"):
            mneme.Data(IMAGES, LABELS, test_share=0.5, side=4)

    def test_errors_of_a_column_are_explained(self):
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


class Forms(unittest.TestCase):
    """Rows and labels in the types of other libraries give the same run, or an error."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)
        self.table = (torch.arange(160).reshape(40, 4).mul(37).remainder(101) / 8.0)  # exact in float32

    def digest(self, data, **sections):
        scenario = {"seed": 3, "tasks": {"count": 2}, "clients": {"count": 4}, "rounds": {"per_task": 2, "cohort": 3},
                    "model": {"name": "mlp", "hidden": [8]}, "training": {"batch": 4}, "strategy": {"name": "fedavg"}}
        return mneme.run({**scenario, **sections}, data=data, out=tempfile.mkdtemp(dir=".") + "/run").digest

    def same(self, forms):
        digests = {name: self.digest(form) for name, form in forms.items()}
        self.assertEqual(len(set(digests.values())), 1, digests)

    def test_numbers_of_other_types_are_converted(self):
        x, y = self.table, LABELS
        big = x.numpy().astype(">f8")
        self.same({"float32": mneme.Data(x, y, x, y), "float64": mneme.Data(x.double(), y, x.double(), y),
                   "float16": mneme.Data(x.half(), y, x.half(), y), "numpy": mneme.Data(x.double().numpy(), y, big, y),
                   "strides": mneme.Data(x.flip(0).numpy()[::-1], y, x, y), "lists": mneme.Data(x.tolist(), y, x, y),
                   "rows": mneme.Data(list(x), y, list(x.numpy()), y)})
        for wrong, text in ((x.double() * 1e300, "row 0: .* is beyond float32"),
                            (x > 3, "torch.bool; expected uint8 images"),
                            ([[1, 2], [3]], "not an array of numbers"), (x[:, 0], "an array of 1 axes")):
            with self.subTest(text), self.assertRaisesRegex(mneme.ScenarioError, text):
                mneme.Data(wrong, y)

    def test_labels_of_other_types_are_converted(self):
        import numpy
        x, y = self.table, LABELS
        self.same({"int64": mneme.Data(x, y, x, y), "list": mneme.Data(x, y.tolist(), x, y.tolist()),
                   "tensors": mneme.Data(x, list(y), x, list(y.numpy())), "uint8": mneme.Data(x, y.byte(), x, y.byte()),
                   "uint64": mneme.Data(x, y.numpy().astype("uint64"), x, y.numpy().astype(">u2"))})
        names = ["ant", "bee", "cat", "dog"]
        texts = [names[label] for label in y]
        self.same({"texts": mneme.Data(x, texts, x, texts), "numbers": mneme.Data(x, y, x, y, class_names=names),
                   "numpy": mneme.Data(x, numpy.array(texts), x, numpy.array(texts, dtype=object))})
        reordered = mneme.Data(x, texts, x, texts, class_names=names[::-1])
        self.assertEqual(reordered.arrays["train_y"].tolist(), (3 - y).tolist())
        for wrong, text in ((["ant", 1] * 20, "row 1 is 1 among texts"), (y.float(), "expected whole numbers"),
                            (torch.eye(4).long()[y], "of 2 axes"),
                            ([2**63 + 5] * 40, "not an array of numbers|beyond int64"),
                            (numpy.array([2**63 + 5] * 40, dtype="uint64"), "9223372036854775813 is beyond int64")):
            with self.subTest(text), self.assertRaisesRegex(mneme.ScenarioError, text):
                mneme.Data(x, wrong)
        for test_y, text in ((["eel"] * 40, "row 0 of test: 'eel' is a class that no training row has"),
                             (y, "numbers, while the other part has texts")):
            with self.subTest(text), self.assertRaisesRegex(mneme.ScenarioError, text):
                mneme.Data(x, texts, x, test_y)

    def test_tokens_of_other_types_are_converted(self):
        rows = torch.arange(160).reshape(40, 4) % 7
        data = mneme.Data(rows.int(), LABELS, rows.tolist(), LABELS)
        self.assertEqual({data.arrays[name].dtype for name in ("train_x", "test_x")}, {torch.int64})

    def test_channels_last_images_are_converted(self):
        rows = torch.randint(0, 256, (40, 3, 6, 5), dtype=torch.uint8)
        last = rows.permute(0, 2, 3, 1)
        self.same({"first": mneme.Data(rows, LABELS, rows, LABELS),
                   "last": mneme.Data(last, LABELS, last.numpy(), LABELS)})
        narrow = rows[..., :3].contiguous()
        with self.assertRaisesRegex(mneme.ScenarioError, "the channel axis of shape .* is ambiguous"):
            self.digest(mneme.Data(narrow, LABELS, narrow, LABELS))
        moved = narrow.permute(0, 2, 3, 1)
        self.same({"first": mneme.Data(narrow, LABELS, narrow, LABELS, layout="channels-first"),
                   "last": mneme.Data(moved, LABELS, moved, LABELS, layout="channels-last")})

    def test_domains_are_numbered(self):
        places = [["photo", "sketch"][row // 20] for row in range(40)]
        numbers = torch.arange(40) // 20
        tasks = {"kind": "domain-incremental", "transform": "domains", "count": 2}
        x, y = self.table, LABELS
        digests = {self.digest(mneme.Data(x, y, x, y, train_domain=domain, test_domain=domain), tasks=tasks)
                   for domain in (places, numbers, numbers.tolist())}
        self.assertEqual(len(digests), 1)
        with self.assertRaisesRegex(mneme.ScenarioError, "test_domain: missing"):
            mneme.Data(x, y, x, y, train_domain=places)
        with self.assertRaisesRegex(mneme.ScenarioError, "'oil' is a domain that no training row has"):
            mneme.Data(x, y, x, y, train_domain=places, test_domain=["oil"] * 40)

    def test_torch_datasets_become_data(self):
        from torch.utils.data import ConcatDataset, IterableDataset, Subset, TensorDataset
        x, y = self.table, LABELS
        rows = TensorDataset(x, y)
        halves = ConcatDataset([Subset(rows, range(20)), Subset(rows, range(20, 40))])
        self.same({"arrays": mneme.Data(x, y, x, y), "tensors": mneme.Data.from_datasets(rows, rows),
                   "parts": mneme.Data.from_datasets(halves, rows), "at once": (rows, rows)})

        class Stream(IterableDataset):
            def __iter__(self):
                return iter([(x[0], 0)])

        for wrong, text in ((TensorDataset(x, y, y), "item 0 of .*TensorDataset is 3 values; expected .row, label."),
                            (Stream(), "has no length"), (TensorDataset(x), "1 values"), ([1], "expected mneme.Data")):
            with self.subTest(text), self.assertRaisesRegex(mneme.ScenarioError, text):
                self.digest(wrong)
        with self.assertRaisesRegex(mneme.ScenarioError, "TensorDataset is not an array; expected .*from_datasets"):
            mneme.Data(rows, rows)

    def test_pillow_images_become_data(self):
        try:
            from PIL import Image
        except ImportError as missing:
            self.skipTest(f"{missing.name} is not installed")

        colored = torch.stack([IMAGES, 255 - IMAGES, IMAGES], 1)

        class Folder(torch.utils.data.Dataset):
            """Like torchvision's ImageFolder: (image, class number)."""
            classes = ["ant", "bee", "cat", "dog"]

            def __init__(self, modes):
                self.modes = modes

            def __len__(self):
                return 40

            def __getitem__(self, row):
                mode = self.modes[row % len(self.modes)]
                pixels = IMAGES[row] if mode == "L" else colored[row].permute(1, 2, 0)
                return Image.fromarray(pixels.numpy()).convert(mode), int(LABELS[row])

        gray = Folder(["L"])
        self.same({"arrays": mneme.Data(IMAGES, LABELS, IMAGES, LABELS, class_names=Folder.classes),
                   "dataset": mneme.Data.from_datasets(gray, gray),
                   "lists": mneme.Data([row for row, _ in gray], LABELS, IMAGES, LABELS, class_names=Folder.classes)})
        self.same({"arrays": mneme.Data(colored, LABELS, colored, LABELS, class_names=Folder.classes),
                   "dataset": mneme.Data.from_datasets(Folder(["RGB"]), Folder(["RGBA"]))})
        mixed = mneme.Data.from_datasets(Folder(["RGB"]), gray)
        self.assertTrue(torch.equal(mixed.arrays["test_x"], IMAGES[:, None].expand(-1, 3, -1, -1)))
        with self.assertRaisesRegex(mneme.ScenarioError, "row 0 is an image of mode 'F'; expected 8 bits"):
            mneme.Data.from_datasets(Folder(["F"]))


class WrongValues(unittest.TestCase):
    """Errors that depend on values are found before anything is written."""

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

    def test_nan_values_and_labels_out_of_range_are_refused(self):
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
