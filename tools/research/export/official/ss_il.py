#!/usr/bin/env python3
"""Steps of SS-IL and of BiC in hongjoon0805/SS-IL-Official: a linear net on features from formula().

    python3 tools/research/export/official/ss_il.py CHECKOUT [tests/golden]

Each is one step of SGD at a rate of 1, so the change of the weights is the gradient. Needs PyTorch and numpy. Other
imports of the checkout are replaced by stubs, and its exemplar loader is a list of rows.
"""
import os
import sys
import types

import torch

import learners
from learners import listed, made

REPOSITORY = "https://github.com/hongjoon0805/SS-IL-Official"
COMMIT = "8c323811f99f6da8e8d794b663c43bfe63864a3f"
FEATURES, CLASSES, STEP = 5, 6, 2
NEW_LABELS, OLD_LABELS, MIXED_LABELS = [4, 5, 5, 4], [0, 3, 1], [4, 0, 5, 3, 1, 2, 4]
ALPHA, BETA = 0.8, -0.3  # corrections of the previous task


class LinearNet(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.fc = torch.nn.Linear(FEATURES, CLASSES, dtype=torch.float64)
        with torch.no_grad():
            self.fc.weight.copy_(made(name + ".weight", CLASSES, FEATURES))
            self.fc.bias.copy_(made(name + ".bias", CLASSES))

    def forward(self, rows, feature_return=False):
        return (self.fc(rows), rows) if feature_return else self.fc(rows)


def change_after(net, step):
    """Returns minus the gradient: weights after one step at rate 1, minus those before."""
    before = [parameter.detach().clone() for parameter in net.parameters()]
    step()
    return [value for old, parameter in zip(before, net.parameters(), strict=True)
            for value in listed(parameter.detach() - old)]


def trainer_of(cls, net, tasks, batches, rows_of_replay=0):
    old = LinearNet("old")
    return types.SimpleNamespace(
        __class__=cls, model=net, model_fixed=old, seen_classes=list(range(0, tasks * STEP + 1, STEP)),
        incremental_loader=types.SimpleNamespace(t=tasks, end=(tasks + 1) * STEP), train_iterator=batches,
        optimizer=torch.optim.SGD(net.parameters(), lr=1.0), kwargs={},
        args=types.SimpleNamespace(replay_batch_size=rows_of_replay, step_size=STEP))


def ss_il():
    import trainer
    import trainer.ssil as ssil

    own = [(made("ss-il.rows", len(NEW_LABELS), FEATURES), torch.tensor(NEW_LABELS))]
    replayed = made("ss-il.replayed", len(OLD_LABELS), FEATURES)
    trainer.ExemplarLoader = lambda loader: list(zip(replayed, OLD_LABELS, strict=True))
    net = LinearNet("net")
    learner = trainer_of(ssil.Trainer, net, 2, own, len(OLD_LABELS))
    learner.loss = torch.nn.CrossEntropyLoss(reduction="sum")
    return {"new_labels": NEW_LABELS, "old_labels": OLD_LABELS,
            "minus_gradient": change_after(net, lambda: ssil.Trainer.train(learner, 0))}


def bic():
    import trainer.bic as bic_trainer

    batch = [(made("bic.rows", len(MIXED_LABELS), FEATURES), torch.tensor(MIXED_LABELS))]
    net = LinearNet("net")
    learner = trainer_of(bic_trainer.Trainer, net, 2, batch)
    learner.loss = torch.nn.CrossEntropyLoss(reduction="mean")
    before = bic_trainer.BiasLayer().double()
    with torch.no_grad():
        before.alpha.fill_(ALPHA)
        before.beta.fill_(BETA)
    learner.bias_correction_layer_arr = [before]
    stage1 = change_after(net, lambda: bic_trainer.Trainer.train(learner, 0))

    layer = bic_trainer.BiasLayer().double()
    learner = trainer_of(bic_trainer.Trainer, LinearNet("net"), 2, None)
    learner.loss = torch.nn.CrossEntropyLoss(reduction="mean")
    learner.bias_correction_layer = layer
    learner.bias_optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    first = change_after(layer, lambda: bic_trainer.Trainer.bias_correction(learner, batch))
    learner.bias_optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for _ in range(20000):
        bic_trainer.Trainer.bias_correction(learner, batch)
    return {"labels": MIXED_LABELS, "alpha_before": ALPHA, "beta_before": BETA, "stage1_minus_gradient": stage1,
            "stage2_minus_gradient": first, "stage2_optimum": listed(torch.cat([layer.alpha, layer.beta]))}


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("networks", "tqdm", "sklearn", "sklearn.metrics", "scipy", "scipy.spatial",
                      "scipy.spatial.distance", "arguments", "matplotlib", "matplotlib.pyplot")
    sys.modules["tqdm"].tqdm = lambda batches, *_, **__: batches
    learners.open_checkout(checkout, COMMIT)
    learners.write(os.path.join(into, "ss-il", "official.json"), REPOSITORY, COMMIT, **ss_il())
    learners.write(os.path.join(into, "bic", "ss_il.json"), REPOSITORY, COMMIT, **bic())


if __name__ == "__main__":
    main()
