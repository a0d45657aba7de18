#!/usr/bin/env python3
"""Steps of MFCL's official classes (Babakniya et al. 2023, NeurIPS) on a CPU.

    tools/research/official/mfcl.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/SaraBabakN/MFCL-NeurIPS23 at the commit below. Writes mfcl/generator.json (steps of
Teacher.get_images, of two generators) and mfcl/local_steps.json (steps of MFCL_client.train_cl). Weights, images and
codes are computed from names, so that the C++ test can repeat them. All values are computed in float64.
"""
import sys
import types

import numpy
import torch
from torch import nn

import shim
from cifar_run import Features
from lander import calibrated
from shim import made_values, replaced, rounded, summary, values_of
from torchvision_reference import images

SIDE, SEEN, CLASSES = 16, 4, 6  # SEEN: classes of the teacher; CLASSES: of the run
CODE, FILTERS, BATCH, STEPS = 8, 64, 12, 3
OWN, REPLAYED, CLIENT_STEPS = 6, 4, 3
TERMS = {"labels": "ce_loss", "information": "ie_loss", "statistics": "bn_loss", "smoothness": "noise_loss",
         "total": "loss"}


class Trunk(Features):
    """ResNet-8 for CIFAR in the form that the code's network() expects: it returns features and declares their
    number."""

    def __init__(self):
        super().__init__()
        self.fc = types.SimpleNamespace(in_features=64)

    def forward(self, x):
        return super().forward(x)["features"]


class Mfcl(shim.Adapter):
    NAME = "mfcl"
    REPOSITORY = "https://github.com/SaraBabakN/MFCL-NeurIPS23"
    COMMIT = "8ab937b97e9d5c893d8a3965ded90deacc030cfa"

    def load(self, checkout):
        super().load(checkout)
        import clients.helper
        import clients.MFCL
        import models.generator
        import models.myNetwork
        self.client, self.helper = clients.MFCL, clients.helper
        self.generators, self.nets = models.generator, models.myNetwork


# -- Weights by name --------------------------------------------------------------------------------------------------

def mneme_name(name):
    return name.replace("feature.net.", "")


def net_of(adapter, prefix, running=None, seen=SEEN):
    """A network whose head has the first `seen` rows of the values computed from names."""
    net = adapter.nets.network(seen, Trunk()).double()
    with torch.no_grad():
        for name, value in net.named_parameters():
            if not name.startswith("fc."):
                value.copy_(made_values(prefix + mneme_name(name), tuple(value.shape)))
        for end, shape in (("weight", (64,)), ("bias", ())):
            getattr(net.fc, end).copy_(made_values(prefix + "fc." + end, (CLASSES, *shape))[:seen])
        if running:
            net.load_state_dict({"feature.net." + name: torch.tensor(values) for name, values in running.items()},
                                strict=False)
    return net


def running_of(adapter):
    """Sets running statistics to the statistics of images that are computed from names, so that the statistics fit the
    inputs of every layer."""
    return {mneme_name(name): values for name, values in calibrated(net_of(adapter, "teacher.")).items()}


def moved(net):
    """Summaries of all tensors of a net under mneme's names."""
    return {mneme_name(name): summary(mneme_name(name), value)
            for name, value in net.state_dict().items() if not name.endswith("num_batches_tracked")}


# -- Generator --------------------------------------------------------------------------------------------------------

def generator_of(adapter, stages):
    """Makes a generator with two upsampling stages, or with three, from a class that always has 128 and 64 filters."""
    made = (adapter.generators.Generator(CODE, 3, SIDE, 2 * FILTERS) if stages == 2
            else adapter.generators.GeneratorMed(CODE, 3, SIDE))
    with torch.no_grad():
        for name, value in made.named_parameters():
            value.copy_(made_values("generator." + name, tuple(value.shape)))
    return made.double()


def generator_state(generator):
    return {name: summary("generator." + name, value) for name, value in generator.state_dict().items()
            if not name.endswith("num_batches_tracked")}


class Watched(torch.optim.Adam):
    """Adam that records, after each step, the local variables of the calling function."""

    noted = None  # function that receives these variables

    def step(self, *given, **named):
        super().step(*given, **named)
        self.noted(sys._getframe(2).f_locals)


