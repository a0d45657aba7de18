#!/usr/bin/env python3
"""Steps of LANDER's official classes (Tran et al. 2024, CVPR) on a CPU.

    tools/research/official/lander.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/tmtuan1307/LANDER at the commit below. Writes lander/synthesize.json (some rounds of
NAYER.synthesize, and steps of its student) and lander/local_steps.json (steps of clients). Weights, images and all
random draws are computed from names, so that the C++ test can repeat them. All values are computed in float64.
"""
import os
import sys

import torch
from torch import nn

import shim
from shim import kept_by, listed, made_values, replaced, rounded, summary, values_of
from torchvision_reference import CifarResNet, images

SIDE, SEEN, CLASSES, EMBEDDING = 16, 4, 6, 5  # SEEN: classes so far; CLASSES: of the run; EMBEDDING: of an anchor
CHUNK = 10                                    # rows that share a noise layer, fixed in data_generation


class BackboneOf(nn.Module):
    """Residual net for CIFAR with the outputs of the code's nets: features, and their map into the space of anchors."""

    def __init__(self, blocks, embedding):
        super().__init__()
        self.net = CifarResNet(blocks, 1)
        self.net.fc = nn.Identity()
        self.out_dim = 64
        self.mapping = nn.Linear(64, embedding)

    def forward(self, x):
        features = self.net.features(x)
        return {"fmaps": [], "features": features, "att": self.mapping(features)}


class Views:
    """Replaces kornia's crop and flip: per row [B] offsets of rows and columns in 0 to 8, and flips."""

    given = None     # () -> (down, right, flipped), or None: drawn
    identity = False

    @classmethod
    def next(cls, rows):
        if cls.given:
            return cls.given(rows)
        return torch.randint(9, (rows,)), torch.randint(9, (rows,)), torch.rand(rows) < 0.5


class RandomCrop:
    """Replaces both transforms: the flip of a row follows its crop, as in the code's list of the two."""

    def __init__(self, size, padding):
        self.size, self.padding = size, padding

    def __call__(self, x):
        if Views.identity:
            return x
        padded = nn.functional.pad(x, [self.padding] * 4)
        down, right, flipped = Views.next(len(x))
        rows = [padded[i, :, d:d + self.size[0], r:r + self.size[1]]
                for i, (d, r) in enumerate(zip(down.tolist(), right.tolist()))]
        return torch.stack([row.flip(-1) if f else row for row, f in zip(rows, flipped.tolist())])


class Lander(shim.Adapter):
    NAME = "lander"
    REPOSITORY = "https://github.com/tmtuan1307/LANDER"
    COMMIT = "44d7acc103e4402c7f26348808d2febddf98a860"
    STUBS = ("kornia", "scipy", "sklearn")

    def load(self, checkout):
        shim.check_commit(checkout, self.REPOSITORY, self.COMMIT)
        shim.module_of("kornia")
        augmentation = shim.module_of("kornia.augmentation", RandomCrop=RandomCrop,
                                      RandomHorizontalFlip=lambda *_, **__: lambda x: x)
        sys.modules["kornia"].augmentation = augmentation
        shim.prepare(checkout, self.STUBS)
        import methods.lander
        import utils.data
        import utils.inc_net
        self.code, self.data, self.nets = methods.lander, utils.data, utils.inc_net
        self.code.float = lambda shown: shown  # only used by a print() that newer numpy refuses
        self.generator_of = methods.generator.NLGenerator
        self.rows_of = lambda images, labels, view: utils.data_manager.DummyDataset(images, labels, view)

    def arguments(self, **changed):
        """Default arguments of main.py."""
        return {"dataset": "cifar100", "net": "resnet8", "tasks": 5, "increment": 4, "seed": 1, "num_users": 5,
                "com_round": 100, "local_ep": 2, "local_bs": 128, "local_lr": 4e-2, "beta": 0.5, "frac": 1.0,
                "weight_decay": 5e-4, "lr_g": 2e-3, "synthesis_batch_size": 256, "bn": 1.0, "oh": 0.5, "adv": 1.0,
                "nz": 256, "nums": 10000, "warmup": 10, "syn_round": 40, "g_steps": 40, "num_worker": 0, "mulc": None,
                "syn_bs": 1, "r": 0.015, "ltc": 5, "pre": 0.4, "cur": 0.2, "type": -1, "syn": 1, "gpu": "cpu",
                "wandb": 0, "exp_name": "beside", "method": "lander", "save_dir": "run",
                "class_order": list(range(100)), **changed}

    def learner(self, embedding, blocks=1, **changed):
        """LANDER's learner with a small net instead of ResNet-18."""
        self.nets.get_convnet = lambda args, pretrained=False: BackboneOf(blocks, embedding)
        with shim.quiet():
            return self.code.LANDER(self.arguments(**changed))

    def make(self, split, initial):
        self.split, self.initial = split, initial

    def step(self, batch):
        """One step of a client on a fixed batch: (images, labels, rows to replay or None)."""
        return client_steps(self, self.present, [batch])[0]

    def state(self):
        return dict(self.present._network.state_dict())


