#!/usr/bin/env python3
"""Steps of TARGET's official classes (Zhang et al. 2023, ICCV) on a CPU.

    tools/research/official/target.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/zj-jayzhang/Federated-Class-Continual-Learning at the commit below. Writes
target/synthesize.json (rounds of GlobalSynthesizer.synthesize with both outer steps, and steps of TARGET.kd_train) and
target/local_steps.json (steps of TARGET._local_finetune). Weights, images and all random draws are computed from names,
so that the C++ test can repeat them. All values are computed in float64.
"""
import os
import sys
import types

import numpy
import torch

import shim
from cifar_run import Features
from lander import RandomCrop, Views, calibrated, offsets_named, watched_adam
from shim import kept_by, made_values, replaced, rounded, summary, values_of
from torchvision_reference import images

SIDE, SEEN, CLASSES = 16, 4, 6  # SEEN: classes of the teacher; CLASSES: of the run
BATCH, CODE, FILTERS, ROUNDS, STEPS, WARM_UP, STUDENT_BATCH = 26, 8, 4, 4, 3, 3, 8
OWN, REPLAYED, CLIENT_STEPS = 6, 4, 3
# Normalization of pixels in [0, 1] for nets: factor, as rounded to float32, and shift.
SCALE = [float(numpy.float32(value / 255) * numpy.float32(255)) for value in (4.0, 2.0, 3.0)]
SHIFT = [-2.0, -0.5, -1.5]


class Target(shim.Adapter):
    NAME = "target"
    REPOSITORY = "https://github.com/zj-jayzhang/Federated-Class-Continual-Learning"
    COMMIT = "78cb9c05eea2555c33c0b83391811c3bb1ef059c"
    STUBS = ("kornia", "scipy", "sklearn")

    def load(self, checkout):
        shim.check_commit(checkout, self.REPOSITORY, self.COMMIT)
        augmentation = shim.module_of("kornia.augmentation", RandomCrop=RandomCrop,
                                      RandomHorizontalFlip=lambda *_, **__: lambda x: x)
        shim.module_of("kornia", augmentation=augmentation)
        shim.prepare(checkout, self.STUBS)
        import methods.base
        shim.module_of("models", base=methods.base)  # target.py imports it by an earlier name
        sys.modules["models.base"] = methods.base
        import methods.target
        import utils.inc_net
        self.code, self.nets = methods.target, utils.inc_net
        self.nets.get_convnet = lambda args, pretrained=False: Features()


# -- Weights by name --------------------------------------------------------------------------------------------------

def net_of(adapter, prefix, running=None, seen=SEEN):
    """IncrementalNet whose head has the first `seen` rows of the values computed from names."""
    net = adapter.nets.IncrementalNet({"net": "resnet8"}, False)
    net.update_fc(seen)
    net = net.double()
    with torch.no_grad():
        for name, value in net.named_parameters():
            if not name.startswith("fc."):
                value.copy_(made_values(prefix + name.replace("convnet.net.", ""), tuple(value.shape)))
        for end, shape in (("weight", (64,)), ("bias", ())):
            getattr(net.fc, end).copy_(made_values(prefix + "fc." + end, (CLASSES, *shape))[:seen])
        if running:
            net.load_state_dict({"convnet.net." + name: torch.tensor(values) for name, values in running.items()},
                                strict=False)
    return net


def moved(net):
    """Summaries of all tensors of a net under mneme's names."""
    return {name.replace("convnet.net.", ""): summary(name.replace("convnet.net.", ""), value)
            for name, value in net.state_dict().items() if not name.endswith("num_batches_tracked")}


# -- Generator --------------------------------------------------------------------------------------------------------

class Draws:
    """Replaces torch's draws in synthesize(): codes, labels, crops and flips."""

    def __init__(self):
        self.round, self.view = -1, 0

    def codes(self, size):
        return 2 * values_of(f"codes.{self.round}", tuple(size)).double()

    def labels(self, low, high, size):
        return torch.tensor([(self.round + 3 * i) % high for i in range(size[0])], dtype=torch.long)

    def offsets(self, rows):
        self.view += 1
        return offsets_named(self.view - 1, rows)


class Keeper:
    """Records a round of synthesize(): values by step, and the stored batch."""

    def __init__(self, maker):
        self.steps, self.stored, self.labels = [], None, None
        maker.data_pool.add = self.store

    def store(self, batch, targets=None):
        self.stored = batch

    def note(self, local):
        names = {"statistics": "loss_bn", "labels": "loss_oh", "adversary": "loss_adv", "total": "loss"}
        self.steps.append({name: rounded(local[variable].detach()) for name, variable in names.items()})
        self.labels = local["targets"].tolist()

    def take(self):
        steps, self.steps = self.steps, []
        saved = torch.from_numpy((self.stored.clamp(0, 1).numpy() * 255).astype("uint8")).double()
        return {"steps": steps, "labels": self.labels,
                "best": {"pixels": summary("best", self.stored), "bytes": summary("bytes", saved)}}


def generator_of(adapter):
    generator = adapter.code.Generator(nz=CODE, ngf=FILTERS, img_size=SIDE, nc=3).double()
    with torch.no_grad():
        for name, value in generator.named_parameters():
            value.copy_(made_values("generator." + name, tuple(value.shape)))
    return generator


