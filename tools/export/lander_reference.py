#!/usr/bin/env python3
"""What LANDER's generator sees through a frozen classifier, step by step, as the reference for mneme's.

    python3 tools/export/lander_reference.py [tests/golden/lander]

Made with Python 3.11, torch 2.11.0, torchvision 0.26.0 and numpy 2.4. A residual net is inverted as the public code of
LANDER (Tran et al. 2024) does it: hooks on its batch norms compare running statistics with those of the batch, averaged
with momentum 0.9; cross-entropy of the labels, the pull of the mapped features to anchors, and disagreement with a
student join. What is optimised are the pixels themselves, by Adam. Weights and inputs come from formula(), in float64.
Nothing of mneme is used here.
"""
import argparse
import os

import torch
from torch import nn
from torch.nn import functional

from torchvision_reference import CifarResNet, as_text, formula, images, made_values, rounded, summary

CLASSES, SEEN, EMBEDDING, IMAGES, SIDE, STEPS = 6, 4, 5, 12, 16, 12
RADIUS, KEPT, RATE, BETAS = 0.015, 0.9, 0.02, (0.5, 0.999)


class Statistics:
    """A hook of DeepInversion (Yin et al. 2020) as NAYER and LANDER have it: averages over steps, norms unsquared."""

    def __init__(self, layer):
        self.past = None
        layer.register_forward_hook(self)

    def __call__(self, layer, given, made):
        x = given[0]
        now = (x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False))
        past = self.past or tuple(value.detach() for value in now)
        averaged = tuple((1 - KEPT) * value + KEPT * before for value, before in zip(now, past))
        self.loss = sum(torch.norm(running - value, 2)
                        for running, value in zip((layer.running_mean, layer.running_var), averaged))
        self.past = tuple(value.detach() for value in averaged)


def net_of(prefix, running=None):
    """Weights by name; running statistics are those of made-up images, or given ones."""
    net = CifarResNet(1, CLASSES + EMBEDDING).double()
    with torch.no_grad():
        for name, value in net.named_parameters():
            value.copy_(made_values(prefix + name, tuple(value.shape)))
        if running is None:
            layers = [layer for layer in net.modules() if isinstance(layer, nn.BatchNorm2d)]
            for layer in layers:
                layer.momentum = 1.0
            net.train()(images("calibration", (32, 3, SIDE, SIDE)))
        else:
            net.load_state_dict({name: torch.tensor(values) for name, values in running.items()}, strict=False)
    return net.eval().requires_grad_(False)


def running_of(net):
    return {name: [rounded(value) for value in values] for name, values in net.named_buffers()
            if not name.endswith("num_batches_tracked")}


def record():
    running = running_of(net_of("teacher."))
    teacher, student = net_of("teacher.", running), net_of("student.", running)
    hooks = [Statistics(layer) for layer in teacher.modules() if isinstance(layer, nn.BatchNorm2d)]
    pixels = images("pixels", (IMAGES, 3, SIDE, SIDE)).requires_grad_()
    labels = torch.arange(IMAGES) % SEEN
    anchors = torch.from_numpy(formula("anchors", CLASSES * EMBEDDING)).double().reshape(CLASSES, EMBEDDING)
    optimizer = torch.optim.Adam([pixels], lr=RATE, betas=BETAS)
    steps = []
    for step in range(STEPS):
        seen, other = teacher(pixels), student(pixels)
        logits, disagreeing = seen[:, :SEEN], other[:, :SEEN]
        statistics = sum(hook.loss for hook in hooks)
        cross_entropy = functional.cross_entropy(logits, labels)
        away = functional.mse_loss(seen[:, CLASSES:], anchors[labels], reduction="none").mean(1)
        bound = functional.relu(away - RADIUS).mean()
        divergence = functional.kl_div(disagreeing.log_softmax(1), logits.softmax(1), reduction="none").sum(1)
        agree = (logits.argmax(1) == disagreeing.argmax(1)).double()
        adversary = -(divergence * agree).mean()
        adverse = step >= STEPS // 2  # the first half is a warm-up
        total = statistics + 0.5 * cross_entropy + 5.0 * bound + (adversary if adverse else 0.0)
        optimizer.zero_grad()
        total.backward()
        steps.append({"total": rounded(total.detach()), "statistics": rounded(statistics.detach()),
                      "labels": rounded(cross_entropy.detach()),
                      "bound": rounded(bound.detach()), "adversary": rounded(adversary.detach()) if adverse else 0.0,
                      "gradient": summary("gradient", pixels.grad)})
        optimizer.step()
    return {"running": running, "steps": steps, "pixels": summary("pixels at the end", pixels)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out", nargs="?", default=os.path.join("tests", "golden", "lander"))
    given = arguments.parse_args()
    os.makedirs(given.out, exist_ok=True)
    made = record()
    steps = ",\n".join(as_text(step).replace(",\n", ", ").replace("{\n", "{").replace("\n}", "}")
                       for step in made["steps"])
    whole = as_text({"running": made["running"], "pixels": made["pixels"]})[:-2]
    text = whole + ',\n"steps": [\n' + steps + "\n]\n}\n"
    with open(os.path.join(given.out, "resnet8.json"), "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{len(text):,} bytes")


if __name__ == "__main__":
    main()