# -- Weights by name --------------------------------------------------------------------------------------------------

def named_values(net, prefix, running=None):
    """Fills a net with values under mneme's names (without "net."; the map's rows follow the head's)."""
    with torch.no_grad():
        for name, value in net.named_parameters():
            if not name.startswith(("fc.", "convnet.mapping.")):
                value.copy_(made_values(prefix + name.replace("convnet.net.", ""), tuple(value.shape)))
        head = {end: made_values(prefix + "fc." + end, (CLASSES + EMBEDDING, *shape))
                for end, shape in (("weight", (64,)), ("bias", ()))}
        for end, rows in head.items():
            getattr(net.fc, end).copy_(rows[:getattr(net.fc, end).shape[0]])
            getattr(net.convnet.mapping, end).copy_(rows[CLASSES:])
        if running:
            net.load_state_dict({"convnet.net." + name: torch.tensor(values) for name, values in running.items()},
                                strict=False)
    return net


def calibrated(net):
    """Sets running statistics to the statistics of images that are computed from names, so that the statistics fit the
    inputs of every layer."""
    layers = [layer for layer in net.modules() if isinstance(layer, nn.BatchNorm2d)]
    for layer in layers:
        layer.momentum = 1.0
    net.train()(images("calibration", (32, 3, SIDE, SIDE)))
    for layer in layers:
        layer.momentum = 0.1
    return {name.replace("convnet.net.", ""): listed(values) for name, values in net.named_buffers()
            if not name.endswith("num_batches_tracked")}


def net_of(adapter, prefix, running=None, seen=SEEN):
    net = adapter.nets.IncrementalNet(adapter.arguments(), False)
    with shim.quiet():
        net.update_fc(seen)
    return named_values(net.double(), prefix, running)


def moved(net):
    """Summaries of all tensors of a net under mneme's names; the map is a separate part."""
    named = {name.replace("convnet.net.", "").replace("convnet.", ""): value
             for name, value in net.state_dict().items() if not name.endswith("num_batches_tracked")}
    return {name: summary(name, value) for name, value in named.items()}


# -- Generator --------------------------------------------------------------------------------------------------------

BATCH, NOISE, FILTERS, ROUNDS, STEPS, WARM_UP, STUDENT_BATCH = 26, 8, 4, 5, 3, 2, 8


def offsets_named(view, rows):
    """Crops and flips by the view's number, as Views.given returns them."""
    drawn = values_of(f"views.{view}", (3 * rows,)).reshape(3, rows)
    return ((drawn[0] + 1) * 4.5).long().clamp(max=8), ((drawn[1] + 1) * 4.5).long().clamp(max=8), drawn[2] > 0


class Draws:
    """Replaces torch's draws in NAYER: noise layers, labels after complete runs of classes, crops and flips."""

    def __init__(self, views):
        self.round, self.view, self.views = -1, 0, views

    def layer(self, weight, mean=0, std=1):
        """Replaces nn.init.normal_ of a noise layer: [noise, embedding] with large and small numbers."""
        with torch.no_grad():
            weight.copy_(2 * values_of(f"noise.{self.round}.{self.layer_index}", tuple(weight.shape)))
        self.layer_index += 1

    def labels(self, classes, size):
        return torch.tensor([(self.round + 3 * i) % classes for i in range(size[0])], dtype=torch.long)

    def offsets(self, rows):
        self.view += 1
        return offsets_named(self.view - 1, rows)


