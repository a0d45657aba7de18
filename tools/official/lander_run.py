"""A small whole run of LANDER's own program, on rows, split and initial weights that mneme has, too.

compare.py runs this file in a process of its own: lander_run.py CHECKOUT FOLDER. FOLDER holds what small_run() wrote;
trace.json is added to it.
"""
import json
import os
import shutil
import sys

import numpy
import torch
from torch import nn

import shim
from cifar100 import cifar100_rows
from lander import BackboneOf, Lander

TASKS, CLASSES, CLIENTS, ROUNDS, PER_CLASS, EMBEDDING = 5, 20, 5, 5, 100, 512
SMALL = {"tasks": TASKS, "increment": CLASSES // TASKS, "num_users": CLIENTS, "com_round": ROUNDS, "local_bs": 32,
         "synthesis_batch_size": 64, "g_steps": 10, "syn_round": 4, "warmup": 2}
STUDENT_STEPS, GENERATOR_WIDTH = 10, 16

SCENARIO = """title = "LANDER beside its authors' program, a small run"
seed = {seed}
[data]
name = "cifar100"
train_per_class = {per_class}
normalize = "mean-std"
[tasks]
count = {tasks}
classes = {classes}
[partition]
kind = "file"
file = "partition.csv"
[clients]
count = {clients}
[rounds]
per_task = {rounds}
[model]
name = "resnet8"
seed_weights = "initial.safetensors"
[training]
batch = 32
[evaluation]
every = 1
[strategy]
name = "lander"
preset = "official"
label_embeddings = "embeddings.safetensors"
generator_rounds = 6
warm_up = 2
generator_steps = 10
generator_batch = 64
generator_width = {width}
student_steps = {student}
student_batch = 32
"""


def initial_weights(seed):
    """By mneme's names, the map's rows behind the head's: drawn once, for both sides."""
    torch.manual_seed(seed)
    backbone = BackboneOf(1, EMBEDDING)
    weights = {name.removeprefix("net."): value for name, value in backbone.state_dict().items()
               if not name.startswith("mapping.") and not name.endswith("num_batches_tracked")}
    head = nn.Linear(64, CLASSES)
    return {**weights, "fc.weight": torch.cat([head.weight, backbone.mapping.weight]).detach().contiguous(),
            "fc.bias": torch.cat([head.bias, backbone.mapping.bias]).detach().contiguous()}


def small_run(folder, seed, embeddings):
    """Writes the split, the initial weights, the anchors and mneme's scenario. @return path of the scenario"""
    from safetensors.torch import save_file
    _, labels = cifar100_rows("train")
    draw = numpy.random.default_rng(seed)
    lines = ["client,row"]
    for label in range(CLASSES):
        rows = draw.permutation(numpy.flatnonzero(labels == label)[:PER_CLASS])
        lines += [f"{i % CLIENTS},{row}" for i, row in enumerate(rows)]
    with open(os.path.join(folder, "partition.csv"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    save_file(initial_weights(seed), os.path.join(folder, "initial.safetensors"))
    save_file({"embeddings": embeddings[:CLASSES].detach().float().contiguous()},
              os.path.join(folder, "embeddings.safetensors"))
    path = os.path.join(folder, "scenario.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(seed=seed, per_class=PER_CLASS, tasks=TASKS, classes=CLASSES, clients=CLIENTS,
                                   rounds=ROUNDS, width=GENERATOR_WIDTH, student=STUDENT_STEPS))
    return path


# -- The official side ------------------------------------------------------------------------------------------------

class Rows:
    """What LANDER asks its data manager for, over rows of the split. Images are [n, 32, 32, 3], as PIL has them."""

    def __init__(self, adapter, train, test):
        self.adapter, self.train, self.test = adapter, train, test

    def get_task_size(self, task):
        return CLASSES // TASKS

    def get_dataset(self, classes, source, mode):
        from torchvision.transforms import Compose
        images, labels = getattr(self, source)[:2]
        places = numpy.flatnonzero(numpy.isin(labels, classes))
        kind = self.adapter.data.iCIFAR100(None)
        return self.adapter.rows_of(images[places], labels[places],
                                    Compose([*getattr(kind, f"{mode}_trsf"), *kind.common_trsf]))

    def parts(self, labels, **_):
        """In the place of partition_data: each client's rows of the task, by their places in its data set."""
        among = numpy.flatnonzero(numpy.isin(self.train[1], numpy.unique(labels)))
        clients = self.train[2][among]
        return {client: numpy.flatnonzero(clients == client) for client in range(CLIENTS)}, None


def split_rows(folder):
    """(images, labels, client) of the rows that the split names."""
    images, labels = cifar100_rows("train")
    clients, rows = numpy.loadtxt(os.path.join(folder, "partition.csv"), delimiter=",", skiprows=1, dtype=int).T
    order = numpy.argsort(rows)
    return images[rows[order]], labels[rows[order]], clients[order]


def judged(model, rows):
    """Accuracy in percent and mean cross-entropy over (images, labels) that are normalised already."""
    images, labels = rows
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(part)["logits"] for part in images.split(256)])
    return (100.0 * (logits.argmax(1) == labels).float().mean().item(),
            nn.functional.cross_entropy(logits, labels).item())


