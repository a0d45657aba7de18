#!/usr/bin/env python3
"""Transformers of timm and transformers with peft's LoRA, the reference for model.low_rank and model.weights.

    python3 tools/research/export/low_rank_reference.py [tests/golden/peft]

Made with Python 3.11, torch 2.11.0, timm 1.0.31, transformers 5.24.0, peft 0.21.2 and numpy 2.4. Weights are computed
from the names that tensors have in the libraries' files, as in torchvision_reference.py. Results: logits, features,
gradients of the mean cross-entropy, and logits and parts after ten steps of SGD. They are computed in float64. Does not
use mneme.
"""
import re
import tempfile

import timm
import torch
from peft import LoraConfig, get_peft_model
from safetensors import safe_open
from torch import nn
from transformers import (BertConfig, BertForSequenceClassification, CLIPConfig, CLIPForImageClassification, ViTConfig,
                          ViTForImageClassification)

from bert_reference import tokens_of
from torchvision_reference import images, made_values, rounded, summary, write_records

CLASSES, STEPS, RATE, MOMENTUM, ROWS = 5, 10, 0.02, 0.9, 4
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96}
KEYS = {"width": "24", "depth": "2", "heads": "3"}
IMAGES = {"image_size": 12, "patch_size": 4}
LIVE = ((r"^vit\.layers\.", "vit.encoder.layer."), (r"\.attention\.q_proj\.", ".attention.attention.query."),
        (r"\.attention\.k_proj\.", ".attention.attention.key."),
        (r"\.attention\.v_proj\.", ".attention.attention.value."),
        (r"\.attention\.o_proj\.", ".attention.output.dense."),
        (r"(vit\..*)\.mlp\.fc1\.", r"\1.intermediate.dense."), (r"(vit\..*)\.mlp\.fc2\.", r"\1.output.dense."))
TIMM = ((r"^(vit|vision_model)\.", ""), (r"encoder\.layers?\.", "blocks."), (r"attention\.attention\.", "attn."),
        (r"attention\.output\.dense", "attn.proj"), (r"intermediate\.dense", "mlp.fc1"), (r"output\.dense", "mlp.fc2"),
        (r"self_attn\.out_proj", "attn.proj"), (r"self_attn\.q_proj", "attn.query"), (r"self_attn\.k_proj", "attn.key"),
        (r"self_attn\.v_proj", "attn.value"), (r"^classifier", "head"))


def renamed(name, rules):
    for pattern, text in rules:
        name = re.sub(pattern, text, name)
    return name


def plain(name):
    """Name of a tensor without peft's additions."""
    return re.sub(r"^base_model\.model\.|\.base_layer|\.default|\.modules_to_save|\.original_module", "", name)


def file_name(name, live):
    """Name of a tensor in the library's file; low-rank adapters keep peft's prefix."""
    prefix = "base_model.model." if ".lora_" in name else ""
    return prefix + renamed(plain(name), LIVE if live else ())


class Pooled(nn.Module):
    """CLIP's image tower, whose features are the class token after the last normalization, with a linear head."""

    def __init__(self, tower, width):
        super().__init__()
        self.vision_model, self.classifier = tower, nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.classifier(self.vision_model(pixel_values=x).pooler_output)


def bert():
    return BertForSequenceClassification(BertConfig(vocab_size=31, num_labels=CLASSES, max_position_embeddings=12,
                                                    attn_implementation="eager", **SIZES))


def vit():
    return ViTForImageClassification(ViTConfig(num_labels=CLASSES, layer_norm_eps=1e-6, **IMAGES, **SIZES))


def clip():
    whole = CLIPForImageClassification(CLIPConfig(vision_config={**IMAGES, **SIZES}, num_labels=CLASSES,
                                                  text_config={**SIZES, "vocab_size": 9}))
    return Pooled(whole.vision_model, SIZES["hidden_size"])


def timm_vit(name="vit_base_patch16_224"):
    return timm.create_model(name, img_size=12, patch_size=4, embed_dim=24, depth=2, num_heads=3, num_classes=CLASSES)


