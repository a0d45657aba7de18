"""Small run of LGA's or GLFC's official program: its clients, proxy server and averaging, in the loop of fl_main.py.

compare.py runs this file in a separate process: lga_run.py CHECKOUT FOLDER SEED METHOD, with METHOD lga or glfc. The
start, scenario.toml and trace.json are written into FOLDER. Each side draws the classes of clients itself. Nets have 64
features, padded with 448 zeros to the size that the programs require.
"""
import copy
import os
import random
import sys
import types

import numpy
import torch
from torch import nn

import cifar_run
import shim
from cifar100 import cifar100_rows
from cifar_run import CLASSES, INCREMENT, TASKS, Trace
from glfc import Glfc
from lga import Lga

PER_CLASS, CLIENTS, COHORT, STAYING, ROUNDS = 60, 8, 4, 2, 3
SHARE, EPOCHS, BATCH, RATE, MEMORY, ITERATIONS, IMAGES = 0.5, 2, 32, 2.0, 40, 25, 20
FEATURES, ASKED = 64, 512

SCENARIO = f"""title = "{{method}} beside its authors' program, a small run"
seed = {{seed}}
[data]
name = "cifar100"
train_per_class = {PER_CLASS}
normalize = "mean-std"
[tasks]
count = {TASKS}
classes = {CLASSES}
keep_task_share = {STAYING / CLIENTS}
[partition]
kind = "class-share"
class_share = {SHARE}
[clients]
count = {CLIENTS}
[rounds]
per_task = {ROUNDS}
cohort = {COHORT}
[model]
name = "resnet8"
seed_weights = "initial.safetensors"
[evaluation]
every = 1
[training]
epochs = {EPOCHS}
batch = {BATCH}
[strategy]
name = "{{method}}"
preset = "released"
rates = "scenario"
memory = {MEMORY}
reconstruction_steps = {ITERATIONS}
images_per_gradient = {IMAGES}
proxy_init = 0
"""


