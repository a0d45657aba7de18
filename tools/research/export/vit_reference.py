#!/usr/bin/env python3
"""A vision transformer with timm's names, the reference for mneme's model "vit".

    python3 tools/research/export/vit_reference.py [tests/golden/torchvision]

The net is written in plain PyTorch after Dosovitskiy et al. 2021, its adapters after Chen et al. 2022. Weights, inputs,
records and requirements are those of torchvision_reference.py. Uses neither mneme nor timm.
"""

import torch
from torch import nn

from torchvision_reference import record_of, write_records


class PatchEmbed(nn.Module):
    def __init__(self, patch, channels, width):
        super().__init__()
        self.proj = nn.Conv2d(channels, width, patch, stride=patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        rows, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(rows, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(2, 3) * (width // self.heads) ** -0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(rows, tokens, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(nn.functional.gelu(self.fc1(x)))


class Adapter(nn.Module):
    def __init__(self, width, bottleneck, scale):
        super().__init__()
        self.scale = scale
        self.down, self.up, self.dropout = nn.Linear(width, bottleneck), nn.Linear(bottleneck, width), nn.Dropout(0.1)

    def forward(self, z):
        return self.scale * self.up(self.dropout(torch.relu(self.down(z))))


class Block(nn.Module):
    def __init__(self, width, heads, bottleneck, scale):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-6), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width, eps=1e-6), Mlp(width)
        self.adapter = Adapter(width, bottleneck, scale) if bottleneck else None

    def forward(self, x):
        z = x + self.attn(self.norm1(x))
        out = z + self.mlp(self.norm2(z))
        return out + self.adapter(z) if self.adapter else out


class Vit(nn.Module):
    """Vision transformer. With adapters, all parts but these and the head are frozen."""

    def __init__(self, channels, size, patch, width, depth, heads, classes, bottleneck=0, scale=0.1):
        super().__init__()
        self.size = size
        tokens = 1 + (size[0] // patch) * (size[1] // patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, width))
        self.patch_embed = PatchEmbed(patch, channels, width)
        self.blocks = nn.Sequential(*[Block(width, heads, bottleneck, scale) for _ in range(depth)])
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)
        for name, one in self.named_parameters():
            one.requires_grad_(not bottleneck or ".adapter." in name or name.startswith("head."))

    def features(self, x):
        if tuple(x.shape[2:]) != self.size:
            x = nn.functional.interpolate(x, self.size, mode="bilinear", align_corners=False)
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(len(x), -1, -1), x), 1) + self.pos_embed
        return self.norm(self.blocks(x))[:, 0]

    def forward(self, x):
        return self.head(self.features(x))


SMALL = {"patch": "8", "width": "48", "depth": "2", "heads": "3"}
# The entries are those of torchvision_reference.py.
CASES = {
    "vit": ("vit", SMALL, lambda: Vit(3, (32, 32), 8, 48, 2, 3, 10), (3, 3, 32, 32), (2, 3, 32, 32)),
    "vit_resized": ("vit", {"image": "24", "patch": "6", "width": "20", "depth": "1", "heads": "2"},
                    lambda: Vit(1, (24, 24), 6, 20, 1, 2, 10), (3, 1, 28, 17), (2, 1, 28, 17)),
    "vit_oblong": ("vit", SMALL | {"patch": "4", "depth": "3"}, lambda: Vit(2, (12, 20), 4, 48, 3, 3, 10),
                   (3, 2, 12, 20), (2, 2, 12, 20)),
    "vit_adapters": ("vit", SMALL | {"adapter": "5"}, lambda: Vit(3, (32, 32), 8, 48, 2, 3, 10, 5), (3, 3, 32, 32),
                     (2, 3, 32, 32)),
}


if __name__ == "__main__":
    write_records(__doc__, CASES, record_of, "torchvision")
