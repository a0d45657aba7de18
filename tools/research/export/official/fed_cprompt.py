#!/usr/bin/env python3
"""Fed-CPrompt's loss of a step, and its components under a softmax, in grbagwe/Fed-CPrompt.

    python3 tools/research/export/official/fed_cprompt.py CHECKOUT [tests/golden]

Needs PyTorch and numpy. timm, fairscale, torchvision, scipy and matplotlib are replaced by stubs. In the official code,
the net's return values do not match what its learner expects, so a stub returns the expected values.
"""
import importlib
import os
import sys
import types

import torch

import learners
from coda_prompt import HEADS, PATCH, SIDE, PatchEmbed, fill
from learners import leaf, listed, made

REPOSITORY = "https://github.com/grbagwe/Fed-CPrompt"
COMMIT = "a19c98b90e28d134e867a39f9f686a10369f6007"
ROWS, WIDTH, OLD, SEEN, DEPTH, TASKS, COMPONENTS, LENGTH = 4, 16, 2, 5, 5, 4, 2, 4
LABELS = [2, 4, 3, 2]


def step(later, near, far):
    """Loss and gradients of a step. @param near, far distances of the tokens from those of the two other models"""
    from learners_of_theirs import DualPrompt, TripletLoss

    token, logits = leaf("cprompt.token", ROWS, WIDTH), leaf("cprompt.logits", ROWS, SEEN, scale=2.0)
    received = token.detach() + made("cprompt.received", ROWS, WIDTH, scale=near)
    previous = token.detach() + made("cprompt.previous", ROWS, WIDTH, scale=far)
    learner = object.__new__(DualPrompt)
    learner.__dict__.update(
        model=lambda inputs, train: (1.0 * logits, torch.zeros(1), token), fedmoon=[3], dw_k=torch.ones(SEEN + 1),
        criterion=lambda z, y, weight: (torch.nn.functional.cross_entropy(z, y, reduction="none") * weight).mean(),
        triplet_loss=TripletLoss(1), optimizer=torch.optim.SGD([token, logits], lr=0.0), valid_out_dim=SEEN,
        last_valid_out_dim=OLD)
    loss, _, _, _, contrast = DualPrompt.update_model(
        learner, None, torch.tensor(LABELS), global_model=lambda inputs, train: (None, None, received),
        previous_task_model=(lambda inputs, train: (None, None, previous)) if later else None)
    return {"near": near, "far": far, "loss": loss.item(), "contrast": contrast.item(),
            "d_token": listed(token.grad), "d_logits": listed(logits.grad[:, OLD:])}


def components(task):
    """Class tokens under components of the tasks so far, and gradients of sum(tokens d) with respect to all of them."""
    from models.vision_transformer import VisionTransformer
    from models.vit_coda_p import CodaPrompt

    net = VisionTransformer(img_size=SIDE, patch_size=PATCH, embed_dim=WIDTH, depth=DEPTH, num_heads=HEADS)
    with torch.no_grad():
        for name, value in net.named_parameters():
            numbers = made("prompted." + name, *value.shape, scale=0.5)
            value.copy_(1.0 + numbers if "norm" in name and name.endswith(".weight") else numbers)
            value.requires_grad_(False)
    net.eval()
    prompt = CodaPrompt(WIDTH, TASKS, [TASKS * COMPONENTS, LENGTH, 0, 0, 0], WIDTH)
    prompt.task_count_f = task
    names = {f"e_{short}_{block}": (f"prompts.{block}.{word}", (task + 1) * COMPONENTS) for block in range(5)
             for short, word in (("p", "values"), ("k", "keys"), ("a", "focus"))}
    fill(prompt, names)
    images = made("prompted.images", ROWS, 3, SIDE, SIDE)
    query = net(images)[0][:, 0]
    token = net(images, prompt=prompt, q=query, train=True)[0][:, 0]
    gradients = torch.autograd.grad((token * made("prompted.d_features", ROWS, WIDTH)).sum(),
                                    [getattr(prompt, theirs) for theirs in names])
    return {"features": listed(token), "loss": 0.0,
            "gradients": {ours: listed(value) for (ours, _), value in zip(names.values(), gradients)}}


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("timm", "timm.models", "timm.models.vision_transformer", "timm.models.registry",
                      "timm.models.layers", "timm.models.helpers", "torchvision", "torchvision.models", "scipy",
                      "scipy.linalg", "matplotlib", "matplotlib.pyplot", "fairscale", "fairscale.nn",
                      "fairscale.nn.checkpoint", "fairscale.nn.checkpoint.checkpoint_activations",
                      "dataloaders", "dataloaders.utils")
    torch.Tensor.cuda = lambda self, *_, **__: self.clone()  # like a copy to a device: not a leaf of the graph
    sys.modules["timm.models.vision_transformer"].PatchEmbed = PatchEmbed
    sys.modules["timm.models.layers"].trunc_normal_ = lambda tensor, std: tensor
    learners.open_checkout(checkout, COMMIT)
    package = types.ModuleType("learners")  # their package; our helper module has the same name
    package.__path__ = [os.path.join(os.path.abspath(checkout), "learners")]
    ours, sys.modules["learners"] = sys.modules["learners"], package
    theirs = importlib.import_module("learners.prompt")
    sys.modules["learners"] = ours
    sys.modules["learners_of_theirs"] = theirs
    torch.set_default_dtype(torch.float64)
    ours.write(os.path.join(into, "prompts", "fed_cprompt.json"), REPOSITORY, COMMIT, labels=LABELS,
               first=step(False, 0.02, 0.0), later=step(True, 0.05, 0.1), behind=step(True, 0.01, 0.5),
               components={str(task): components(task) for task in (0, 1)})


if __name__ == "__main__":
    main()
