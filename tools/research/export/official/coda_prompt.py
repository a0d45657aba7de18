#!/usr/bin/env python3
"""Prompts in a transformer's attention in GT-RIPL/CODA-Prompt: CODA-Prompt and DualPrompt.

    python3 tools/research/export/official/coda_prompt.py CHECKOUT [tests/golden]

Needs PyTorch and numpy. timm and torchvision are replaced by stubs, since weights are computed from names.
"""
import os
import sys

import torch

import learners
from learners import listed, made

REPOSITORY = "https://github.com/GT-RIPL/CODA-Prompt"
COMMIT = "6417d4f68754be68b697c7ca2323ee61e791e1a3"
ROWS, SIDE, PATCH, WIDTH, DEPTH, HEADS, TASKS = 4, 8, 4, 16, 5, 2, 4
COMPONENTS, LENGTH, GENERAL = 2, 4, 2


class PatchEmbed(torch.nn.Module):
    """timm's patch embedding: a convolution whose pixels become tokens."""

    def __init__(self, img_size, patch_size, in_chans, embed_dim):
        super().__init__()
        self.num_patches = (img_size // patch_size) ** 2
        self.proj = torch.nn.Conv2d(in_chans, embed_dim, patch_size, patch_size)

    def forward(self, images):
        return self.proj(images).flatten(2).transpose(1, 2)


def body():
    from models.vit import VisionTransformer

    net = VisionTransformer(img_size=SIDE, patch_size=PATCH, embed_dim=WIDTH, depth=DEPTH, num_heads=HEADS)
    with torch.no_grad():
        for name, value in net.named_parameters():
            numbers = made("prompted." + name, *value.shape, scale=0.5)
            value.copy_(1.0 + numbers if "norm" in name and name.endswith(".weight") else numbers)
            value.requires_grad_(False)
    return net.eval()


def fill(prompt, names):
    """Fills the prompts' parameters. @param names {official name: (mneme's name, number of filled rows)}"""
    prompt.double()
    with torch.no_grad():
        for theirs, (ours, rows) in names.items():
            value = getattr(prompt, theirs)
            value.zero_()
            value[:rows] = made("prompted." + ours, *value.shape)[:rows]


def results(net, prompt, names, task, train):
    """Class token and its query, the prompts' loss, and gradients of all prompt parameters."""
    images = made("prompted.images", ROWS, 3, SIDE, SIDE)
    query = net(images)[0][:, 0]
    out, loss = net(images, prompt=prompt, q=query, train=train, task_id=task)
    token = out[:, 0]
    numbers = {"query": listed(query), "features": listed(token)}
    if train:
        gradients = torch.autograd.grad((token * made("prompted.d_features", ROWS, WIDTH)).sum() + loss.sum(),
                                        [getattr(prompt, theirs) for theirs in names], allow_unused=True)
        numbers["loss"] = loss.item()
        numbers["gradients"] = {ours: listed(value if value is not None else torch.zeros(()))
                                for (ours, _), value in zip(names.values(), gradients)}
    return numbers


def components(net, task):
    from models.zoo import CodaPrompt

    prompt = CodaPrompt(WIDTH, TASKS, [TASKS * COMPONENTS, LENGTH, 0.1], WIDTH)
    prompt.task_count = task
    rows = (task + 1) * COMPONENTS
    names = {f"e_{short}_{block}": (f"prompts.{block}.{word}", rows) for block in range(5)
             for short, word in (("p", "values"), ("k", "keys"), ("a", "focus"))}
    fill(prompt, names)
    return results(net, prompt, names, task, True)


def slots(net, task, train):
    from models.zoo import DualPrompt

    prompt = DualPrompt(WIDTH, TASKS, [TASKS, LENGTH, GENERAL], WIDTH)
    names = {f"g_p_{block}": (f"prompts.{block}.general", GENERAL) for block in (0, 1)}
    names |= {f"e_{short}_{block}": (f"prompts.{block}.{word}", TASKS) for block in (2, 3, 4)
              for short, word in (("p", "values"), ("k", "keys"))}
    fill(prompt, names)
    return results(net, prompt, names, task, train)


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("timm", "timm.models", "timm.models.vision_transformer", "timm.models.registry",
                      "timm.models.layers", "timm.models.helpers", "torchvision", "torchvision.models")
    torch.Tensor.cuda = lambda self, *_, **__: self.clone()  # like a copy to a device: not a leaf of the graph
    sys.modules["timm.models.vision_transformer"].PatchEmbed = PatchEmbed
    sys.modules["timm.models.layers"].trunc_normal_ = lambda tensor, std: tensor
    learners.open_checkout(checkout, COMMIT)
    torch.set_default_dtype(torch.float64)
    net = body()
    learners.write(os.path.join(into, "prompts", "coda_prompt.json"), REPOSITORY, COMMIT,
                   components={str(task): components(net, task) for task in (0, 1)}, slots=slots(net, 1, True),
                   slots_chosen=slots(net, 1, False))


if __name__ == "__main__":
    main()
