#!/usr/bin/env python3
"""Steps of LGA's official classes (Dong et al. 2023, TPAMI) on a CPU.

    tools/research/official/lga.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/JiahuaDong/LGA at the commit below. It has no license, so no part of it is stored.
Writes lga/steps.json in float64: weights of rows, losses and their gradients, weights of a net after two steps,
entropies, the proxy's noise and scores, exemplars, gradients of prototypes, and the reconstruction of an image. glfc.py
derives from this file, because GLFC's program has the same parts.
"""
import sys
import types

import numpy
import torch
from torch import nn

import shim
from shim import listed, replaced, rounded, summary, values_of

TASK_SIZE, CLASSES, OLD, WIDTH, FEATURES = 2, 6, 4, 5, 512
LEARNED = [0, 1, 2]  # classes that the client has memorized; class 3 is not among them
LABELS = [0, 4, 1, 5, 5, 2, 0, 4, 3]
EXTENT, PROTOTYPE_CLASSES, RATE = 32, [1, 3], 2.0


class Answers(nn.Module):
    """Net whose output, or whose features, are its input."""

    def forward(self, x):
        return x

    def feature_extractor(self, x):
        return x.flatten(1)


class Scores(nn.Module):
    """Linear net on pixels, with weights computed from names."""

    def __init__(self, name, width, classes):
        super().__init__()
        self.fc = nn.Linear(width, classes)
        with torch.no_grad():
            self.fc.weight.copy_(values_of(name + ".weight", (classes, width)) * 0.3)
            self.fc.bias.copy_(values_of(name + ".bias", (classes,)) * 0.3)

    def forward(self, x):
        return self.fc(x.flatten(1))

    def feature_extractor(self, x):
        return x.flatten(1)


class Lga(shim.Adapter):
    NAME = "lga"
    REPOSITORY = "https://github.com/JiahuaDong/LGA"
    COMMIT = "867988ce6b2777b5d40ccb2e9ea09a7e70d5bf1e"
    STUBS = ("sklearn", "timm")
    SOURCES = ""  # folder of the program in the checkout

    def load(self, checkout):
        shim.check_commit(checkout, self.REPOSITORY, self.COMMIT)
        shim.prepare(checkout + self.SOURCES, self.STUBS)
        self.import_code()
        for module in (self.code, self.proxy):
            module.model_to_device = lambda model, *_: model

    def import_code(self):
        import LGA
        import myNetwork
        import ProxyServer
        self.code, self.proxy, self.nets, self.client_class = LGA, ProxyServer, myNetwork, LGA.LGA

    def arguments(self):
        return types.SimpleNamespace(dataset="cifar100", encode="lenet", iid=0.6, lam=1.0, img_size=EXTENT,
                                     tasks_global=10, proxy_init=0)

    def extractor(self):
        return types.SimpleNamespace(fc=nn.Linear(FEATURES, 1))

    def client(self, task, learned=()):
        with replaced({(self.code, "network"): lambda *_: Answers()}):
            made = self.make_client()
        made.numclass, made.task_id_old, made.learned_classes = CLASSES, task, list(learned)
        return made

    def make_client(self):
        return self.client_class(CLASSES, self.extractor(), 4, TASK_SIZE, 20, 1, 0.1, None, "cpu", self.encoder(),
                                 self.arguments())

    def server(self):
        with replaced({(self.proxy, "network"): lambda *_: Answers()}):
            return self.make_server()

    def make_server(self):
        return self.proxy.proxyServer("cpu", RATE, CLASSES, self.extractor(), self.encoder(), None, self.arguments())

    def encoder(self):
        """The official LeNet with weights computed from names, in [-0.5, 0.5], the range of its initialization."""
        made = self.nets.LeNet(*self.encoder_shape(), num_classes=CLASSES)
        with torch.no_grad():
            for name, value in made.named_parameters():
                value.copy_(values_of("encoder." + name, tuple(value.shape)) * 0.5)
        return made

    def encoder_shape(self):
        return 5, 2  # padding, stride

    def step(self, batch):
        return stepped(self, [batch])


# -- Losses of a client -----------------------------------------------------------------------------------------------

def losses(adapter):
    """Weights of rows, the loss, and its gradient with respect to the logits, for clients with and without exemplars
    and old models."""
    made = {}
    for name, task, learned, taught in (("first", 0, (), False), ("untaught", 2, LEARNED, False),
                                        ("later", 2, LEARNED, True)):
        client = adapter.client(task, learned)
        client.old_model = (lambda _: values_of("taught", (len(LABELS), OLD)).double() * 3) if taught else None
        logits = (values_of("logits", (len(LABELS), CLASSES)).double() * 3).requires_grad_()
        labels = torch.tensor(LABELS)
        weights = client.efficient_old_class_weight(logits, labels)
        loss = client._compute_loss(None, logits, labels)
        loss.backward()
        made[name] = {"weights": listed(weights), "loss": rounded(loss.detach()), "slope": listed(logits.grad)}
    return made


def stepped(adapter, batches):
    """A linear net after the client's own training on these batches, at rate 0.1 with weight decay."""
    client = adapter.client(2, LEARNED)
    client.model = Scores("client", WIDTH, CLASSES)
    old = Scores("old", WIDTH, OLD)
    client.train_loader, client.signal = [(None, rows, labels) for rows, labels in batches], False
    with shim.quiet():
        client.train(0, [old, old])
    return {name: listed(value) for name, value in client.model.named_parameters()}


