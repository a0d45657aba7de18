"""nets_loop.py NET BATCH SECONDS | NET --export FILE: the plain PyTorch loop that tools/bench/nets compares mneme with.

One client after the other: load the global weights, train one epoch with SGD, add the weights to the average. The loop
runs in both memory layouts of images and prints {"upload_bytes", "peak_rss_bytes", "cpu_rate": {layout: rate}} as JSON,
in client-rounds per CPU second. --export writes the net as an exported program (.pt2) instead. Must be run by a Python
with torch, and for --export with the package.
"""
import json
import resource
import sys
import time

import torch
from torch import nn

ROWS, CLASSES, LEARNING_RATE = 64, 10, 0.1
GRAY, COLOR, TOKENS = (1, 28, 28), (3, 32, 32), (80,)


class LeNet(nn.Module):
    """LeNet-5 with ReLU and max-pooling."""

    def __init__(self, shape):
        super().__init__()
        self.conv1 = nn.Conv2d(shape[0], 6, 5, padding=2 if shape[1] == 28 else 0)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, CLASSES)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))))


class Block(nn.Module):
    """Two convolutions of 3x3 with batch normalization, and a shortcut."""

    def __init__(self, inputs, outputs, stride, projection):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.stride, self.added = stride, outputs - inputs
        self.projection = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) \
            if projection and (stride > 1 or inputs != outputs) else None

    def shortcut(self, x):
        if self.projection is not None:
            return self.projection(x)
        if self.stride == 1 and self.added == 0:
            return x
        return nn.functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.added // 2, self.added - self.added // 2))

    def forward(self, x):
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(out + self.shortcut(x))


def residual(widths, blocks, projection):
    """Residual net of He et al. 2016 with a stem for small images."""
    layers, inputs = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()], widths[0]
    for stage, width in enumerate(widths):
        for block in range(blocks):
            layers.append(Block(inputs, width, 2 if stage > 0 and block == 0 else 1, projection))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


class Attention(nn.Module):
    """Pre-norm transformer block as in timm, with fused attention."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(n, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.proj(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, w))
        return x + self.fc2(nn.functional.gelu(self.fc1(self.norm2(x))))


class Transformer(nn.Module):
    """Vision transformer for images of 3 x 32 x 32."""

    def __init__(self, patch, width, depth, heads):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.positions = nn.Parameter(torch.randn(1, (32 // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Attention(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class CharacterModel(nn.Module):
    """LEAF's model of Shakespeare (Caldas et al. 2018)."""

    def __init__(self, width=256):
        super().__init__()
        self.embedding, self.lstm = nn.Embedding(80, 8), nn.LSTM(8, width, 2, batch_first=True)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0][:, -1])


def vgg():
    """Six convolutions of 3x3 with batch normalization, and a hidden layer."""
    layers, inputs = [], 3
    for width in (32, 32, 64, 64, 128, 128):
        layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        if width == inputs:
            layers.append(nn.MaxPool2d(2))
        inputs = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(2048, 128), nn.ReLU(), nn.Linear(128, CLASSES))


NETS = {
    "linear": (GRAY, lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, CLASSES))),
    "mlp": (GRAY, lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, 100), nn.ReLU(),
                                        nn.Linear(100, CLASSES))),
    "lenet28": (GRAY, lambda: LeNet(GRAY)),
    "lenet32": (COLOR, lambda: LeNet(COLOR)),
    "vgg": (COLOR, vgg),
    "resnet8": (COLOR, lambda: residual((16, 32, 64), 1, False)),
    "resnet32": (COLOR, lambda: residual((16, 32, 64), 5, False)),
    "resnet18": (COLOR, lambda: residual((64, 128, 256, 512), 2, True)),
    "vit": (COLOR, lambda: Transformer(4, 128, 4, 4)),
    "lstm": (TOKENS, CharacterModel),
}


def train(net, start, rows, labels, batch):
    """Trains for one client-round. Returns the trained weights."""
    net.load_state_dict(start)
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE)
    for part in torch.randperm(len(rows)).split(batch):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(rows[part]), labels[part]).backward()
        optimizer.step()
    return net.state_dict()


def rate(net, shape, layout, batch, seconds):
    """Client-rounds per CPU second."""
    images = len(shape) == 3
    rows = example(shape, ROWS)
    labels = torch.randint(CLASSES, (ROWS,))
    if images:
        net, rows = net.to(memory_format=layout), rows.to(memory_format=layout)
    start = {name: value.clone() for name, value in net.state_dict().items()}
    total = {name: torch.zeros_like(value) for name, value in start.items()}
    train(net, start, rows, labels, batch)
    rounds, began = 0, time.process_time()
    while rounds == 0 or time.process_time() - began < seconds:
        for name, value in train(net, start, rows, labels, batch).items():
            total[name] += value
        rounds += 1
    return rounds / (time.process_time() - began)


def example(shape, rows):
    return torch.randn(rows, *shape) if len(shape) == 3 else torch.randint(80, (rows, *shape))


def export(name, path):
    from mneme._exported import exported
    shape, make = NETS[name]
    with open(path, "wb") as file:
        file.write(exported(make().train(), example(shape, 2)))


def main():
    torch.manual_seed(0)
    if sys.argv[2] == "--export":
        return export(sys.argv[1], sys.argv[3])
    name, batch, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    shape, make = NETS[name]
    layouts = {"channels-first": torch.contiguous_format, "channels-last": torch.channels_last}
    if len(shape) != 3:
        layouts.pop("channels-last")
    uploaded = sum(value.numel() for value in make().state_dict().values() if value.is_floating_point())
    rates = {layout: rate(make(), shape, kind, batch, seconds) for layout, kind in layouts.items()}
    print(json.dumps({"upload_bytes": 4 * uploaded, "cpu_rate": rates,
                      "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