def synthesised(adapter, running, is_maml):
    """Rounds of GlobalSynthesizer.synthesize, with the adversarial loss term from round WARM_UP on."""
    generator, draws = generator_of(adapter), Draws()
    Views.identity, Views.given = False, draws.offsets
    maker = adapter.code.GlobalSynthesizer(
        net_of(adapter, "teacher.", running), net_of(adapter, "student.", running), generator, nz=CODE,
        num_classes=SEEN, img_size=(3, SIDE, SIDE), save_dir="run", iterations=STEPS, lr_g=2e-3,
        synthesis_batch_size=BATCH, sample_batch_size=BATCH, adv=1.0, bn=10.0, oh=0.5, lr_z=0.01, warmup=WARM_UP,
        bn_mmt=0.9, is_maml=is_maml,
        normalizer=adapter.code.Normalizer([-b / a for a, b in zip(SCALE, SHIFT)], [1 / a for a in SCALE]))
    kept, rounds = Keeper(maker), []
    for number in range(ROUNDS):
        draws.round = number
        with replaced({(torch, "randn"): draws.codes, (torch, "randint"): draws.labels,
                       (torch.optim, "Adam"): watched_adam(kept.note)}), shim.quiet():
            maker.synthesize()
        rounds.append({**kept.take(), "generator": {
            name: summary("generator." + name, value) for name, value in generator.named_parameters()}})
    return rounds


def student_steps(adapter, running, count=3):
    """TARGET.kd_train on batches computed from names: the student after each of `count` runs of several steps."""
    after = []
    shown = types.SimpleNamespace(get_all_syn_data=lambda: [images(f"student.{i}", (STUDENT_BATCH, 3, SIDE, SIDE))
                                                            for i in range(count)])
    for steps in range(1, count + 1):
        student, teacher = net_of(adapter, "student.", running), net_of(adapter, "teacher.", running)
        adapter.code.kd_steps = steps
        optimizer = torch.optim.SGD(student.parameters(), lr=0.2, weight_decay=0.0001, momentum=0.9)
        adapter.code.TARGET.kd_train(shown, student, teacher, adapter.code.KLDiv(T=20.0), optimizer)
        after.append(moved(student))
    return after


def synthesis(adapter):
    running = calibrated_statistics(adapter)
    return {"settings": {"batch": BATCH, "code": CODE, "filters": FILTERS, "steps": STEPS, "warm_up": WARM_UP,
                         "student_batch": STUDENT_BATCH, "scale": [4.0, 2.0, 3.0], "shift": SHIFT},
            "running": running, "first-order": synthesised(adapter, running, 1),
            "reptile": synthesised(adapter, running, 0), "student": student_steps(adapter, running)}


def calibrated_statistics(adapter):
    """Running statistics of images that are computed from names, so that the statistics fit the inputs of every
    layer."""
    return calibrated(net_of(adapter, "teacher."))


# -- Clients ----------------------------------------------------------------------------------------------------------

def client_steps(adapter, learner, network, batches):
    """Terms by step of _local_finetune over batches (images, labels, images of the pool)."""
    code, functional, kept = adapter.code, torch.nn.functional, []
    names = {(functional, "cross_entropy"): "cross_entropy", (code, "_KD_loss"): "distillation"}
    learner.syn_data_loader = [replayed for _, _, replayed in batches]
    own = [(None, pixels, labels) for pixels, labels, _ in batches]
    with replaced({place: kept_by(kept, name, getattr(*place)) for place, name in names.items()}), shim.quiet():
        learner._local_finetune(learner._old_network, network, own, 1, 0)
    return [{name: rounded(value) for name, value in kept[first:first + 2]} for first in range(0, len(kept), 2)]


def local_steps(adapter):
    """Three steps of a client in the second task, at the official learning rates."""
    running = calibrated_statistics(adapter)
    labels = [torch.tensor([SEEN + (i + step) % (CLASSES - SEEN) for i in range(OWN)]) for step in range(CLIENT_STEPS)]
    batches = [(images(f"own.{step}", (OWN, 3, SIDE, SIDE)), labels[step],
                images(f"replayed.{step}", (REPLAYED, 3, SIDE, SIDE))) for step in range(CLIENT_STEPS)]
    after = []
    for count in range(1, CLIENT_STEPS + 1):  # each from the start, since momentum depends on all earlier steps
        learner = adapter.code.TARGET.__new__(adapter.code.TARGET)
        learner.args, learner._known_classes = {"local_ep": 1, "kd": 25}, SEEN
        learner._old_network = net_of(adapter, "teacher.", running).eval()
        network = net_of(adapter, "client.", running, CLASSES)
        terms = client_steps(adapter, learner, network, batches[:count])
        after.append(moved(network))
    return {"settings": {"own": OWN, "replayed": REPLAYED, "rate": 0.01, "momentum": 0.9, "decay": 5e-4},
            "running": running, "labels": [values.tolist() for values in labels], "steps": terms, "weights": after}


def steps(adapter):
    os.makedirs("run", exist_ok=True)
    return {"target/synthesize": synthesis(adapter), "target/local_steps": local_steps(adapter)}


if __name__ == "__main__":
    shim.in_double()
    sys.exit(shim.main(Target(), steps, __doc__))
