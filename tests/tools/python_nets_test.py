"""Torch nets as layers of mneme: results compared with PyTorch, step by step."""
import contextlib
import copy
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

sys.path.insert(0, os.path.join(python_package.ROOT, "tools", "bench"))

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch_nets import Attention, LeNet  # noqa: E402

STEPS, RATE, CLASSES = 10, 0.01, 4
TOLERANCE = 1e-5
torch.set_num_threads(1)  # the nets are small


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


class Tutorial(nn.Module):
    """The net of PyTorch's tutorial, with many kinds of functions."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.pool = nn.Conv2d(3, 6, 5), nn.Conv2d(6, 16, 5), nn.MaxPool2d(2, 2)
        self.fc1, self.fc2, self.unread = nn.Linear(16 * 5 * 5, 84), nn.Linear(84, CLASSES), nn.Linear(2, 2)

    def forward(self, x):
        x = self.pool(nn.functional.relu(self.conv1(x)))
        x = self.pool(nn.functional.leaky_relu(self.conv2(x), 0.2)).view(-1, 16 * 5 * 5)
        return self.fc2(nn.functional.gelu(nn.functional.dropout(self.fc1(x), 0.0, self.training)))


class Tutorial16(Tutorial):
    """Like Tutorial, for images of 16 x 16."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 84)

    def forward(self, x):
        x = self.pool(nn.functional.relu(self.conv1(x)))
        x = self.pool(torch.tanh(self.conv2(x))).flatten(1)
        return self.fc2(nn.functional.gelu(self.fc1(x)))


class Encoder(nn.Module):
    """A vision transformer with torch's own layers."""

    def __init__(self, norm_first, dropout=0.0):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 16)), nn.Parameter(torch.randn(1, 17, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=dropout, activation="gelu" if norm_first else "relu",
                                           batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16) if norm_first else None,
                                             enable_nested_tensor=False)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.encoder(x)[:, 0])


class Calls(nn.Module):
    """A net that calls `function` between two of its layers."""

    def __init__(self, function):
        super().__init__()
        self.a, self.b, self.head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, CLASSES)
        self.function = function

    def forward(self, x):
        return self.head(self.function(self, self.a(x)))


def tied():
    module = Calls(lambda self, x: self.b(x))
    module.b.weight = module.a.weight
    return module


REFUSED = [
    (lambda: Calls(lambda self, x: self.a(x)), "'a' is used twice"),
    (tied, "it adds 'b.bias'; expected 'a.bias'"),
    (lambda: Calls(lambda self, x: x if x.sum() > 0 else -x), r"torch.export cannot read .*torch.where\(\)"),
    (lambda: Calls(lambda self, x: torch.softmax(x, 1)), "2 of 3 operators .*softmax.int .*: none of mneme's layers"),
    (lambda: Calls(lambda self, x: x + 1.0), "a sum with a number"),
    (lambda: nn.Sequential(nn.Linear(8, CLASSES, bias=False)), "no linear layer with a bias"),
    (lambda: nn.Sequential(nn.Conv2d(3, 4, 4, padding="same"), nn.Flatten(), nn.Linear(256, 4)), "an odd kernel"),
    (lambda: Encoder(True, dropout=0.1), "no mask and no dropout"),
]


class Looks(mneme.Method):
    """Records the net of one client: logits, gradient and weights after ten steps."""
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


def distance(a, b, slack=0.0):
    """The largest difference minus a slack, relative to the largest number of b."""
    return float(((a.double() - b.double()).abs() - slack).max()) / max(float(b.abs().max()), 1e-3)


def allowed_error(exact, theirs, slack=0.0):
    """Tolerance for distance(ours, exact): twice the error of PyTorch in float32. Bits of the latter depend on the
    processor; in a deep net its error is 1e-5 of the largest number.
    exact: result of PyTorch in float64. theirs: in float32"""
    return min(max(TOLERANCE, 2 * distance(theirs, exact, slack)), 2 * TOLERANCE)