def small_run(folder, seed, method):
    torch.manual_seed(seed)
    head = nn.Linear(FEATURES, CLASSES)
    cifar_run.write_tensors(folder, "initial.safetensors", {
        **cifar_run.body_weights(cifar_run.Features()), "fc.weight": head.weight, "fc.bias": head.bias})
    with open(os.path.join(folder, "scenario.toml"), "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(seed=seed, method=method))


# -- The official side ------------------------------------------------------------------------------------------------

class Extractor(cifar_run.Features):
    """Features in the form of the programs' nets: a map of 4 x 4 equal pixels, which is pooled later."""

    def __init__(self, pooled):
        super().__init__()
        self.pooled, self.fc = pooled, nn.Linear(ASKED, 1)

    def forward(self, x):
        features = nn.functional.pad(self.net.features(x), (0, ASKED - FEATURES))
        return features if self.pooled else features[:, :, None, None].expand(-1, -1, 4, 4)


class Data:
    """Replaces the clients' data set, and provides a loader for its rows."""

    def __init__(self, view):
        images, labels = cifar100_rows("train")
        self.rows = {c: images[labels == c][:PER_CLASS] for c in range(CLASSES)}
        self.view, self.present = view, None

    def get_image_class(self, label):
        return self.rows[label]

    def getTrainData(self, classes, exemplars, exemplar_labels):
        images = [numpy.asarray(kept) for kept in exemplars] + [self.rows[c] for c in classes]
        labels = [c for c, kept in zip([*exemplar_labels, *classes], images) for _ in kept]
        self.present = numpy.concatenate(images), labels

    def __len__(self):
        return len(self.present[1])

    def __getitem__(self, place):
        from PIL import Image
        return place, self.view(Image.fromarray(self.present[0][place])), self.present[1][place]


class Shown:
    """Net that Trace can evaluate."""

    def __init__(self, net):
        self.net = net

    def eval(self):
        self.net.eval()

    def __call__(self, images):
        return {"logits": self.net(images)}


def arguments():
    return types.SimpleNamespace(dataset="cifar100", encode="lenet", iid=SHARE, lam=1.0, img_size=32,
                                 tasks_global=ROUNDS, proxy_init=0)


def pictures_of(base):
    """The proxy's data set with changed tests for emptiness, because newer numpy refuses the official ones."""
    class Pictures(base):
        def __getitem__(self, place):
            return self.getTestItem(place)

        def __len__(self):
            return len(self.TestData)
    return Pictures


def put_head(net, given, first):
    """Sets new head rows, from `first` on, to mneme's initial values."""
    with torch.no_grad():
        net.fc.weight[first:].zero_()
        net.fc.weight[first:, :FEATURES].copy_(given["fc.weight"][first:net.fc.out_features])
        net.fc.bias[first:].copy_(given["fc.bias"][first:net.fc.out_features])


class Federation:
    """Objects of fl_main.py."""

    def __init__(self, adapter, folder, lga):
        from torchvision import transforms
        normal = transforms.Normalize((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))
        view = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(p=0.5),
                                   transforms.ColorJitter(brightness=63 / 255), transforms.ToTensor(), normal])
        self.data, self.given, self.lga = Data(view), cifar_run.read_tensors(folder, "initial.safetensors"), lga
        extractor = Extractor(pooled=not lga)
        cifar_run.put_body(extractor, self.given)
        extra = (arguments(),) if lga else ()
        self.net = adapter.nets.network(INCREMENT, extractor, *((4,) if lga else ()))
        put_head(self.net, self.given, 0)
        encoder = adapter.nets.LeNet(*((5, 2) if lga else ()), num_classes=CLASSES)
        encoder.apply(adapter.nets.weights_init)
        self.clients = [adapter.client_class(INCREMENT, extractor, BATCH, INCREMENT, MEMORY, EPOCHS, RATE,
                                             copy.copy(self.data), "cpu", encoder, *extra) for _ in range(CLIENTS)]
        if lga:
            for client in self.clients:
                client.num_img = -(-PER_CLASS // 50)  # rows are read in batches of fifty
        adapter.proxy.Proxy_Data = pictures_of(adapter.proxy.Proxy_Data)
        self.proxy = adapter.proxy.proxyServer("cpu", RATE, INCREMENT, extractor, encoder, view, *extra)
        self.proxy.Iteration, self.proxy.num_image = ITERATIONS, IMAGES
        self.resting, self.noticed = [], 0

    def begin_task(self, task):
        self.resting = random.sample(range(CLIENTS), STAYING)
        self.net.Incremental_learning(INCREMENT * (task + 1))
        put_head(self.net, self.given, INCREMENT * task)
        if task == 1 and self.lga:  # the mean over 64 features
            self.net.compute_radius(self.net, self.data, INCREMENT, "cpu", -(-PER_CLASS // 50))
            self.net.radius *= (ASKED / FEATURES) ** 0.5
            self.proxy.best_perf = 0

    def round(self, task, utilities):
        """Runs a round. Learning rates stay constant, because their schedule is for rounds of twenty epochs."""
        before = self.proxy.model_back()
        cohort, weights, gradients = random.sample(range(CLIENTS), COHORT), [], []
        for client in cohort:
            state, shared = utilities.local_train(self.clients, client, self.net, task, before, 0, self.resting)
            weights.append(state)
            gradients += shared or []
            self.noticed += shared is not None
        utilities.participant_exemplar_storing(self.clients, CLIENTS, self.net, self.resting, task, cohort)
        self.net.load_state_dict(utilities.FedAvg(weights))
        self.proxy.model = copy.deepcopy(self.net)
        self.proxy.dataloader(gradients, *((self.clients[0],) if self.lga else ()))


def tests():
    images, labels = cifar100_rows("test")
    made = []
    for task in range(TASKS):
        places = numpy.flatnonzero(labels // INCREMENT == task)
        pixels = torch.from_numpy(images[places].copy()).permute(0, 3, 1, 2) / 255
        middle, spread = torch.tensor((0.5071, 0.4867, 0.4408)), torch.tensor((0.2675, 0.2565, 0.2761))
        made.append(((pixels - middle[:, None, None]) / spread[:, None, None], torch.from_numpy(labels[places])))
    return made


def official_run(adapter, folder, seed, method):
    import Fed_utils
    Fed_utils.model_to_device = lambda net, *_: net
    shim.seed_all(seed)
    if method == "glfc":  # the program has a fixed number of six classes per task
        held = int(SHARE * INCREMENT)
        adapter.code.random = types.SimpleNamespace(sample=lambda among, _: random.sample(among, held))
    trace, federation = Trace(tests()), Federation(adapter, folder, method == "lga")
    clock = shim.Clock()
    for task in range(TASKS):
        with shim.quiet():
            if task > 0:
                federation.begin_task(task)
            for _ in range(ROUNDS):
                federation.round(task, Fed_utils)
                trace.note_round(Shown(federation.net), task)
        trace.note_task(Shown(federation.net), task)
    trace.kept["noticed"] = federation.noticed
    trace.write(folder, clock.seconds())


def main():
    checkout, folder, seed, method = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3]), \
        sys.argv[4]
    if not os.path.exists(os.path.join(folder, "scenario.toml")):
        small_run(folder, seed, method)
    adapter = Lga() if method == "lga" else Glfc()
    adapter.load(checkout)
    official_run(adapter, folder, seed, method)


if __name__ == "__main__":
    main()
