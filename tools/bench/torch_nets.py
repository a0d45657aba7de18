"""torch_nets.py FOLDER: the nets of tools/bench/traced_nets in PyTorch, traced by mneme.net.

Must be run by a Python with torch, torchvision and the package. Prints {net: {"layers": [...], "weights": FILE}} as
JSON, with mneme's names of the nets.
"""
import json
import sys

import mneme
import torch
from torch import nn
from torchvision.models import resnet18


class LeNet(nn.Module):
    """LeNet for images of 1 x 28 x 28."""

    def __init__(self, classes=10):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc3(torch.relu(self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))))


class Attention(nn.Module):
    """Self-attention in the usual hand-written form."""

    def __init__(self, width, heads):
        super().__init__()
        self.num_heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, w = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.num_heads, w // self.num_heads).permute(2, 0, 3, 1, 4)
        return self.proj(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, w))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(nn.functional.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.mlp = Attention(width, heads), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Patches(nn.Module):
    def __init__(self, patch, width):
        super().__init__()
        self.proj = nn.Conv2d(3, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Transformer(nn.Module):
    """Vision transformer for images of 3 x 32 x 32."""

    def __init__(self, patch=4, width=64, depth=4, heads=4):
        super().__init__()
        self.patch_embed = Patches(patch, width)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, (32 // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def residual():
    """torchvision's ResNet-18 with a stem for small images."""
    net = resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return net


def main():
    torch.manual_seed(0)
    keys = {name: mneme.net(make(), strict=True, folder=sys.argv[1]).model()
            for name, make in (("lenet", LeNet), ("resnet18", residual), ("vit", Transformer))}
    print(json.dumps({name: {"layers": key["layers"], "weights": key["seed_weights"]} for name, key in keys.items()}))


if __name__ == "__main__":
    main()
