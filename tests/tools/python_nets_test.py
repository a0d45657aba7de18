"""Nets of torch through torch.fx: what mneme computes for them against PyTorch, step by step."""
import copy
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

STEPS, RATE, CLASSES = 10, 0.01, 4
TOLERANCE = 1e-5


class LeNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))))


class Attention(nn.Module):
    """Self-attention as many write it by hand."""

    def __init__(self, width, heads):
        super().__init__()
        self.num_heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.num_heads, w // self.num_heads).permute(2, 0, 3, 1, 4)
        return self.proj(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, w))


class HandWritten(nn.Module):
    def __init__(self, side, patch, width, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
        self.norm1, self.norm2, self.norm = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, 2)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.places
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return self.head(self.norm(x)[:, 0])


class Looks(mneme.Method):
    """One client's net, looked at from outside: logits, gradient and weights after ten steps."""
    name = "py-looks"
    seen = {}

    def client_round(self, ctx, broadcast):
        scored = yield ctx.extract(logits=True)
        slope = yield ctx.train(result="gradient", epochs=1, batch=0)
        trained = yield ctx.train(epochs=STEPS, batch=0)
        Looks.seen.update(logits=scored.logits, gradient=self.unflatten(slope.gradients),
                          weights=self.unflatten(trained.weights),
                          buffers={name for name, *_, buffer in self.setup.parameters if buffer},
                          same=torch.equal(self.flatten(self.unflatten(trained.weights)), trained.weights))
        return mneme.Upload(trained.weights, rows=trained.rows)


def distance(a, b):
    """The largest difference, in units of the largest number of b."""
    return float((a.double() - b.double()).abs().max()) / max(float(b.abs().max()), 1e-3)


def after_steps(module, state, x, labels):
    """The state after plain steps over all rows."""
    module.load_state_dict(state)
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), labels).backward()
        optimizer.step()
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def torchvision_net(name, **options):
    import torchvision
    return getattr(torchvision.models, name)(**options)


class AgainstTorch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)
        torch.manual_seed(0)

    def near(self, ours, theirs, name, tolerance=TOLERANCE):
        self.assertLess(distance(ours, theirs), tolerance, name)

    def check(self, module, channels, side, rows=12, rounding_grows=False):
        images = torch.randint(0, 256, (rows, channels, side, side), dtype=torch.uint8)
        labels = torch.arange(rows) % CLASSES
        net = mneme.net(module, strict=True)
        scenario = {"data": {"normalize": "unit"}, "tasks": {"kind": "single"}, "clients": {"count": 1},
                    "rounds": {"per_task": 1}, "training": {"learning_rate": RATE, "momentum": 0.0},
                    "strategy": {"name": "py-looks"}, "model": net.model()}
        run = mneme.run(scenario, methods=[Looks], data=mneme.Data(images, labels, images, labels))
        seen, x = Looks.seen, images.float() / 255
        theirs = {ours: name for name, ours in net.names.items()}
        with torch.no_grad():
            self.near(seen["logits"], module.eval()(x), "logits")
        module.train()
        nn.functional.cross_entropy(module(x), labels).backward()
        known = dict(module.named_parameters())
        self.assertTrue(seen["same"])
        for name, ours in seen["gradient"].items():
            if name not in seen["buffers"]:
                self.near(ours, known[theirs.get(name, name)].grad, "gradient of " + name)
        state = after_steps(module, self.before, x, labels)
        tolerance = TOLERANCE
        if rounding_grows:
            double = after_steps(copy.deepcopy(module).double(), self.before, x.double(), labels)
            tolerance = 3 * max(distance(tensor, double[name]) for name, tensor in state.items())
        for name, ours in seen["weights"].items():
            self.near(ours, state[theirs.get(name, name)], f"{name} after {STEPS} steps", tolerance)
        module.load_state_dict(net.state_dict(run), strict=False)
        return net

    def agree(self, module, channels, side, **options):
        self.before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        return self.check(module, channels, side, **options)

    def test_lenet(self):
        self.agree(LeNet(CLASSES), 1, 28)

    def test_resnet18_of_torchvision(self):
        # A value within rounding of 0 may fall on either side of a ReLU, which moves gradients by 1e-3: of seeds 0 to 3
        # this is one where none does in the first step. In ten steps some do, of PyTorch's own in float32 and float64,
        # too: their distance is the measure there.
        torch.manual_seed(1)
        try:
            module = torchvision_net("resnet18", num_classes=CLASSES)
        except ImportError as missing:
            self.skipTest(f"{missing.name} is not installed")
        net = self.agree(module, 3, 64, rounding_grows=True)
        self.assertEqual(net.layers[:4], ["conv1: conv 64 7x7 stride 2 pad 3 no-bias", "bn1: batch-norm", "relu",
                                          "max-pool 3 stride 2 pad 1"])

    def test_a_vision_transformer_of_torchvision(self):
        try:
            module = torchvision_net("VisionTransformer", image_size=16, patch_size=4, num_layers=2, num_heads=2,
                                     hidden_dim=16, mlp_dim=32, num_classes=CLASSES)
        except ImportError as missing:
            self.skipTest(f"{missing.name} is not installed")
        nn.init.normal_(module.heads.head.weight, std=0.1)  # zeros else
        net = self.agree(module, 3, 16)
        self.assertEqual(net.layers[:2], ["patch-embedding 4 16", "residual ["])

    def test_a_vision_transformer_by_hand(self):
        net = self.agree(HandWritten(16, 4, 16, CLASSES), 3, 16)
        self.assertIn("attention: attention 2", net.layers)

    def test_what_only_looks_like_a_layer_is_refused(self):
        module = HandWritten(16, 4, 16, CLASSES)

        class Scaled(Attention):
            def forward(self, x):
                return 2.0 * super().forward(x)
        module.attention = Scaled(16, 2)
        with self.assertRaisesRegex(mneme.ScenarioError, "'attention' computes something else"):
            mneme.net(module, strict=True)


if __name__ == "__main__":
    python_package.run_tests()
