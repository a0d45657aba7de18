#!/usr/bin/env python3
"""DyTox's net, losses, frozen parts and herding in arthurdouillard/dytox.

    python3 tools/research/export/official/dytox.py CHECKOUT [tests/golden]

Needs PyTorch and numpy. timm is replaced by stubs: weights are computed from names, and nothing is dropped or drawn.
"""
import os
import sys
import types

import torch

import learners
from learners import leaf, listed, made

REPOSITORY = "https://github.com/arthurdouillard/dytox"
COMMIT = "4da25c13ef34e827e5361f78dcda08811a413c74"
ROWS, OLD, NEW, SIDE, WIDTH, DEPTH = 6, 3, 2, 12, 8, 2
LABELS = [0, 4, 2, 3, 1, 3]


def losses():
    from continual import engine
    from continual.losses import bce_with_logits

    logits, div = leaf("dytox.logits", ROWS, OLD + NEW, scale=2.0), leaf("dytox.div", ROWS, NEW + 1, scale=2.0)
    teacher = made("dytox.teacher", ROWS, OLD, scale=2.0)
    args = types.SimpleNamespace(auto_kd=True, distillation_tau=1.0, head_div=0.1)
    parts = engine.forward(None, torch.tensor(LABELS), lambda x: {"logits": logits, "div": div},
                           lambda x: {"logits": teacher}, bce_with_logits, None, args)
    sum(parts).backward()
    return {"terms": [part.item() for part in parts], "d_logits": listed(logits.grad), "d_div": listed(div.grad)}


def our_name(theirs):
    """Name of a parameter in mneme's net."""
    for lead, ours in (("sabs.", "blocks."), ("tabs.0.", "decoder."), ("head_div.head.", "divergence.linear."),
                       ("head_div.", "divergence.")):
        if theirs.startswith(lead):
            return ours + theirs[len(lead):]
    words = theirs.split(".")
    if words[0] == "task_tokens":
        return f"task_tokens.{words[1]}.token"
    if words[0] == "head" and words[2] == "norm":
        return f"head_norms.{words[1]}.{words[3]}"
    if words[0] == "head":
        return f"head.{words[3]}.{words[1]}"  # rows of this task
    return theirs


def made_net():
    """Net of two tasks with weights computed from names, in evaluation mode."""
    from continual.convit import ConVit
    from continual.dytox import DyTox

    encoder = ConVit(img_size=SIDE, patch_size=4, in_chans=3, num_classes=OLD, embed_dim=WIDTH, depth=DEPTH + 1,
                     num_heads=4, local_up_to_layer=DEPTH, locality_strength=1.0, class_attention=True)
    net = DyTox(encoder, OLD, "1-1", head_div=True, head_div_mode="tr")
    net.add_model(NEW)
    with torch.no_grad():
        for name, value in net.named_parameters():
            ours = our_name(name)
            numbers = made("dytox." + ours, *value.shape, scale=0.5)
            value.copy_(1.0 + numbers if "norm" in ours and ours.endswith(".weight") else numbers)
    return net.eval()


def whole_net():
    net = made_net()
    outputs = net(made("dytox.images", ROWS, 3, SIDE, SIDE))
    ends = (outputs["logits"] * made("dytox.d_logits", ROWS, OLD + NEW)).sum()
    ends = ends + (outputs["div"] * made("dytox.d_div", ROWS, NEW + 1)).sum()
    ends.backward()
    tokens, _, _ = net.forward_features(made("dytox.images", ROWS, 3, SIDE, SIDE))
    return {"logits": listed(outputs["logits"]), "div": listed(outputs["div"]),
            "features": listed(torch.cat(tokens, dim=1)),
            "gradients": {our_name(name): listed(value.grad) for name, value in net.named_parameters()}}


def frozen():
    """Parts that the two stages of a task freeze (options/model/cifar_dytox.yaml: freeze_task, freeze_ft)."""
    net = made_net()
    stages = {}
    for stage, names in (("task", ["old_task_tokens", "old_heads"]), ("fine_tuning", ["sab"])):
        net.freeze(names)
        stages[stage] = [our_name(name) for name, value in net.named_parameters() if not value.requires_grad]
    return stages


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("timm", "timm.models", "timm.models.layers", "timm.data", "timm.utils", "timm.loss",
                      "continual.cnn")
    sys.modules["timm.models.layers"].to_2tuple = lambda side: (side, side)
    learners.open_checkout(checkout, COMMIT)
    package = types.ModuleType("continual")  # without the imports of its __init__
    package.__path__ = [os.path.join(os.path.abspath(checkout), "continual")]
    sys.modules["continual"] = package
    torch.set_default_dtype(torch.float64)
    from continual.convit import GPSA
    from continual.rehearsal import icarl_selection

    layer = GPSA(24, num_heads=12, locality_strength=1.0)
    learners.write(os.path.join(into, "dytox", "official.json"), REPOSITORY, COMMIT, labels=LABELS, losses=losses(),
                   net=whole_net(), frozen=frozen(), local_directions=listed(layer.pos_proj.weight[:9]),
                   values_are_tokens=bool((layer.v.weight == torch.eye(24)).all()),
                   gate=listed(layer.gating_param),
                   herding=icarl_selection(made("dytox.features", 30, WIDTH).numpy(), 12).tolist())


if __name__ == "__main__":
    main()