def synthesised(adapter, views):
    """Rounds of NAYER.synthesize. @param views True: crops and flips from names; False: unchanged pixels"""
    code = adapter.code
    adapter.nets.get_convnet = lambda args, pretrained=False: BackboneOf(1, EMBEDDING)
    running = calibrated(net_of(adapter, "teacher."))
    teacher, student = net_of(adapter, "teacher.", running), net_of(adapter, "student.", running)
    anchors = values_of("anchors", (CLASSES, EMBEDDING)).double()
    generator = adapter.generator_of(ngf=FILTERS, img_size=SIDE, nc=3, nl=CHUNK, label_emb=anchors, le_emb_size=NOISE,
                                     le_size=EMBEDDING, sbz=BATCH).double()
    with torch.no_grad():
        for name, value in generator.named_parameters():
            if name != "label_emb":
                value.copy_(made_values("generator." + name, tuple(value.shape)))
    draws = Draws(views)
    Views.identity, Views.given = not views, draws.offsets
    arguments = adapter.arguments(warmup=WARM_UP, synthesis_batch_size=BATCH, g_steps=STEPS, local_bs=STUDENT_BATCH)
    maker = code.NAYER(teacher, student, generator, num_classes=SEEN, img_size=(3, SIDE, SIDE), save_dir="run",
                       synthesis_batch_size=BATCH, iterations=STEPS, warmup=WARM_UP, lr_g=2e-3, adv=1.0, bn=1.0, oh=0.5,
                       ltc=5, r=0.015, device="cpu", bn_mmt=0.9, args=arguments, label_emb=anchors)
    kept = Keeper(maker)
    rounds = []
    for number in range(ROUNDS):
        draws.round, draws.layer_index = number, 0
        with replaced({(torch, "randint"): draws.labels, (nn.init, "normal_"): draws.layer}), shim.quiet():
            maker.synthesize()
        rounds.append({"steps": kept.take(), "mean": listed(maker.mean), "deviation": listed(maker.std),
                       "generator": moved_generator(generator), "best": kept.best(), "labels": kept.labels})
    return running, rounds, maker


ADAM = torch.optim.Adam


def watched_adam(note):
    """Adam that calls `note` with the local variables of the function that clears its gradients."""

    class Watched(ADAM):
        def zero_grad(self, *given, **named):
            note(sys._getframe(1).f_locals)
            super().zero_grad(*given, **named)
    return Watched


class Keeper:
    """Records a round of NAYER: values by step and the stored batch, without the student's steps."""

    def __init__(self, maker):
        self.maker, self.steps, self.stored = maker, [], None
        maker.data_pool.add = self.store
        maker.student_train = lambda student, teacher: None
        self.labels = None
        made = maker.generate_ys

        def labels_kept(cr=0.0):
            targets, ys = made(cr)
            self.labels = targets.tolist()
            return targets, ys
        maker.generate_ys = labels_kept
        torch.optim.Adam = watched_adam(self.note)

    def note(self, local):
        names = {"statistics": "loss_bn", "labels": "loss_oh", "adversary": "loss_adv", "bound": "loss_f",
                 "total": "loss"}
        self.steps.append({name: rounded(local[variable].detach()) for name, variable in names.items()})

    def store(self, batch, targets=None):
        self.stored = batch

    def take(self):
        steps, self.steps = self.steps, []
        return steps

    def best(self):
        """Sum and projection of the saved bytes; None in warm-up rounds."""
        if self.stored is None:
            return None
        pixels, self.stored = self.stored, None
        saved = torch.from_numpy((pixels.clamp(0, 1).numpy() * 255).astype("uint8")).double()
        return {"pixels": summary("best", pixels), "bytes": summary("bytes", saved)}


def moved_generator(generator):
    return {name: summary("generator." + name, value) for name, value in generator.state_dict().items()
            if name != "label_emb" and not name.endswith("num_batches_tracked")}