# File name: model and its keys in a scenario, net, peft's targets (None: no LoRA), rank and alpha.
CASES = {
    "timm_vit": ("vit", {}, timm_vit, None, 0, 0),
    "timm_vit_lora": ("vit", {"low_rank": "3", "low_rank_alpha": "1.5", "low_rank_targets": "qkv, projection, mlp"},
                      timm_vit, r"blocks.*(qkv|attn\.proj|fc1|fc2)", 3, 1.5),
    "timm_clip": ("clip", {}, lambda: timm_vit("vit_base_patch32_clip_quickgelu_224"), None, 0, 0),
    "vit": ("vit", {}, vit, None, 0, 0),
    "vit_lora": ("vit", {"low_rank": "4"}, vit, r".*(q_proj|v_proj)", 4, 4),
    "clip": ("clip", {}, clip, None, 0, 0),
    "clip_lora": ("clip", {"low_rank": "2", "low_rank_alpha": "1", "low_rank_targets": "query, key, value, projection"},
                  clip, r".*(q_proj|k_proj|v_proj|out_proj)", 2, 1),
    "bert_lora": ("bert", {"positions": "12", "padding": "0", "mlp": "96", "low_rank": "4", "low_rank_alpha": "8"},
                  bert, r".*(query|value)", 4, 8),
    "bert_lora_mlp": ("bert", {"positions": "12", "padding": "0", "mlp": "96", "low_rank": "5",
                               "low_rank_targets": "key, projection, mlp"}, bert,
                      r".*encoder.*(key|output\.dense|intermediate\.dense)", 5, 5),
}


def saved_names(net):
    """Names in the library's own file; None for nets that are not the library's."""
    if not hasattr(net, "save_pretrained"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        net.save_pretrained(folder)
        with safe_open(f"{folder}/model.safetensors", "pt") as file:
            return set(file.keys())


def record_of(model, keys, make, targets, rank, alpha):
    net = make()
    live, names = make is vit, saved_names(net)
    if targets:
        net = get_peft_model(net, LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=0.0, target_modules=targets))
        for name, one in net.named_parameters():
            one.requires_grad_(".lora_" in name or re.search(r"(^|\.)(head|classifier)\.", name) is not None)
    net = net.double().eval()
    tensors = {}
    for name, one in net.named_parameters():
        stored = file_name(name, live)
        tensors[stored] = list(one.shape)
        one.data.copy_(made_values(stored, tuple(one.shape)))
    assert names is None or names == {name for name in tensors if ".lora_" not in name}, names ^ set(tensors)

    seen = {}
    head = [module for module in net.modules() if isinstance(module, nn.Linear) and module.out_features == CLASSES][-1]
    head.register_forward_hook(lambda _, given, made: seen.update(features=given[0], logits=made))
    if model == "bert":
        known = (9, 4, 1, 7)
        tokens = tokens_of(9, known)
        mask = (torch.arange(9).unsqueeze(0) < torch.tensor(known).unsqueeze(1)).long()
        rows = {"tokens": tokens.tolist()}
        run = lambda: net(input_ids=tokens, attention_mask=mask)
    else:
        pixels = images("input", (ROWS, 3, 12, 12))
        rows = {"images": [ROWS, 3, 12, 12]}
        run = lambda: net(pixels)
    labels = torch.arange(ROWS) * 7 % CLASSES

    def own_name(name):
        name = renamed(plain(name), LIVE if live else ())
        return name if model == "bert" else renamed(name, TIMM)

    trained = {own_name(name): one for name, one in net.named_parameters() if one.requires_grad}
    optimizer = torch.optim.SGD(trained.values(), lr=RATE, momentum=MOMENTUM)
    for step in range(STEPS + 1):
        run()
        logits = [[rounded(value) for value in row] for row in seen["logits"].detach()]
        optimizer.zero_grad()
        nn.functional.cross_entropy(seen["logits"], labels).backward()
        if step == 0:
            record = {"model": model, "keys": {**KEYS, **({"patch": "4"} if model != "bert" else {}), **keys},
                      "classes": CLASSES, **rows, "tensors": tensors, "logits": logits,
                      "features": [summary("features", row) for row in seen["features"].detach()]}
            if targets:
                record["gradients"] = {name: summary(name, one.grad) for name, one in trained.items()}
            else:
                return record
        if step < STEPS:
            optimizer.step()
    record["steps"] = {"count": STEPS, "rate": RATE, "momentum": MOMENTUM, "logits": logits,
                       "trained": {name: summary(name, one) for name, one in trained.items()}}
    return record


if __name__ == "__main__":
    write_records(__doc__, CASES, record_of, "peft")
