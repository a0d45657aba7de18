#!/usr/bin/env python3
"""Steps of FedCIL's official classes (Qi, Zhao and Li 2023, ICLR) on a CPU.

    tools/research/official/fed_cil.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/daiqing98/FedCIL at the commit below. The script writes three files:
fed_cil/steps.json has steps of WGAN.train_a_batch and train_a_batch_all, with a small critic and generator of features
instead of images, and a batch of FedCL.get_balanced_samples. fed_cil/consolidation.json has
FedCL.fine_tune_generator on two users' generators. fed_cil/image_steps.json has steps of train_a_batch with narrow
versions of the code's image nets. Weights, rows and all random draws are computed from names, so that the C++ test can
repeat them. All values are computed in float64.
"""
import random
import sys
import types

import numpy
import torch
from torch import nn

import shim
from shim import listed, made_values, replaced, rounded, summary, values_of

FEATURES, CLASSES, CODE, GENERATOR, CRITIC, BATCH, STEPS = 6, 4, 9, 8, 7, 5, 3
FILTERS, IMAGE_CODE, IMAGE = 3, 13, (2, 16)  # nets of images: narrowest map, code, (channels, side)
# Classes of a client in its first task, of the client in both tasks, and of all clients.
PAST, SO_FAR, AVAILABLE = [0, 1], [0, 1, 2], [0, 1, 2, 3]


class Critic(nn.Module):
    """Returns the outputs of the code's critics: real or fake, class probabilities, their logits, features."""

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

    def make(self, split, initial, image=None):
        """Makes a client's pair of nets. @param initial prefix of the names of its weights @param image (channels,
        side): the code's nets of images; None: nets of features"""
        channels, side = image or (1, 32)
        gan = self.gan_of(z_size=IMAGE_CODE if image else CODE, image_size=side, image_channel_size=channels,
                          c_channel_size=FILTERS, g_channel_size=FILTERS, dataset="MNIST")
        if not image:
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
    """Replaces numpy's draws with labels in turn and noise computed from names. Records the draws."""

    def __init__(self, name, stride=2):
        self.name, self.stride, self.count, self.labels, self.places = name, stride, 0, [], []

    def choice(self, among, size):
        labels = numpy.array([among[(self.count + self.stride * i) % len(among)] for i in range(size)])
        self.labels.append(labels.tolist())
        return labels

    def normal(self, mean, deviation, size):
        drawn = 2 * values_of(f"{self.name}.noise.{self.count}", size).double().numpy()
        self.count += 1
        return drawn

    def place(self, places):
        """Replaces Python's random.choice: a row of a pool."""
        self.places.append(places[len(self.places) % len(places)])
        return self.places[-1]

    def in_place(self):
        return replaced({(numpy.random, "choice"): self.choice, (numpy.random, "normal"): self.normal,
                         (random, "choice"): self.place})


def rows(name, among, shape=(FEATURES,)):
    labels = torch.tensor([among[i % len(among)] for i in range(BATCH)])
    return values_of(name, (BATCH, *shape)).double(), labels


def summaries(adapter):
    """Summaries of trained tensors, without running statistics and unused layers."""
    return {name: summary(name, value) for name, value in adapter.state().items()
            if not name.startswith("critic.bn") and not name.endswith(("_mean", "_var", "_tracked"))}


def played(adapter, name, replays, image=None):
    """Steps of a client; replayed rows are computed from names. Moments continue from step to step."""
    adapter.make(None, "client.", image)
    shape = (image[0], image[1], image[1]) if image else (FEATURES,)
    draws, steps = Draws(name), []
    with draws.in_place(), shim.quiet():
        for step in range(STEPS):
            x, y = rows(f"{name}.real.{step}", SO_FAR, shape)
            x_, y_ = rows(f"{name}.old.{step}", PAST, shape) if replays else (None, None)
            losses = adapter.step({"x": x, "y": y, "x_": x_, "y_": y_, "classes_so_far": SO_FAR})
            steps.append({"critic": rounded(losses["c_loss"]), "generator": rounded(losses["g_loss"]),
                          "weights": summaries(adapter)})
    return {"steps": steps, "drawn_labels": draws.labels}