def student_steps(adapter, maker, running, count=3):
    """NAYER.student_train on batches computed from names: the student after each of `count` runs of several steps."""
    after = []
    for steps in range(1, count + 1):
        student = net_of(adapter, "student.", running)
        adapter.code.student_train_step = steps
        maker.get_all_syn_data = lambda: [images(f"student.{i}", (STUDENT_BATCH, 3, SIDE, SIDE)) for i in range(count)]
        with shim.quiet():
            type(maker).student_train(maker, student, maker.teacher)
        after.append(moved(student))
    return after


def synthesis(adapter):
    running, plain, maker = synthesised(adapter, views=False)
    _, shown, _ = synthesised(adapter, views=True)
    return {"settings": {"side": SIDE, "classes": CLASSES, "seen": SEEN, "embedding": EMBEDDING, "batch": BATCH,
                         "noise": NOISE, "filters": FILTERS, "chunk": CHUNK, "warm_up": WARM_UP, "steps": STEPS,
                         "student_batch": STUDENT_BATCH},
            "running": running, "rounds": plain, "rounds_of_views": shown,
            "student": student_steps(adapter, maker, running)}


# -- Clients ----------------------------------------------------------------------------------------------------------

OWN, REPLAYED, CLIENT_STEPS = 6, 4, 3


def client_steps(adapter, learner, batches):
    """Terms by step of _local_update or _local_finetune over batches (images, labels, rows to replay or None)."""
    code, functional = adapter.code, torch.nn.functional
    kept = []
    names = {(functional, "cross_entropy"): "cross_entropy", (functional, "mse_loss"): "squares",
             (code, "_KD_loss"): "distillation"}
    later = batches[0][2] is not None
    own = [(None, pixels, labels) for pixels, labels, _ in batches]
    with replaced({place: kept_by(kept, name, getattr(*place)) for place, name in names.items()}), shim.quiet():
        if later:
            learner.syn_data_loader = [replayed for _, _, replayed in batches]
            learner._local_finetune(learner._old_network, learner._network, own, 1, 0, learner.args["local_lr"])
        else:
            learner._local_update(learner._network, own, learner.args["local_lr"])
    steps, each = [], 4 if later else 2
    for first in range(0, len(kept), each):
        terms = {}
        for name, value in kept[first:first + each]:
            name = "map_distillation" if name == "squares" and "squares" in terms else name
            terms[name] = rounded(value)
        steps.append(terms)
    return steps


def local_steps(adapter):
    """Three steps of a client in the first task and of a client in the second task, at the official learning rates."""
    made = {"settings": {"side": SIDE, "classes": CLASSES, "embedding": EMBEDDING, "rate": 0.04, "momentum": 0.9,
                         "decay": 5e-4, "own": OWN, "replayed": REPLAYED, "radius": RADIUS}}
    for name, old, seen in (("first", 0, SEEN), ("later", SEEN, CLASSES)):
        running = calibrated(net_of(adapter, "teacher."))
        labels = [torch.tensor([old + (i + step) % (seen - old) for i in range(OWN)]) for step in range(CLIENT_STEPS)]
        batches = [(images(f"own.{step}", (OWN, 3, SIDE, SIDE)), labels[step],
                    images(f"replayed.{step}", (REPLAYED, 3, SIDE, SIDE)) if old else None)
                   for step in range(CLIENT_STEPS)]
        after = []
        for count in range(1, CLIENT_STEPS + 1):  # each from the start, since momentum depends on all earlier steps
            learner = adapter.learner(EMBEDDING, local_ep=1, r=RADIUS)
            learner._known_classes, learner._total_classes, learner._cur_task = old, seen, int(old > 0)
            learner.label_emb = values_of("anchors", (CLASSES, EMBEDDING)).double()
            learner._network = net_of(adapter, "client.", running, seen)
            learner._old_network = net_of(adapter, "teacher.", running, SEEN).eval()
            terms = client_steps(adapter, learner, batches[:count])
            after.append(moved(learner._network))
        made[name] = {"running": running, "labels": [values.tolist() for values in labels], "steps": terms,
                      "weights": after}
    return made


RADIUS = 0.7  # similar to the map's distances, so that the hinge is active only in some steps


def steps(adapter):
    os.makedirs("run", exist_ok=True)
    return {"lander/synthesize": synthesis(adapter), "lander/local_steps": local_steps(adapter)}


if __name__ == "__main__":
    shim.in_double()
    sys.exit(shim.main(Lander(), steps, __doc__))
