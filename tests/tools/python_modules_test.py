"""Torch nets of many kinds, as layers of mneme or as modules in a file: trained nets have the scores of torch."""
import os
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

CLASSES, TOKENS, LENGTH, FEATURES = 4, 30, 12, 10
torch.set_num_threads(1)


class Average(nn.Module):
    """ELU and an average pool."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 8, 3), nn.Linear(200, CLASSES)

    def forward(self, x):
        return self.fc(functional.avg_pool2d(functional.elu(self.conv(x)), 2).flatten(1))


class Depthwise(nn.Module):
    """An inverted residual block as in MobileNet v2 (Sandler et al. 2018), without and with batch norm."""

    def __init__(self, norm):
        super().__init__()
        layer = nn.BatchNorm2d if norm else lambda width: nn.GroupNorm(1, width)
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.block = nn.Sequential(nn.Conv2d(8, 24, 1, bias=False), layer(24), nn.ReLU6(),
                                   nn.Conv2d(24, 24, 3, padding=1, groups=24, bias=False), layer(24), nn.ReLU6(),
                                   nn.Conv2d(24, 8, 1, bias=False), layer(8))
        self.drop, self.fc = nn.Dropout(0.2 if norm else 0.0), nn.Linear(8, CLASSES)

    def forward(self, x):
        x = functional.hardswish(self.stem(x))
        return self.fc(self.drop((x + self.block(x)).mean((2, 3))))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(TOKENS, 8), kind(8, 16, batch_first=True)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.fc(self.rnn(self.embedding(x))[0].mean(1))


class Stateful(nn.Module):
    """A bidirectional two-layer LSTM with an explicit zero initial state."""

    def __init__(self, inputs, width, batch_first):
        super().__init__()
        self.lstm = nn.LSTM(inputs, width // 2, num_layers=2, bidirectional=True, batch_first=batch_first)

    def forward(self, x):
        zeros = torch.zeros(4, x.size(0), self.lstm.hidden_size, dtype=x.dtype)
        y, (h, _) = self.lstm(x, (zeros, zeros))
        return y, h


class Text(nn.Module):
    """Embedding, positions, torch's encoder, and the mean over tokens."""

    def __init__(self, norm_first):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 16)
        self.places = nn.Parameter(torch.randn(1, LENGTH, 16) * 0.02)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.fc(self.encoder(self.embedding(x) + self.places).mean(1))