def steps_of_net(adapter):
    rows = values_of("rows", (2, len(LABELS), WIDTH)).double()
    return [stepped(adapter, [(rows[i], torch.tensor(LABELS)) for i in range(count)]) for count in (1, 2)]


def entropies(adapter):
    """entropy_signal of two sets of rows in sequence: [entropy, detected]."""
    client = adapter.client(0)
    shown = []
    for name, scale in (("even", 0.1), ("sure", 6.0), ("even", 0.1)):
        rows = values_of("entropy." + name, (7, CLASSES)).double() * scale
        with shim.quiet():
            noticed = client.entropy_signal([(None, rows[:4], torch.zeros(4)), (None, rows[4:], torch.zeros(3))])
        shown.append([rounded(client.last_entropy), bool(noticed)])
    return shown


# -- Exemplars and prototypes -----------------------------------------------------------------------------------------

HERDED, KEPT = 6, 9


def herding(adapter):
    """Indices of a class's rows that the client keeps, also for a request of more rows than exist."""
    client = adapter.client(0)
    client.num_img, client.model = 1, Answers()
    client.Image_transform = lambda images, _: values_of("herded", (HERDED, FEATURES)).double()
    client._construct_exemplar_set(list(range(HERDED)), KEPT)
    return client.exemplar_set[0]


def photographs(name, count):
    """Images [count, H, W, 3] uint8, computed from a name."""
    return ((values_of(name, (count, EXTENT, EXTENT, 3)).numpy() + 1) * 127.5).astype("uint8")


def prototypes(adapter):
    """Rows that represent classes, and their gradients in the encoder after 50 gradient steps on their pixels."""
    client = adapter.client(2)
    client.num_img, client.current_class, client.learning_rate = 1, PROTOTYPE_CLASSES, RATE
    client.model = Scores("net", 3 * EXTENT * EXTENT, CLASSES)
    images = {label: photographs(f"class.{label}", 4) for label in PROTOTYPE_CLASSES}
    asked, nearest = [], []
    client.train_dataset = types.SimpleNamespace(get_image_class=lambda label: images[label])
    distances = numpy.linalg.norm

    def watched(values, axis=None):
        length = distances(values, axis=axis)
        asked.append(length)
        return length
    with replaced({(numpy.linalg, "norm"): watched}):
        gradients = client.prototype_mask()
    nearest = [int(numpy.argmin(lengths)) for lengths in asked]
    names = [name for name, _ in client.encode_model.named_parameters()]
    return {"nearest": nearest,
            "gradients": [{name: summary(name, value) for name, value in zip(names, own)} for own in gradients]}, \
        gradients


# -- Proxy ------------------------------------------------------------------------------------------------------------

MONITOR_LABELS = [1, 3, 1, 3, 3, 1, 1]


def monitor(adapter):
    """Deviations of the noise on features, the norms above which it is drawn again, and a score without noise."""
    server = adapter.server()
    features = values_of("monitor", (len(MONITOR_LABELS), FEATURES)).double() * 0.5
    server.monitor_loader = [(features, torch.tensor(MONITOR_LABELS))]
    head = Scores("monitor.head", FEATURES, CLASSES).fc
    shown = []
    server.model = types.SimpleNamespace(eval=lambda: None, radius=0.15, feature_extractor=lambda x: x,
                                         fc=lambda rows: shown.append(rows) or head(rows.double()))
    scales = []

    def no_noise(_, scale, size):
        scales.append(scale)
        return numpy.zeros(size)
    with replaced({(numpy.random, "normal"): no_noise}):
        score = server.f_monitor()
    server.model.radius = 1.0

    def accepts(length):
        drawn = iter([length])

        def first_of_length(_, scale, size):
            noise = numpy.zeros(size)
            noise[0] = next(drawn, 0.0)
            return noise
        with replaced({(numpy.random, "normal"): first_of_length}):
            server.f_monitor()
        return abs(float(shown[-1][0, 0] - features[0, 0])) > length / 2
    low, high = 0.0, 100.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if accepts(middle) else (low, middle)
    return {"deviations": [summary(f"deviations.{label}", torch.from_numpy(scales[5 * MONITOR_LABELS.index(label)]))
                           for label in sorted(set(MONITOR_LABELS))],
            "length_max": rounded(low), "score": rounded(score)}


def inversion(adapter, gradients, evaluations=12):
    """Labels recovered from gradients, and the objective at L-BFGS's first evaluations of an image."""
    server = adapter.server()
    server.pool_grad = gradients
    labels = server.gradient2label()
    server.pool_grad, server.Iteration, server.num_image = gradients[:1], 1, 1
    kept = []
    lbfgs = torch.optim.LBFGS

    class Watched(lbfgs):
        def step(self, closure):
            def watched():
                value = closure()
                kept.append(rounded(value.detach()))
                return value
            return super().step(watched)
    start = values_of("start", (1, 3, EXTENT, EXTENT)).double()
    with replaced({(torch.optim, "LBFGS"): Watched, (torch, "randn"): lambda *_: start}), shim.quiet():
        server.reconstruction()
    return {"labels": labels, "objectives": kept[:evaluations]}


def steps(adapter):
    shown, gradients = prototypes(adapter)
    made = {"losses": losses(adapter), "net": steps_of_net(adapter), "entropies": entropies(adapter),
            "exemplars": herding(adapter), "prototypes": shown, "inversion": inversion(adapter, gradients)}
    if adapter.NAME == "lga":
        made["monitor"] = monitor(adapter)
    return {adapter.NAME + "/steps": made}


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    sys.exit(shim.main(Lga(), steps, __doc__))