def agreed(adapter):
    """Values of the consistency terms of train_a_batch_all, which the official code multiplies by 0."""
    server = adapter.make(None, "server.")
    gan = adapter.make(None, "client.")
    draws = Draws("agreed")
    x, y = rows("agreed.real", SO_FAR)
    with draws.in_place(), shim.quiet():
        losses = gan.train_a_batch_all(x, y, AVAILABLE, SO_FAR, server, 1)
    return {"with_real": rounded(losses["kd_loss_d"]), "with_own_and_classes": rounded(losses["kd_loss_g"]),
            "drawn_labels": draws.labels}


def balanced(adapter):
    """Rows that the server takes from a pool: drawn labels, and the indices of their rows."""
    server = adapter.server_of.__new__(adapter.server_of)
    arguments = type("arguments", (), {"gen_batch_size": 6})
    pool = torch.arange(8).double().reshape(8, 1)
    labels = torch.tensor([2, 0, 2, 1, 0, 2, 1, 2])
    with replaced({(numpy.random, "choice"): lambda among, size: numpy.array([sorted(among)[i % len(among)]
                                                                              for i in range(size)]),
                   (random, "choice"): lambda places: places[-1]}):
        x, y = server.get_balanced_samples(pool, labels, arguments)
    return {"rows": listed(x), "labels": y.tolist()}


def user_of(adapter, name, current):
    """A user in its second task, with the attributes that fine_tune_generator reads."""
    return types.SimpleNamespace(
        generator=adapter.make(None, f"{name}.present."), last_generator=adapter.make(None, f"{name}.last."),
        current_labels=current, classes_past_task=PAST, gen_batch_size=BATCH, available_labels=AVAILABLE,
        available_labels_current=current)


def consolidated(adapter):
    """Server steps. Each reads one batch from a pool of the current generators' rows and one from the previous
    generator."""
    server = adapter.server_of.__new__(adapter.server_of)
    server.users = server.selected_users = [user_of(adapter, "first", [2, 3]), user_of(adapter, "second", [2])]
    server.current_task = 1
    server.generator = adapter.make(None, "server.")
    draws, losses = Draws("consolidated", stride=1), []
    step = server.generator.train_a_batch
    server.generator.train_a_batch = lambda *given, **named: losses.append(step(*given, **named)) or losses[-1]
    with draws.in_place(), shim.quiet():
        server.fine_tune_generator(types.SimpleNamespace(md_iter=STEPS, gen_batch_size=BATCH))
    return {"present": [[2, 3], [2]], "drawn_labels": draws.labels, "places": draws.places,
            "steps": [{"critic": rounded(each["c_loss"]), "generator": rounded(each["g_loss"])} for each in losses],
            "weights": summaries(adapter)}


def steps(adapter):
    rates = {"batch": BATCH, "rate": 1e-4, "decay": 1e-5, "betas": [0.5, 0.99]}
    of_features = {"features": FEATURES, "classes": CLASSES, "code": CODE, "generator": GENERATOR, "critic": CRITIC,
                   **rates}
    of_images = {"image": [IMAGE[0], IMAGE[1], IMAGE[1]], "classes": 10, "code": IMAGE_CODE, "generator": FILTERS,
                 "critic": FILTERS, **rates}
    return {
        "fed_cil/steps": {
            "settings": of_features, "past": PAST, "so_far": SO_FAR, "available": AVAILABLE,
            "first_task": played(adapter, "first", False), "later_task": played(adapter, "later", True),
            "consistency": agreed(adapter), "balanced": balanced(adapter)},
        "fed_cil/consolidation": {"settings": of_features, "past": PAST, **consolidated(adapter)},
        "fed_cil/image_steps": {
            "settings": of_images, "past": PAST, "so_far": SO_FAR,
            "first_task": played(adapter, "first", False, IMAGE), "later_task": played(adapter, "later", True, IMAGE)}}


if __name__ == "__main__":
    shim.in_double()
    sys.exit(shim.main(FedCil(), steps, __doc__))