class Residual(nn.Module):
    """Residual token blocks with RMSNorm, and the mean over tokens."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 16)
        self.norms = nn.ModuleList(nn.RMSNorm(16) for _ in range(2))
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.GELU("tanh"), nn.Linear(32, 16))
                                    for _ in range(2))
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.embedding(x)
        for norm, block in zip(self.norms, self.blocks):
            x = x + block(norm(x))
        return self.fc(x.mean(1))


def table_net():
    return nn.Sequential(nn.Linear(FEATURES, 24), nn.Mish(), nn.Linear(24, 24), nn.Softplus(), nn.Linear(24, CLASSES))


def images():
    draw = torch.Generator().manual_seed(1)
    means = torch.rand(CLASSES, 3, 12, 12, generator=draw) * 130 + 60
    labels = torch.arange(240) % CLASSES
    rows = (means[labels] + 20 * torch.randn(240, 3, 12, 12, generator=draw)).clamp(0, 255).to(torch.uint8)
    return rows, labels, lambda part: part.float() / 255 * 2 - 1  # normalized by mean 0.5 and deviation 0.5


def tokens():
    draw = torch.Generator().manual_seed(2)
    labels = torch.arange(240) % CLASSES
    rows = torch.randint(0, TOKENS, (240, LENGTH), generator=draw)
    words = labels[:, None] * 3 + torch.randint(0, 3, (240, LENGTH), generator=draw)  # three words of each class
    return torch.where(torch.rand(240, LENGTH, generator=draw) < 0.6, words, rows), labels, lambda part: part


def table():
    draw = torch.Generator().manual_seed(3)
    labels = torch.arange(240) % CLASSES
    means = 2 * torch.randn(CLASSES, FEATURES, generator=draw)
    return means[labels] + torch.randn(240, FEATURES, generator=draw), labels, lambda part: part


def split(rows, labels):
    return mneme.Data(rows[:180], labels[:180], rows[180:], labels[180:])


def scenario(model, **sections):
    chosen = {"tasks": {"kind": "single"}, "clients": {"count": 6}, "partition": {"kind": "iid"},
              "rounds": {"per_task": 4, "cohort": 3}, "training": {"batch": 10, "learning_rate": 0.1, "epochs": 2},
              "strategy": {"name": "fedavg"}, "model": model}
    return {**chosen, **sections}


class Trained(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)
        torch.manual_seed(0)

    def scores_as_in_torch(self, module, data, least=60.0, unmatched="", **sections):
        """Trains the module, loads the trained weights into it, and compares accuracy and loss on the test rows.
        unmatched: pattern of the warning that names an operator without a layer; "": the net becomes layers."""
        rows, labels, normalised = data()
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            net = mneme.net(module, example=normalised(rows[:2]))
        texts = [str(each.message) for each in caught if issubclass(each.category, mneme.MnemeWarning)]
        self.assertEqual(len(texts), int(bool(unmatched)), texts)
        self.assertEqual(net.layers is None, bool(unmatched))
        for text in texts:
            self.assertRegex(text, unmatched)
        run = mneme.run(scenario(net.model(), **sections), data=split(rows, labels),
                        out=tempfile.mkdtemp(dir=".") + "/run")
        after = net.state_dict(run)
        missing = module.load_state_dict(after, strict=False)
        self.assertEqual([name for name in missing.missing_keys if not name.endswith("num_batches_tracked")], [])
        self.assertEqual(missing.unexpected_keys, [])
        for name, parameter in module.named_parameters():
            self.assertEqual(torch.equal(parameter, before[name]), not parameter.requires_grad, name)
        with torch.no_grad():
            scores = module.eval()(normalised(rows[180:]))
        right = (scores.argmax(1) == labels[180:]).float().mean() * 100
        self.assertAlmostEqual(run.summary["final_accuracy"], float(right), places=4)
        self.assertAlmostEqual(run.records[-1]["loss"], float(functional.cross_entropy(scores, labels[180:])), places=4)
        self.assertGreater(float(right), least)
        return run

    def test_a_net_with_elu_and_an_average_pool(self):
        self.scores_as_in_torch(Average(), images)

    def test_a_depthwise_block(self):
        training = {"batch": 10, "optimizer": "adam", "learning_rate": 0.02, "epochs": 4}
        self.scores_as_in_torch(Depthwise(norm=False), images, training=training)
        self.scores_as_in_torch(Depthwise(norm=True), images, least=0.0, training=training)

    def test_recurrent_token_nets(self):
        for kind, unmatched in ((nn.LSTM, ""), (nn.GRU, "gru.input .*none"), (Stateful, "lstm.input .*one direction")):
            with self.subTest(kind.__name__):
                self.scores_as_in_torch(Recurrent(kind), tokens, least=40.0, unmatched=unmatched,
                                        training={"batch": 10, "optimizer": "adam", "learning_rate": 0.01, "epochs": 4})

    def test_a_token_transformer(self):
        for norm_first in (False, True):
            with self.subTest(norm_first):
                self.scores_as_in_torch(Text(norm_first), tokens)

    def test_residual_blocks_with_a_token_mean(self):
        self.scores_as_in_torch(Residual(), tokens)

    def test_a_net_for_tables(self):
        self.scores_as_in_torch(table_net(), table)

    def test_parameters_without_a_gradient_keep_their_values(self):
        for module, data, frozen in ((Average(), images, ["conv.weight"]),
                                     (Text(True), tokens, ["embedding.weight", "places"]),
                                     (table_net(), table, ["0.bias", "4.weight"])):
            for name in frozen:
                module.get_parameter(name).requires_grad_(False)
            for training in ({"batch": 10, "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01},
                             {"batch": 10, "learning_rate": 0.01, "optimizer": "adam", "weight_decay": 0.01}):
                with self.subTest(frozen, **training):
                    self.scores_as_in_torch(module, data, least=30.0, training=training)

    def test_a_module_without_trainable_parameters_is_refused(self):
        module = Average().requires_grad_(False)
        rows, labels, normalised = images()
        data = split(rows, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            keys = mneme.net(module, example=normalised(rows[:2])).model()
        with self.assertRaisesRegex(mneme.ScenarioError, "nothing can be trained; expected .*training.epochs = 0"):
            mneme.run(scenario(keys), data=data, out="never")
        run = mneme.run(scenario(keys, training={"epochs": 0}), data=data, out="evaluated")
        self.assertTrue(torch.equal(run.model()["conv.weight"], module.conv.weight))

    def test_modules_that_fit_no_run_are_refused_with_the_reason(self):
        rows, labels, _ = tokens()
        data = split(rows, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            five, small = Residual(), Residual()  # layers
            five_unfused, small_unfused = Recurrent(nn.GRU), Recurrent(nn.GRU)  # files
            five.fc = five_unfused.fc = nn.Linear(16, 5)
            small.embedding, small_unfused.embedding = nn.Embedding(5, 16), nn.Embedding(5, 8)
            few, pictures = torch.zeros(2, LENGTH, dtype=torch.int64), torch.zeros(2, 3, 12, 12)
            for module, example, is_fused, text in (
                    (five, few, True, r"'fc.weight' has shape \[5, 16\], but the model needs \[4, 16\]"),
                    (five_unfused, few, False, "forward returns 5 numbers for a row, but the run has 4 classes"),
                    (small, few, True, '"embedding: embedding 16 tokens 5": the data have 30 distinct tokens'),
                    (small_unfused, few, False,
                     r"shape \[16, 12\] and type int64 \(tokens below 30\): .*index out of range"),
                    (Average(), pictures, True, '"layers" reads images, and the data are rows of tokens'),
                    (nn.Sequential(Average(), nn.Softmax(1)), pictures, False, "forward failed on rows of shape")):
                net = mneme.net(module, example=example)
                self.assertEqual(net.layers is not None, is_fused)
                with self.subTest(text), self.assertRaisesRegex(mneme.ScenarioError, text):
                    mneme.run(scenario(net.model()), data=data, out="never")
            with self.assertRaisesRegex(mneme.ScenarioError, "weights = False: the module becomes a file"):
                mneme.net(five_unfused, weights=False, example=few)
        self.assertNotIn("seed_weights", mneme.net(Average(), weights=False).model())

    def test_a_module_for_several_sizes_needs_an_example(self):
        module = Recurrent(nn.GRU)
        with self.assertRaisesRegex(mneme.ScenarioError, "rows of several sizes; expected example=rows"):
            mneme.net(module)
        with self.assertWarnsRegex(mneme.MnemeWarning, "gru.input"):
            mneme.net(module, example=torch.zeros(2, LENGTH, dtype=torch.int64))
        with self.assertRaisesRegex(mneme.ScenarioError, "cannot be inferred; expected example=rows"):
            mneme.net(nn.Sequential(nn.Flatten(), nn.Conv2d(3, 4, 3)))


if __name__ == "__main__":
    python_package.run_tests()
