"""Small runs on CIFAR-100 by an official program and by mneme: rows, their split, a start, and records.

Programs based on PyCIL (LANDER, STSA and the methods in their repositories) get rows from a data manager, which Rows
replaces. METHOD_run.py files select the checkout's classes and define mneme's scenario.
"""
import json
import os

import numpy
import torch
from torch import nn

from cifar100 import cifar100_rows
from torchvision_reference import CifarResNet

TASKS, CLASSES, CLIENTS, PER_CLASS = 3, 12, 5, 100
INCREMENT = CLASSES // TASKS

# [data], [tasks], [partition] and the start of all these scenarios.
SCENARIO = f"""[data]
name = "cifar100"
train_per_class = {PER_CLASS}
normalize = "mean-std"
[tasks]
count = {TASKS}
classes = {CLASSES}
[partition]
kind = "file"
file = "partition.csv"
[clients]
count = {CLIENTS}
[model]
name = "resnet8"
seed_weights = "initial.safetensors"
[evaluation]
every = 1
"""


class Features(nn.Module):
    """ResNet-8 for CIFAR that returns features, like the programs' own nets."""

    def __init__(self):
        super().__init__()
        self.net, self.out_dim = CifarResNet(1, 1), 64
        self.net.fc = nn.Identity()

    def forward(self, x):
        return {"fmaps": [], "features": self.net.features(x)}


# -- Inputs of both sides ---------------------------------------------------------------------------------------------

def write_split(folder, seed):
    """Writes partition.csv: each class dealt evenly over the clients, in an order from the seed."""
    _, labels = cifar100_rows("train")
    write_partition(folder, seed, [numpy.flatnonzero(labels == label)[:PER_CLASS] for label in range(CLASSES)])


def write_partition(folder, seed, rows_of_classes):
    draw = numpy.random.default_rng(seed)
    lines = ["client,row"]
    for rows in rows_of_classes:
        lines += [f"{i % CLIENTS},{row}" for i, row in enumerate(draw.permutation(rows))]
    with open(os.path.join(folder, "partition.csv"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def write_tensors(folder, name, tensors):
    from safetensors.torch import save_file
    save_file({key: value.detach().float().contiguous() for key, value in tensors.items()}, os.path.join(folder, name))


def read_tensors(folder, name):
    from safetensors.torch import load_file
    return load_file(os.path.join(folder, name))


def body_weights(net):
    """Parameters and running statistics of a Features net under mneme's names."""
    return {name.removeprefix("net."): value for name, value in net.state_dict().items()
            if name.startswith("net.") and not name.endswith("num_batches_tracked")}


def put_body(net, given):
    net.load_state_dict({"net." + name: value for name, value in given.items() if not name.startswith("fc.")},
                        strict=False)


# -- The official side ------------------------------------------------------------------------------------------------

class Rows:
    """Replaces the data manager of the programs. Images are [n, 32, 32, 3], as in PIL."""

    nb_classes = CLASSES

    def __init__(self, data, data_set, folder):
        """@param data the checkout's module utils.data @param data_set its class (images, labels, view)"""
        self.kind, self.data_set = data.iCIFAR100(None), data_set
        self.train = split_rows(folder)
        images, labels = cifar100_rows("test")
        places = labels < CLASSES
        self.test = images[places], labels[places]

    def get_task_size(self, task):
        return INCREMENT

    def get_dataset(self, classes, source, mode, shot=None):
        from torchvision.transforms import Compose
        images, labels = getattr(self, source)[:2]
        places = numpy.flatnonzero(numpy.isin(labels, classes))
        return self.data_set(images[places], labels[places],
                             Compose([*getattr(self.kind, f"{mode}_trsf"), *self.kind.common_trsf]))

    def parts(self, labels, **_):
        """Replaces partition_data: each client's rows of the task, as indices into its data set."""
        among = numpy.flatnonzero(numpy.isin(self.train[1], numpy.unique(labels)))
        clients = self.train[2][among]
        return {client: numpy.flatnonzero(clients == client) for client in range(CLIENTS)}, None

    def tests(self):
        """(images, labels) of each task's test rows, normalized."""
        made = []
        for task in range(TASKS):
            rows = self.get_dataset(numpy.arange(task * INCREMENT, (task + 1) * INCREMENT), "test", "test")
            made.append((torch.stack([rows[i][1] for i in range(len(rows))]),
                         torch.from_numpy(numpy.asarray(rows.labels)).long()))
        return made


def split_rows(folder):
    """(images, labels, client) of the rows in the split."""
    images, labels = cifar100_rows("train")
    clients, rows = numpy.loadtxt(os.path.join(folder, "partition.csv"), delimiter=",", skiprows=1, dtype=int).T
    order = numpy.argsort(rows)
    return images[rows[order]], labels[rows[order]], clients[order]


def judged(model, rows):
    """Accuracy in percent and mean cross-entropy over normalized (images, labels)."""
    images, labels = rows
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(part)["logits"] for part in images.split(256)])
    return (100.0 * (logits.argmax(1) == labels).float().mean().item(),
            nn.functional.cross_entropy(logits, labels).item())


class Trace:
    """Content of trace.json: accuracy and loss after each round, accuracies after each task, CPU seconds."""

    def __init__(self, tests):
        self.tests, self.kept = tests, {"rounds": [], "tasks": []}

    def note_round(self, model, task):
        """Records a round over all classes so far. @return accuracy in percent"""
        seen = self.tests[:task + 1]
        accuracy, loss = judged(model, tuple(torch.cat(parts) for parts in zip(*seen)))
        self.kept["rounds"].append({"accuracy": accuracy, "loss": loss})
        return accuracy

    def note_task(self, model, task):
        self.kept["tasks"].append([judged(model, rows)[0] for rows in self.tests[:task + 1]])

    def write(self, folder, cpu_seconds):
        with open(os.path.join(folder, "trace.json"), "w", encoding="utf-8") as file:
            json.dump({**self.kept, "cpu_seconds": cpu_seconds}, file)


def watch_rounds(learner, trace):
    """Replaces the program's evaluations with ours, once per round; models of clients are not evaluated."""
    learner._compute_accuracy = lambda model, _: (trace.note_round(model, learner._cur_task)
                                                  if model is learner._network else 0.0)
