"""Eleven families of torchvision and four other nets as exported programs: scores, gradients and ten steps equal
PyTorch's, in training and in evaluation mode, as whole modules and with the layers of mneme."""
import copy
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
from mneme._exported import exported  # noqa: E402
from python_modules_test import scenario  # noqa: E402
from python_nets_test import RATE, Looks, after_steps, distance, gradients  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

CLASSES, WORDS, LENGTH = 4, 20, 8
ROWS = 16  # rows of a call in evaluation mode, so that no call is padded
SIDE = 32
SCORES, GRADIENTS, STEPS_TAKEN = 2e-4, 1e-5, 1e-3  # differences, relative to the largest number of all tensors
# Gradients may differ as much as PyTorch's in float32 and in float64 do. Steps are compared if these two agree: in deep
# nets with batch norms over 16 values, rounding errors become as large as the weights within ten steps.


class Decoder(nn.Module):
    """A causal transformer whose embedding is also its last layer, as in GPT-2 (Radford et al. 2019)."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.embedding, self.places = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width)
        self.norm1, self.norm2, self.norm = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.last = nn.Linear(width, WORDS, bias=False)
        self.last.weight = self.embedding.weight

    def attended(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))

    def forward(self, x):
        y = self.embedding(x) + self.places(torch.arange(LENGTH))
        y = y + self.attended(self.norm1(y))
        return self.last(self.norm(y + self.mlp(self.norm2(y))))[:, -1, :CLASSES]


class UNet(nn.Module):
    """Two scales with group norm, a transposed convolution and bilinear upsampling (Ronneberger et al. 2015)."""

    def __init__(self, width=8):
        super().__init__()

        def conv(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.SiLU())
        self.a, self.b, self.middle = conv(3, width), conv(width, 2 * width), conv(2 * width, 4 * width)
        self.up, self.c = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2), conv(4 * width, 2 * width)
        self.d, self.out = conv(3 * width, width), nn.Conv2d(width, CLASSES, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(functional.max_pool2d(a, 2))
        b = self.c(torch.cat([self.up(self.middle(functional.avg_pool2d(b, 2))), b], 1))
        b = functional.interpolate(b, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.out(self.d(torch.cat([b, a], 1))).mean((2, 3))


class Mixer(nn.Module):
    """MLP-Mixer (Tolstikhin et al. 2021)."""

    def __init__(self, patch=8, width=16):
        super().__init__()
        tokens = (SIDE // patch) ** 2
        self.stem, self.head = nn.Conv2d(3, width, patch, patch), nn.Linear(width, CLASSES)
        self.norm1, self.norm2, self.norm = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channels = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return self.head(self.norm(x + self.channels(self.norm2(x))).mean(1))


def dropout_net():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout2d(0.0),
                         nn.Flatten(), nn.Linear(8 * 15 * 15, 16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, CLASSES))


def families():
    """{name: function that makes the net}, without dropout, whose masks PyTorch draws otherwise."""
    from torchvision import models
    from torchvision.models.convnext import CNBlockConfig
    blocks = [CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 1)]
    return {
        "mobilenet_v3": lambda: models.mobilenet_v3_small(num_classes=CLASSES, dropout=0.0),
        "efficientnet": lambda: models.efficientnet_b0(num_classes=CLASSES, dropout=0.0, stochastic_depth_prob=0.0),
        "densenet": lambda: models.DenseNet(8, (2, 2, 2, 2), 16, num_classes=CLASSES),
        "convnext": lambda: models.ConvNeXt(blocks, layer_scale=0.1, num_classes=CLASSES),
        "swin": lambda: models.SwinTransformer([4, 4], 16, [2, 1], [2, 2], [4, 4], stochastic_depth_prob=0.0,
                                               num_classes=CLASSES),
        "vit": lambda: models.VisionTransformer(SIDE, 8, 1, 2, 16, 32, num_classes=CLASSES),
        "shufflenet": lambda: models.shufflenet_v2_x0_5(num_classes=CLASSES),
        "regnet": lambda: models.regnet_y_400mf(num_classes=CLASSES),
        "squeezenet": lambda: models.squeezenet1_1(num_classes=CLASSES, dropout=0.0),
        "mnasnet": lambda: models.mnasnet0_5(num_classes=CLASSES, dropout=0.0),
        "googlenet": lambda: models.googlenet(num_classes=CLASSES, aux_logits=False, init_weights=False, dropout=0.0)}


NETS = {"decoder": Decoder, "unet": UNet, "mixer": Mixer, "dropout": dropout_net}
WHOLE_MODULES = {"decoder": "used twice"}  # reason why no part runs as layers


def difference(ours, theirs):
    """The largest difference of tensors with the same names, relative to the largest number. PyTorch's gradient of a
    bias before a batch norm is a rounding error, so tensors are not compared one by one."""
    shared = [(ours[name], value) for name, value in theirs.items() if name in ours]
    return max(float((a - b).abs().max()) for a, b in shared) / max(float(b.abs().max()) for _, b in shared)


class Architectures(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)

    def seen(self, model, rows, labels):
        """Runs one client. Returns (its results, warnings)."""
        settings = scenario(model, data={"normalize": "unit"} if rows.dim() == 4 else {}, clients={"count": 1},
                            rounds={"per_task": 1}, training={"learning_rate": RATE, "momentum": 0.0},
                            strategy={"name": "py-looks"})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mneme.run(settings, methods=[Looks], data=mneme.Data(rows, labels, rows, labels))
        return dict(Looks.seen), " ".join(str(each.message) for each in caught)

    def agree(self, name, make, training):
        torch.manual_seed(1)
        module = make().train(training)
        labels = torch.arange(ROWS) % CLASSES
        if name == "decoder":
            rows = x = torch.randint(0, WORDS, (ROWS, LENGTH))
        else:
            rows = 255 * torch.randint(0, 2, (ROWS, 3, SIDE, SIDE), dtype=torch.uint8)  # 0 or 1 after normalization
            x = rows.float() / 255
        path = os.path.abspath("net.pt2")
        with open(path, "wb") as file:
            file.write(exported(module, x[:2]))
        if not training:
            module.train = lambda mode=True: module  # so that the helpers keep its mode
        before = copy.deepcopy(module.state_dict())  # with the versions of its modules
        module64, x64 = copy.deepcopy(module).double(), x.double() if x.is_floating_point() else x
        (theirs, state), (gradient64, state64) = (
            (gradients(net, rows_of_net, labels), after_steps(net, before, rows_of_net, labels))
            for net, rows_of_net in ((module, x), (module64, x64)))
        module.load_state_dict(before)
        with torch.no_grad():
            scores = nn.Module.train(module, False)(x)
        for fused in (False, True):
            model = {"module": path, "module_output": "scores", "module_fused": fused}
            seen, said = self.seen(model, rows, labels)
            with self.subTest(name, training=training, fused=fused):
                self.assertLess(distance(seen["logits"], scores), SCORES)
                if fused:
                    self.assertEqual("No part runs as layers" in said, name in WHOLE_MODULES, said)
                    self.assertIn(WHOLE_MODULES.get(name, ""), said)
                    continue
                self.assertTrue(torch.equal(seen["logits"], scores))
                self.assertLess(difference(seen["gradient"], theirs),
                                max(GRADIENTS, 2 * difference(theirs, gradient64)))
                if difference(state, state64) < STEPS_TAKEN:
                    self.assertLess(difference(seen["weights"], state), 2 * STEPS_TAKEN)

    def test_nets_of_this_file_compute_and_train_like_torch(self):
        for name, make in NETS.items():
            for training in (True, False):
                self.agree(name, make, training)

    def test_families_of_torchvision_compute_and_train_like_torch(self):
        try:
            made = families()
        except ImportError as missing:
            self.skipTest(f"{missing.name} is not installed")
        for name, make in made.items():
            for training in (True, False):
                self.agree(name, make, training)


if __name__ == "__main__":
    python_package.run_tests()
