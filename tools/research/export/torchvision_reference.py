#!/usr/bin/env python3
"""torchvision's residual nets and other convolutional models, the reference for mneme's models.

    python3 tools/research/export/torchvision_reference.py [tests/golden/torchvision]

Made with Python 3.11, torch 2.11.0, torchvision 0.26.0 and numpy 2.4. Weights and inputs are not stored but computed by
formula() from a tensor's name and an element's index; the C++ test repeats this bit by bit. All results are computed in
float64. Small ones are stored, others as summary(). Does not use mneme.
"""
import argparse
import copy
import json
import math
import os

import numpy
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torchvision.models import resnet18, resnet50, resnet152
from torchvision.models.resnet import BasicBlock


# -- Numbers from names -----------------------------------------------------------------------------------------------

def hashed(name):
    """32-bit FNV-1a hash of a name."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def formula(name, count):
    """`count` float32 numbers in [-1, 1). Element i is computed exactly, by mixing the bits of
    hash(name) + i * golden ratio."""
    x = (numpy.uint64(hashed(name)) + numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(0x9E3779B1))
    x = (x & numpy.uint64(0xFFFFFFFF)).astype(numpy.uint32)
    x ^= x >> numpy.uint32(16)
    x *= numpy.uint32(0x7FEB352D)
    x ^= x >> numpy.uint32(15)
    x *= numpy.uint32(0x846CA68B)
    x ^= x >> numpy.uint32(16)
    return (x >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2.0 ** -23) - numpy.float32(1.0)


def made_values(name, shape):
    """Values of a parameter or running statistic: filters scaled by fan-in, scales and variances around 1, others
    around 0."""
    values = formula(name, math.prod(shape))
    if len(shape) > 1:
        values = numpy.float32(math.sqrt(6.0 * shape[0] / math.prod(shape))) * values
    elif name.endswith((".weight", ".running_var")):
        values = numpy.float32(1.0) + numpy.float32(0.25) * values
    else:
        values = numpy.float32(0.125) * values
    return torch.from_numpy(values).reshape(shape).double()


def summary(name, tensor):
    """Returns the projection of a tensor on formula(name + ".direction"), and its norm."""
    flat = tensor.detach().double().flatten()
    direction = torch.from_numpy(formula(name + ".direction", flat.numel())).double()
    return [rounded(flat @ direction), rounded(flat.norm())]


def rounded(value):
    return float(f"{float(value):.9g}")


# -- Models -----------------------------------------------------------------------------------------------------------

class Cnn(nn.Module):
    """Two convolutions, dropout, one hidden layer (Reddi et al. 2021), for 32 x 32 pixels."""

    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 64, 3)
        self.dropout1, self.dropout2 = nn.Dropout(0.25), nn.Dropout(0.5)
        self.fc1, self.fc2 = nn.Linear(14 * 14 * 64, 128), nn.Linear(128, classes)

    def features(self, x):
        x = torch.relu(self.conv2(torch.relu(self.conv1(x))))
        x = self.dropout1(nn.functional.max_pool2d(x, 2)).flatten(1)
        return self.dropout2(torch.relu(self.fc1(x)))

    def forward(self, x):
        return self.fc2(self.features(x))


class LeNet(nn.Module):
    """LeNet-5 with ReLU and max-pooling, for 28 x 28 pixels."""

    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, classes)

    def features(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2).flatten(1)
        return torch.relu(self.fc2(torch.relu(self.fc1(x))))

    def forward(self, x):
        return self.fc3(self.features(x))


class OptionA(nn.Module):
    """Option A shortcut: every second pixel, and zeros as additional channels (He et al. 2016)."""

    def __init__(self, channels_added):
        super().__init__()
        self.channels_added = channels_added

    def forward(self, x):
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.channels_added))


class CifarResNet(nn.Module):
    """The residual nets for CIFAR of He et al. 2016: 6 n + 2 layers, in torchvision's blocks."""

    def __init__(self, blocks, classes, option_a=True, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), norm(16)
        width_in = 16
        for stage, width in enumerate((16, 32, 64), start=1):
            made = []
            for _ in range(blocks):
                shortcut = None
                if width != width_in and option_a:
                    shortcut = OptionA(width - width_in)
                elif width != width_in:
                    shortcut = nn.Sequential(nn.Conv2d(width_in, width, 1, stride=2, bias=False), norm(width))
                made.append(BasicBlock(width_in, width, 2 if shortcut else 1, shortcut, norm_layer=norm))
                width_in = width
            setattr(self, f"layer{stage}", nn.Sequential(*made))
        self.fc = nn.Linear(64, classes)

    def features(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.layer3(self.layer2(self.layer1(x))).mean((2, 3))

    def forward(self, x):
        return self.fc(self.features(x))


def resnet18_of(classes, stem, norm=None):
    net = resnet18(num_classes=classes, norm_layer=norm)
    if stem == "cifar":
        net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return net


def group_norm(groups_max):
    return lambda channels: nn.GroupNorm(min(groups_max, channels // 2), channels)


# File name: model and its keys in a scenario, net, images [rows, channels, height, width] of the forward passes and of
# the backward pass (small ones for deep nets, see quiet_images()). None: the backward pass is not stored.
CASES = {
    "cnn": ("cnn", {}, lambda: Cnn(10), (3, 3, 32, 32), (2, 3, 32, 32)),
    "lenet": ("lenet", {}, lambda: LeNet(10), (3, 1, 28, 28), (3, 1, 28, 28)),
    "resnet8": ("resnet8", {}, lambda: CifarResNet(1, 10), (4, 3, 32, 32), (3, 3, 9, 8)),
    "resnet8_conv1x1": ("resnet8", {"shortcut": "conv1x1", "norm": "group", "groups": "4"},
                        lambda: CifarResNet(1, 10, False, group_norm(4)), (4, 3, 15, 18), (3, 3, 9, 8)),
    "resnet32": ("resnet32", {}, lambda: CifarResNet(5, 10), (3, 3, 32, 32), (3, 3, 8, 7)),
    "resnet18_cifar": ("resnet18", {"stem": "cifar"}, lambda: resnet18_of(10, "cifar"), (3, 3, 32, 32), (2, 3, 10, 10)),
    "resnet18_imagenet": ("resnet18", {"stem": "imagenet"}, lambda: resnet18_of(10, "imagenet"), (3, 3, 64, 64),
                          (2, 3, 36, 36)),
    "resnet18_group": ("resnet18", {"stem": "cifar", "norm": "group"},
                       lambda: resnet18_of(10, "cifar", group_norm(32)), (2, 3, 32, 32), (2, 3, 10, 10)),
    # With batch norm and these weights, gradients of such deep nets differ by 5 % between PyTorch's own float32 and
    # float64; with group norm by 5e-6.
    "resnet50": ("resnet50", {"stem": "imagenet"}, lambda: resnet50(num_classes=10), (4, 3, 96, 96), None),
    "resnet50_group": ("resnet50", {"stem": "imagenet", "norm": "group"},
                       lambda: resnet50(num_classes=10, norm_layer=group_norm(32)), (2, 3, 64, 64), (1, 3, 33, 33)),
    "resnet152": ("resnet152", {"stem": "imagenet"}, lambda: resnet152(num_classes=10), (4, 3, 96, 96), None),
    "resnet152_group": ("resnet152", {"stem": "imagenet", "norm": "group"},
                        lambda: resnet152(num_classes=10, norm_layer=group_norm(32)), (1, 3, 64, 64), (1, 3, 33, 33)),
}
TRIES = 24


# -- Records ----------------------------------------------------------------------------------------------------------

def set_weights(net):
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                tensor.copy_(made_values(name, tuple(tensor.shape)))


def seen_by(net, x):
    """Features and logits: input and output of the last layer."""
    head = [module for module in net.modules() if isinstance(module, nn.Linear)][-1]
    seen = {}
    handle = head.register_forward_hook(lambda _, given, made: seen.update(features=given[0], logits=made))
    net(x)
    handle.remove()
    return seen["features"], seen["logits"]


def images(name, shape):
    """Pixels in [-2, 2)."""
    return torch.from_numpy(2 * formula(name, math.prod(shape))).reshape(shape).double()


class Margin(TorchFunctionMode):
    """Smallest distance from zero, in standard deviations of its tensor, of any input of a ReLU."""

    value = math.inf

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.relu, torch.relu_):
            self.value = min(self.value, float(args[0].abs().min() / args[0].std()))
        return func(*args, **(kwargs or {}))


def quiet_images(net, shape):
    """Name of images whose ReLU inputs are all far from 0: otherwise float32 rounding could switch a ReLU and change
    the gradient. Keeps running statistics."""
    margins = {}
    for i in range(TRIES):
        with torch.no_grad(), Margin() as margin:
            copy.deepcopy(net)(images(f"input {i}", shape))
        margins[f"input {i}"] = margin.value
    return max(margins, key=margins.get)


def forward_record(net, shape):
    features, logits = seen_by(net, images("input", shape))
    return {"logits": [[rounded(value) for value in row] for row in logits.detach()],
            "features": [summary("features", row) for row in features]}


def backward_record(net, shape):
    name = quiet_images(net, shape)
    nn.functional.cross_entropy(net(images(name, shape)), torch.arange(shape[0]) * 7 % 10).backward()
    return {"images": shape, "input": name,
            "of": {name: summary(name, one.grad) for name, one in net.named_parameters() if one.requires_grad}}


def record_of(model, keys, make, shape, backward_shape):
    net = make().double()
    set_weights(net)
    record = {"model": model, "keys": keys, "images": shape, "classes": 10,
              "parameters": sum(one.numel() for one in net.parameters())}
    net.eval()
    record["evaluation"] = forward_record(net, shape)
    if not any(isinstance(module, nn.Dropout) for module in net.modules()):  # dropout masks are random
        net.train()
        record["training"] = forward_record(net, shape)
    record["running"] = {name: summary(name, value) for name, value in net.named_buffers()
                         if not name.endswith("num_batches_tracked")}
    if backward_shape:
        record["gradients"] = backward_record(net, backward_shape)
    return record


def as_text(record):
    """Formats JSON with one line per entry of an object."""
    if not isinstance(record, dict) or not record:
        return json.dumps(record)
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {as_text(value)}" for name, value in record.items()) + "\n}"


def write_records(doc, cases, make_record, folder):
    """Writes a JSON file per case, or per case in --only, into the folder of the command line."""
    arguments = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", nargs="?", default=os.path.join("tests", "golden", folder))
    arguments.add_argument("--only", nargs="+", choices=cases, default=list(cases), help="some of them")
    given = arguments.parse_args()
    os.makedirs(given.out, exist_ok=True)
    for name in given.only:
        text = as_text(make_record(*cases[name])) + "\n"
        with open(os.path.join(given.out, name + ".json"), "w", encoding="utf-8") as file:
            file.write(text)
        print(f"{name}: {len(text):,} bytes")


if __name__ == "__main__":
    write_records(__doc__, CASES, record_of, "torchvision")