class Kinks:
    """ReLU and max-pooling that record positions where rounding decides between two branches, and can take the other
    branch at one of them. That changes gradients by up to 10 % in these tests, but values only by rounding errors."""

    WITHIN = 5e-6  # rounding error of a deep net for values of about 1

    def __init__(self):
        self.calls, self.near, self.turned = 0, [], None

    def places(self, is_near):
        """Records the positions where rounding decides. Returns the mask of the one to flip, if it is in this call."""
        self.calls += 1
        self.near += [(self.calls, place) for place in is_near.flatten().nonzero().flatten().tolist()]
        mask = torch.zeros_like(is_near)
        if self.turned and self.turned[0] == self.calls:
            mask.view(-1)[self.turned[1]] = True
        return mask

    def relu(self, x, inplace=False):
        return x * ((x > 0) ^ self.places(x.detach().abs() < self.WITHIN))

    def max_pool(self, x, window, stride, padding, *_, **__):
        n, c, h, w = x.shape
        framed = nn.functional.pad(x, [padding] * 4, value=-1e30).reshape(n * c, 1, h + 2 * padding, w + 2 * padding)
        windows = nn.functional.unfold(framed, window, stride=stride)
        first, second = windows.detach().topk(2, dim=1).values.unbind(1)
        order = windows.detach().topk(2, dim=1).indices
        # Equal values are zeros of a ReLU, whose gradient is zero.
        turned = self.places((first - second < self.WITHIN) & (first != second))
        chosen = torch.where(turned, order[:, 1], order[:, 0])
        side = (h + 2 * padding - window) // stride + 1
        return windows.gather(1, chosen[:, None]).reshape(n, c, side, -1)

    @contextlib.contextmanager
    def used(self):
        plain = nn.functional.relu, nn.functional.max_pool2d
        nn.functional.relu, nn.functional.max_pool2d = self.relu, self.max_pool
        try:
            yield self
        finally:
            nn.functional.relu, nn.functional.max_pool2d = plain


def gradients(module, x, labels):
    module.train()
    module.zero_grad()
    nn.functional.cross_entropy(module(x), labels).backward()
    return {name: parameter.grad.clone() for name, parameter in module.named_parameters() if parameter.grad is not None}


def slack_of_kinks(module, x, labels):
    """Returns (number of positions where rounding decides, {parameter: resulting error bound of its gradient})."""
    with Kinks().used() as kinks:
        plain = gradients(module, x, labels)
    slack = {name: torch.zeros_like(gradient) for name, gradient in plain.items()}
    for place in kinks.near:
        with Kinks().used() as turned:
            turned.turned = place
            for name, gradient in gradients(module, x, labels).items():
                slack[name] += (gradient - plain[name]).abs()
    return len(kinks.near), slack


def after_steps(module, state, x, labels):
    """Returns the state after steps of plain SGD over all rows."""
    module.load_state_dict(state)
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(x), labels).backward()
        optimizer.step()
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def torchvision_models(test):
    """torchvision.models; skips the test if torchvision is not installed."""
    try:
        import torchvision
    except ImportError as missing:
        test.skipTest(f"{missing.name} is not installed")
    return torchvision.models