def official_run(adapter, folder, seed):
    test_images, test_labels = cifar100_rows("test")
    places = test_labels < CLASSES
    manager = Rows(adapter, split_rows(folder), (test_images[places], test_labels[places]))
    save_dir = os.path.join(folder, "pools")
    shutil.rmtree(save_dir, ignore_errors=True)
    os.makedirs("store", exist_ok=True)
    adapter.code.partition_data = manager.parts
    adapter.code.student_train_step = STUDENT_STEPS
    adapter.code.NLGenerator = lambda **named: adapter.generator_of(**{**named, "ngf": GENERATOR_WIDTH})
    shim.seed_all(seed)
    learner = adapter.learner(EMBEDDING, seed=seed, save_dir=save_dir, **SMALL)
    with shim.quiet():
        learner._network.update_fc(0 + CLASSES // TASKS)
    put_initial(learner._network, folder)
    trace = {"rounds": [], "tasks": []}
    tests = [rows_to_judge(manager, [task]) for task in range(TASKS)]
    learner._compute_accuracy = lambda model, loader: note_round(learner, trace, tests, model)
    clock = shim.Clock()
    for task in range(TASKS):
        with shim.quiet():
            learner.incremental_train(manager)
        accuracies = [judged(learner._network, rows)[0] for rows in tests[:task + 1]]
        trace["tasks"].append(accuracies)
        learner._known_classes = learner._total_classes
        learner._old_network = learner._network.copy().freeze()
    trace["cpu_seconds"] = clock.seconds()
    return trace


def rows_to_judge(manager, tasks):
    size = CLASSES // TASKS
    classes = numpy.concatenate([numpy.arange(task * size, (task + 1) * size) for task in tasks])
    rows = manager.get_dataset(classes, "test", "test")
    pixels = torch.stack([rows[i][1] for i in range(len(rows))])
    return pixels, torch.from_numpy(numpy.asarray(rows.labels)).long()


def note_round(learner, trace, tests, model):
    """In the place of the accuracies that the code prints: once a round, over all classes so far."""
    if model is not learner._network:
        return 0.0
    seen = tests[:learner._cur_task + 1]
    rows = torch.cat([part[0] for part in seen]), torch.cat([part[1] for part in seen])
    accuracy, loss = judged(model, rows)
    trace["rounds"].append({"accuracy": accuracy, "loss": loss})
    return accuracy


def put_initial(net, folder):
    from safetensors.torch import load_file
    given = load_file(os.path.join(folder, "initial.safetensors"))
    named = {"convnet.net." + name: value for name, value in given.items() if not name.startswith("fc.")}
    for end in ("weight", "bias"):
        named["convnet.mapping." + end] = given["fc." + end][CLASSES:]
    net.load_state_dict(named, strict=False)


def main():
    checkout, folder, seed = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
    adapter = Lander()
    adapter.load(checkout)
    if not os.path.exists(os.path.join(folder, "scenario.toml")):
        small_run(folder, seed, adapter.learner(EMBEDDING).label_emb)
    trace = official_run(adapter, folder, seed)
    with open(os.path.join(folder, "trace.json"), "w", encoding="utf-8") as file:
        json.dump(trace, file)


if __name__ == "__main__":
    main()