def generator_steps(adapter, running, stages):
    """Steps of Teacher.get_images: terms, and the generator after each step; then images in evaluation mode, and
    labels."""
    generator, kept, after, drawn = generator_of(adapter, stages), [], [], iter(range(STEPS + 1))

    def note(local):
        terms = {name: rounded(local[variable].detach()) for name, variable in TERMS.items()}
        after.append({**terms, "labels": rounded(kept[-1]), "generator": generator_state(generator)})

    def criterion(*given):
        value = nn.functional.cross_entropy(*given)
        kept.append(value.item())  # copied, since the code adds the other terms in place
        return value

    def codes(*size, **_):
        return 2 * values_of(f"codes.{next(drawn)}", size).double()

    switches = types.SimpleNamespace(bn_loss=1, noise=1, ie_loss=1, act_loss=0, w_ie=1.0, w_act=0.1)
    optimizer = Watched(generator.parameters(), lr=1e-3)
    optimizer.noted = note
    teacher = adapter.helper.Teacher(
        solver=net_of(adapter, "teacher.", running), generator=generator, gen_opt=optimizer,
        img_shape=(-1, 3, SIDE, SIDE), iters=STEPS, deep_inv_params=[1e-3, 50.0, 1e-3, 1e3, 1],
        class_idx=numpy.arange(SEEN), train=False, args=switches)
    teacher.smoothing = teacher.smoothing.double()
    teacher.criterion.forward = criterion
    with replaced({(torch, "randn"): codes}), shim.quiet():
        teacher.get_images(bs=BATCH, epochs=STEPS)
        shown, labels = teacher.sample(BATCH)
    return {"steps": after, "sample": summary("sample", shown), "labels": labels.tolist()}


def generators(adapter, running):
    return {"settings": {"batch": BATCH, "code": CODE, "filters": FILTERS}, "running": running,
            "two": generator_steps(adapter, running, 2), "three": generator_steps(adapter, running, 3)}


# -- Clients ----------------------------------------------------------------------------------------------------------

class SampleOf:
    """Replaces a Teacher whose images are given. It has the functions of the code that train_cl calls."""

    def __init__(self, adapter, solver, batches):
        self.helper, self.solver, self.given = adapter.helper.Teacher, solver, batches
        self.class_idx = list(range(SEEN))

    def __deepcopy__(self, _):
        return self  # the remaining batches are counted once

    def generate_scores(self, x, **named):
        return self.helper.generate_scores(self, x, **named)

    def generate_scores_pen(self, x):
        return self.helper.generate_scores_pen(self, x)

    def sample(self, size, return_scores):
        pixels = next(self.given)
        assert len(pixels) == size and return_scores
        with torch.no_grad():
            scores = self.solver(pixels)[:, self.class_idx]
        return pixels, scores.max(dim=1)[1], scores


def client_steps(adapter, running, batches):
    """Steps of train_cl over batches (images, labels, images of the generator): terms by step, and the net."""
    client = adapter.client.MFCL_client.__new__(adapter.client.MFCL_client)
    vars(client).update(last_valid_dim=SEEN, valid_dim=CLASSES, mu=0.1, ft_weight=1.0, syn_size=REPLAYED, local_epoch=1,
                        kd_criterion=nn.MSELoss(reduction="none"), criterion_fn=nn.functional.cross_entropy,
                        train_loader=[(pixels, labels) for pixels, labels, _ in batches])
    kept = []
    for name in ("criterion", "kd"):
        setattr(client, name, cloned(kept, getattr(client, name)))
    solver = net_of(adapter, "teacher.", running).eval()  # as Teacher does
    net = net_of(adapter, "client.", running, CLASSES).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=0.00001)
    with shim.quiet():
        client.train_cl(net, (SampleOf(adapter, solver, iter([made for _, _, made in batches])), solver.fc), optimizer)
    names = ("cross_entropy", "head_cross_entropy", "feature_distillation")
    terms = [dict(zip(names, kept[first:first + 3])) for first in range(0, len(kept), 3)]
    return terms, moved(net)


def cloned(kept, function):
    """Returns `function` extended to append copies of its results to `kept`, before the code changes them in place."""
    def call(*given):
        value = function(*given)
        kept.append(rounded(value.detach()))
        return value
    return call


def local_steps(adapter, running):
    """Three steps of a client in the second task, at the official learning rates, with the net after each step."""
    labels = [torch.tensor([SEEN + (i + step) % (CLASSES - SEEN) for i in range(OWN)]) for step in range(CLIENT_STEPS)]
    batches = [(images(f"own.{step}", (OWN, 3, SIDE, SIDE)), labels[step],
                images(f"replayed.{step}", (REPLAYED, 3, SIDE, SIDE))) for step in range(CLIENT_STEPS)]
    runs = [client_steps(adapter, running, batches[:count]) for count in range(1, CLIENT_STEPS + 1)]
    return {"settings": {"own": OWN, "replayed": REPLAYED, "rate": 0.1, "decay": 1e-5}, "running": running,
            "labels": [values.tolist() for values in labels], "steps": runs[-1][0],
            "weights": [weights for _, weights in runs]}


def steps(adapter):
    running = running_of(adapter)
    return {"mfcl/generator": generators(adapter, running), "mfcl/local_steps": local_steps(adapter, running)}


if __name__ == "__main__":
    shim.in_double()
    sys.exit(shim.main(Mfcl(), steps, __doc__))