class AgainstTorch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)
        torch.manual_seed(0)

    def near(self, ours, exact, theirs, name, slack=0.0):
        """Checks that mneme's result is as close to PyTorch in float64 as PyTorch's float32 result is."""
        self.assertLess(distance(ours, exact, slack), allowed_error(exact, theirs, slack), name)

    def agree(self, module, channels, side, rows=12, kinks=False):
        """Compares logits, gradients and ten steps. kinks: the net has so many ReLUs that rounding decides the sign of
        some inputs. Their effect on the gradient is then tolerated, and steps are not compared."""
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        images = torch.randint(0, 256, (rows, channels, side, side), dtype=torch.uint8)
        labels, x = torch.arange(rows) % CLASSES, images.float() / 255
        net = mneme.net(module, strict=True)
        scenario = {"data": {"normalize": "unit"}, "tasks": {"kind": "single"}, "clients": {"count": 1},
                    "rounds": {"per_task": 1}, "training": {"learning_rate": RATE, "momentum": 0.0},
                    "strategy": {"name": "py-looks"}, "model": net.model()}
        run = mneme.run(scenario, methods=[Looks], data=mneme.Data(images, labels, images, labels))
        seen, name_of = Looks.seen, {ours: name for name, ours in net.names.items()}
        self.assertTrue(seen["same"])
        module64, x64 = copy.deepcopy(module).double(), x.double()
        with torch.no_grad():
            self.near(seen["logits"], module64.eval()(x64), module.eval()(x), "logits")
        gradients64, gradients32 = gradients(module64, x64, labels), gradients(module, x, labels)
        self.near_places, slack = slack_of_kinks(module, x, labels) if kinks else (0, {})
        module.load_state_dict(before)
        for name, ours in seen["gradient"].items():
            if name not in seen["buffers"]:
                other = name_of.get(name, name)
                self.near(ours, gradients64[other], gradients32[other],
                          f"gradient of {name}, {self.near_places} places", 1.01 * slack.get(name, 0.0))
        if not kinks:
            state32 = after_steps(module, before, x, labels)
            state64 = after_steps(module64, before, x64, labels)
            for name, ours in seen["weights"].items():
                other = name_of.get(name, name)
                self.near(ours, state64[other], state32[other], f"{name} after {STEPS} steps")
        module.load_state_dict(net.state_dict(run), strict=False)
        return net

    def test_lenet_equals_torchs(self):
        self.agree(LeNet(CLASSES), 1, 28)

    def test_resnet18_equals_torchvisions(self):
        # In ten steps PyTorch in float32 and in float64 differ by 1e-2, because of such values.
        net = self.agree(torchvision_models(self).resnet18(num_classes=CLASSES), 3, 32, kinks=True)
        self.assertLess(self.near_places, 30)
        self.assertEqual(net.layers[:4], ["conv1: conv 64 7x7 stride 2 pad 3 no-bias", "bn1: batch-norm", "relu",
                                          "max-pool 3 stride 2 pad 1"])

    def test_a_small_resnet_with_smooth_activations_equals_torchs(self):
        resnet = torchvision_models(self).resnet
        module = resnet.ResNet(resnet.BasicBlock, [1, 1, 1, 1], num_classes=CLASSES)
        module.maxpool = nn.Identity()
        for part in module.modules():
            if hasattr(part, "relu"):
                part.relu = nn.SiLU()
        self.agree(module, 3, 16)

    def test_a_vision_transformer_equals_torchvisions(self):
        module = torchvision_models(self).VisionTransformer(image_size=16, patch_size=4, num_layers=2, num_heads=2,
                                                            hidden_dim=16, mlp_dim=32, num_classes=CLASSES)
        nn.init.normal_(module.heads.head.weight, std=0.1)  # zeros otherwise
        net = self.agree(module, 3, 16)
        self.assertEqual(net.layers[:2], ["patch-embedding 4 16", "residual ["])

    def test_a_hand_written_vision_transformer_equals_torchs(self):
        net = self.agree(HandWritten(16, 4, 16, CLASSES), 3, 16)
        self.assertIn("attention: attention 2 first-token", net.layers)

    def test_the_tutorials_net_equals_torchs(self):
        net = self.agree(Tutorial(), 3, 32)
        self.assertEqual(net.layers[-4:], ["flatten", "fc1: linear 84", "gelu", "fc2: linear classes"])

    def test_an_encoder_equals_torchs(self):
        for norm_first in (True, False):
            net = self.agree(Encoder(norm_first), 3, 16)
            block = net.layers.index("] shortcut [")
            self.assertRegex(net.layers[block - 1], "encoder.layers.1.self_attn: attention 2 first-token")
            self.assertEqual(net.layers[block + 1:block + 3], ["first-token", "]"])

    def test_nets_without_an_exact_equivalent_are_refused(self):
        for make, why in REFUSED:
            with self.subTest(why), self.assertRaisesRegex(mneme.ScenarioError, why):
                mneme.net(make(), strict=True)

    def trained(self, net, **training):
        """Returns the run of a net in training mode on random images of 3 x 16 x 16."""
        images = torch.randint(0, 256, (48, 3, 16, 16), dtype=torch.uint8)
        labels = torch.arange(48) % CLASSES
        scenario = {"tasks": {"kind": "single"}, "clients": {"count": 4}, "rounds": {"per_task": 2, "cohort": 2},
                    "partition": {"kind": "iid"}, "model": net.model(), "strategy": {"name": "fedavg"},
                    "training": {"batch": 4, "learning_rate": 0.1, **training}}
        return mneme.run(scenario, data=mneme.Data(images, labels, images, labels))

    def test_parameters_without_a_gradient_keep_their_values(self):
        optimizers = ({"momentum": 0.9, "weight_decay": 0.01}, {}, {"optimizer": "adam", "weight_decay": 0.01})
        nets = ((lambda: Tutorial16(), ["conv1.weight", "fc2.bias"]),
                (lambda: HandWritten(16, 4, 16, CLASSES), ["token", "places", "patches.weight", "attention.qkv.bias"]),
                (lambda: Encoder(True), ["encoder.layers.0.self_attn.in_proj_weight", "head.weight"]))
        for make, frozen in nets:
            module = make()
            for name in frozen:
                module.get_parameter(name).requires_grad_(False)
            before = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
            net = mneme.net(module, strict=True)
            self.assertEqual(net.frozen, [net.names.get(name, name) for name, parameter in module.named_parameters()
                                          if name in frozen])
            for training in optimizers:
                with self.subTest(frozen, **training):
                    module.load_state_dict(net.state_dict(self.trained(net, **training)), strict=False)
                    for name, parameter in module.named_parameters():
                        if not name.startswith("unread"):
                            self.assertEqual(torch.equal(parameter, before[name]), name in frozen, name)

    def test_frozen_parameters_are_sent_once(self):
        module = Tutorial16()
        module.fc1.weight.requires_grad_(False)
        run = self.trained(mneme.net(module, strict=True))
        whole = sum(parameter.numel() for parameter in module.parameters()) - 6  # without the unused layer
        frozen = module.fc1.weight.numel()
        self.assertEqual(run.records[-1]["upload_bytes"], 2 * 2 * 4 * (whole - frozen))  # rounds, clients, float32

    def test_frozen_batch_norms_equal_torchs(self):
        """Without gradients the running statistics are updated, as in PyTorch; in evaluation mode they are not."""
        def net():
            return nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
                                 nn.Linear(196, CLASSES))
        for frozen, still, moves in ((True, False, True), (True, True, False), (False, True, False)):
            module = net()
            module[1].requires_grad_(not frozen)
            module[1].train(not still)
            module[3].train(not still)
            with self.subTest(frozen=frozen, still=still):
                described = mneme.net(module, strict=True)
                run = self.trained(described)
                self.assertEqual("dropout 0.5" in described.layers, not still)
                after = described.state_dict(run)
                self.assertEqual(torch.equal(after["1.weight"], torch.ones(4)), frozen)
                self.assertEqual(torch.equal(after["1.running_mean"], torch.zeros(4)), not moves)

    def test_unknown_frozen_names_are_refused(self):
        scenario = {"data": {"name": "synthetic", "shape": [1, 8, 8], "classes": 4, "rows": 80},
                    "tasks": {"kind": "single"}, "clients": {"count": 2}, "model": {"name": "mlp", "hidden": [8]},
                    "strategy": {"name": "fedavg"}}
        for frozen, text in ((["fc1.weigth"], r'model.frozen\[0\] = "fc1.weigth": .* did you mean "fc1.weight"'),
                             (["*"], "every parameter of the net is frozen, so nothing can be trained"),
                             (["fc1", "fc3"], r'model.frozen\[1\] = "fc3"')):
            with self.subTest(frozen), self.assertRaisesRegex(mneme.ScenarioError, text):
                mneme.run(scenario, {"model.frozen": frozen}, out="never")
        self.assertFalse(os.path.exists("never"))
        run = mneme.run(scenario, {"model.frozen": ["*"], "training.epochs": 0}, out="evaluated")
        self.assertEqual(run.status, "done")
        self.assertIn('frozen = ["*"]', run.scenario())

    def test_export_leaves_the_module_unchanged(self):
        module = nn.Sequential(nn.Linear(8, CLASSES), nn.Softmax(1))
        with self.assertWarnsRegex(mneme.MnemeWarning, "unfused"):
            mneme.net(module, example=torch.zeros(2, 8))
        self.assertTrue(module.training)
        with self.assertRaisesRegex(mneme.ScenarioError, "torch.export cannot read the module"):
            mneme.net(Calls(lambda self, x: x if float(x.sum()) > 0 else -x), example=torch.zeros(2, 8))
        with self.assertRaisesRegex(TypeError, "expected a torch.nn.Module"):
            mneme.net("resnet18")

    def test_modules_that_only_resemble_a_layer_are_refused(self):
        module = HandWritten(16, 4, 16, CLASSES)

        class Scaled(Attention):
            def forward(self, x):
                return 2.0 * super().forward(x)
        module.attention = Scaled(16, 2)
        with self.assertRaisesRegex(mneme.ScenarioError, "mul.Tensor .*: none of mneme's layers"):
            mneme.net(module, strict=True)


if __name__ == "__main__":
    python_package.run_tests()
