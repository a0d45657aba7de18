#!/usr/bin/env python3
"""What FedCIL's own classes compute (Qi, Zhao and Li 2023, ICLR), step by step, on a CPU.

    tools/official/fed_cil.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/daiqing98/FedCIL at the commit below. Written is fed_cil/steps.json: steps of
WGAN.train_a_batch and train_a_batch_all, whose critic and generator are small nets of features in place of images, and
a batch of FedCL.get_balanced_samples. Weights, rows and whatever the code draws are formulas of names, so that the test
in C++ has the same; all is computed in float64.
"""
import random
import sys

import numpy
import torch
from torch import nn

import shim
from shim import listed, made_values, replaced, rounded, summary, values_of

FEATURES, CLASSES, CODE, GENERATOR, CRITIC, BATCH, STEPS = 6, 4, 9, 8, 7, 5, 3
PAST, SO_FAR, AVAILABLE = [0, 1], [0, 1, 2], [0, 1, 2, 3]  # classes of a client in its second task, and of all clients


class Critic(nn.Module):
    """Answers as the code's critics do: real or not, probabilities of classes, their logits, features."""

    def __init__(self, features=FEATURES, width=CRITIC, classes=CLASSES):
        super().__init__()
        self.classes = classes
        self.fc1, self.fc2 = nn.Linear(features, width), nn.Linear(width, classes + 1)

    def forward(self, x, if_features=False):
        hidden = nn.functional.leaky_relu(self.fc1(x))
        scores = self.fc2(hidden)
        classes = scores[:, :self.classes]
        answer = torch.sigmoid(scores[:, self.classes]), classes.softmax(1), classes
        return (*answer, hidden) if if_features else answer


class Generator(nn.Module):
    def __init__(self, code=CODE, width=GENERATOR, features=FEATURES):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(code, width), nn.Linear(width, features)

    def forward(self, z):
        return self.fc2(torch.relu(self.fc1(z)))


class FedCil(shim.Adapter):
    NAME = "fed-cil"
    REPOSITORY = "https://github.com/daiqing98/FedCIL"
    COMMIT = "c439de076ae8423fdc676299e8a0ef40ebf75312"
    STUBS = ("scipy", "sklearn", "h5py", "torchsummary")

    def load(self, checkout):
        super().load(checkout)
        from FLAlgorithms.generator.model import WGAN
        from FLAlgorithms.servers.serverpFedCL import FedCL
        self.gan_of, self.server_of = WGAN, FedCL

    def make(self, split, initial):
        """A client's pair. @param initial prefix of the names that its weights are made of"""
        gan = self.gan_of(z_size=CODE, image_size=32, image_channel_size=1, c_channel_size=4, g_channel_size=4,
                          dataset="MNIST")
        gan.num_classes, gan.generator, gan.critic = CLASSES, Generator(), Critic()
        with torch.no_grad():
            for part in ("generator", "critic"):
                for name, value in getattr(gan, part).named_parameters():
                    value.copy_(made_values(f"{initial}{part}.{name}", tuple(value.shape)))
        rates = {"lr": 1e-4, "weight_decay": 1e-5, "betas": (0.5, 0.99)}
        gan.set_generator_optimizer(torch.optim.Adam(gan.generator.parameters(), **rates))
        gan.set_critic_optimizer(torch.optim.Adam(gan.critic.parameters(), **rates))
        self.present = gan.double()
        return self.present

    def step(self, batch):
        return self.present.train_a_batch(**batch)

    def state(self):
        return {f"{part}.{name}": value for part in ("generator", "critic")
                for name, value in getattr(self.present, part).state_dict().items()}


class Draws:
    """Stands for numpy's draws: labels in turn, and noise by name. What was drawn is kept for the record."""

    def __init__(self, name):
        self.name, self.count, self.labels = name, 0, []

    def choice(self, among, size):
        labels = numpy.array([among[(self.count + 2 * i) % len(among)] for i in range(size)])
        self.labels.append(labels.tolist())
        return labels

    def normal(self, mean, deviation, size):
        drawn = 2 * values_of(f"{self.name}.noise.{self.count}", size).double().numpy()
        self.count += 1
        return drawn


def rows(name, among):
    labels = torch.tensor([among[i % len(among)] for i in range(BATCH)])
    return values_of(name, (BATCH, FEATURES)).double(), labels


def summaries(adapter):
    return {name: summary(name, value) for name, value in adapter.state().items()}


def played(adapter, name, replays):
    """Steps of a client, the replayed half of them drawn as rows by name. Moments go on from step to step."""
    gan = adapter.make(None, "client.")
    draws, steps = Draws(name), []
    with replaced({(numpy.random, "choice"): draws.choice, (numpy.random, "normal"): draws.normal}), shim.quiet():
        for step in range(STEPS):
            x, y = rows(f"{name}.real.{step}", SO_FAR)
            x_, y_ = rows(f"{name}.old.{step}", PAST) if replays else (None, None)
            losses = adapter.step({"x": x, "y": y, "x_": x_, "y_": y_, "classes_so_far": SO_FAR})
            steps.append({"critic": rounded(losses["c_loss"]), "generator": rounded(losses["g_loss"]),
                          "weights": summaries(adapter)})
    return {"steps": steps, "drawn_labels": draws.labels}


def agreed(adapter):
    """The consistency terms of train_a_batch_all, which the release multiplies by 0: their values."""
    server = adapter.make(None, "server.")
    gan = adapter.make(None, "client.")
    draws = Draws("agreed")
    x, y = rows("agreed.real", SO_FAR)
    with replaced({(numpy.random, "choice"): draws.choice, (numpy.random, "normal"): draws.normal}), shim.quiet():
        losses = gan.train_a_batch_all(x, y, AVAILABLE, SO_FAR, server, 1)
    return {"with_real": rounded(losses["kd_loss_d"]), "with_own_and_classes": rounded(losses["kd_loss_g"]),
            "drawn_labels": draws.labels}


def balanced(adapter):
    """Which rows of a pool the server takes: labels as drawn, and the places of their rows."""
    server = adapter.server_of.__new__(adapter.server_of)
    arguments = type("arguments", (), {"gen_batch_size": 6})
    pool = torch.arange(8).double().reshape(8, 1)
    labels = torch.tensor([2, 0, 2, 1, 0, 2, 1, 2])
    with replaced({(numpy.random, "choice"): lambda among, size: numpy.array([sorted(among)[i % len(among)]
                                                                              for i in range(size)]),
                   (random, "choice"): lambda places: places[-1]}):
        x, y = server.get_balanced_samples(pool, labels, arguments)
    return {"rows": listed(x), "labels": y.tolist()}


def steps(adapter):
    return {"fed_cil/steps": {
        "settings": {"features": FEATURES, "classes": CLASSES, "code": CODE, "generator": GENERATOR, "critic": CRITIC,
                     "batch": BATCH, "rate": 1e-4, "decay": 1e-5, "betas": [0.5, 0.99]},
        "past": PAST, "so_far": SO_FAR, "available": AVAILABLE,
        "first_task": played(adapter, "first", False), "later_task": played(adapter, "later", True),
        "consistency": agreed(adapter), "balanced": balanced(adapter)}}


if __name__ == "__main__":
    shim.in_double()
    sys.exit(shim.main(FedCil(), steps, __doc__))
