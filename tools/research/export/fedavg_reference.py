#!/usr/bin/env python3
"""Federated averaging in plain PyTorch, the reference with which mneme must agree.

    python3 tools/research/export/fedavg_reference.py FASHION_MNIST_FOLDER [tests/golden/fedavg_fashion_mnist]

Needs PyTorch and the four idx .gz files of Fashion-MNIST. Writes initial weights, the partition, and for each variant
the weights after the last round (computed in float64) and its accuracy. Does not use mneme.
"""
import argparse
import copy
import csv
import gzip
import json
import math
import os
import struct

import torch

CLIENT_ROWS = (40, 60, 80, 20)
TRAIN_ROWS = sum(CLIENT_ROWS)  # the first rows of the training file
TEST_ROWS = 1000               # the first rows of the test file
PIXELS, HIDDEN, CLASSES = 784, 16, 10
MEAN, DEVIATION = 0.2860, 0.3530
ROUNDS, EPOCHS, LEARNING_RATE = 5, 3, 0.1
SEED = 20170223  # with this seed no step of AdamW depends on a gradient that float32 rounds to another sign

# Each variant's scenario is the .toml file of the same name in the output folder.
VARIANTS = {
    "weighted": {},
    "uniform": {"uniform": True},
    "momentum": {"momentum": 0.9, "weight_decay": 5e-4},
    "fedprox": {"momentum": 0.9, "mu": 0.1},
    "cosine": {"cosine": True, "clip_norm": 0.5},
    "adamw": {"optimizer": torch.optim.AdamW, "learning_rate": 0.001, "weight_decay": 0.01},
}


# -- Files ------------------------------------------------------------------------------------------------------------

def read_idx(path, rows):
    """Reads the first `rows` entries of an idx .gz file as a uint8 tensor."""
    with gzip.open(path, "rb") as file:
        _, _, kind, axes = struct.unpack("BBBB", file.read(4))
        assert kind == 8, f"{path}: not unsigned bytes"
        shape = struct.unpack(f">{axes}I", file.read(4 * axes))
        assert shape[0] >= rows, f"{path}: {shape[0]} rows, {rows} wanted"
        content = file.read(rows * math.prod(shape[1:]))
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).reshape(rows, *shape[1:])


def read_split(folder, name, rows):
    """Returns normalized images [rows, 784] float64 and labels [rows] int64."""
    images = read_idx(os.path.join(folder, f"{name}-images-idx3-ubyte.gz"), rows)
    labels = read_idx(os.path.join(folder, f"{name}-labels-idx1-ubyte.gz"), rows)
    return (images.reshape(rows, PIXELS).double() / 255 - MEAN) / DEVIATION, labels.long()


def write_safetensors(path, tensors):
    """Writes the safetensors format: length of the header, header as JSON, payload in name order."""
    header, payload = {}, b""
    for name in sorted(tensors):
        content = tensors[name].detach().to(torch.float32).contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensors[name].shape),
                        "data_offsets": [len(payload), len(payload) + len(content)]}
        payload += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + payload)


# -- Federation -------------------------------------------------------------------------------------------------------

def partition():
    """Rows of each client: row r has position 37 r mod 200, and positions are dealt in blocks."""
    bounds = [sum(CLIENT_ROWS[:k]) for k in range(len(CLIENT_ROWS) + 1)]
    positions = [(37 * row) % TRAIN_ROWS for row in range(TRAIN_ROWS)]
    return [[row for row in range(TRAIN_ROWS) if low <= positions[row] < high] for low, high in zip(bounds, bounds[1:])]


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(PIXELS, HIDDEN)
        self.fc2 = torch.nn.Linear(HIDDEN, CLASSES)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def train_client(start, images, labels, variant, round_index):
    """Trains from the model `start` on full batches: one step per epoch."""
    net = copy.deepcopy(start)
    rate = variant.get("learning_rate", LEARNING_RATE)
    if variant.get("cosine"):
        rate = rate / 2 * (1 + math.cos(math.pi * round_index / ROUNDS))
    if "optimizer" in variant:
        optimizer = variant["optimizer"](net.parameters(), lr=rate, weight_decay=variant["weight_decay"])
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=variant.get("momentum", 0.0),
                                    weight_decay=variant.get("weight_decay", 0.0))
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        if "mu" in variant:  # Li et al. 2020, equation 2
            pairs = zip(net.parameters(), start.parameters())
            loss = loss + variant["mu"] / 2 * sum(((w - w0.detach()) ** 2).sum() for w, w0 in pairs)
        loss.backward()
        if "clip_norm" in variant:
            torch.nn.utils.clip_grad_norm_(net.parameters(), variant["clip_norm"])
        optimizer.step()
    return net


def average(nets, weights):
    """Weighted mean of the clients' models (McMahan et al. 2017, Algorithm 1)."""
    mean = copy.deepcopy(nets[0])
    with torch.no_grad():
        for name, value in mean.named_parameters():
            total = sum(w * dict(net.named_parameters())[name].double() for net, w in zip(nets, weights))
            value.copy_(total / sum(weights))
    return mean


def federate(initial, clients, variant, dtype):
    """Returns the global model after the last round, computed in `dtype`."""
    net = copy.deepcopy(initial).to(dtype)
    for round_index in range(ROUNDS):
        trained = [train_client(net, images.to(dtype), labels, variant, round_index) for images, labels in clients]
        weights = [1 if variant.get("uniform") else len(labels) for _, labels in clients]
        net = average(trained, weights)
    return net


def accuracy(net, images, labels):
    """Accuracy in percent."""
    with torch.no_grad():
        return 100.0 * (net(images).argmax(1) == labels).double().mean().item()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("fashion_mnist")
    arguments.add_argument("out", nargs="?", default=os.path.join("tests", "golden", "fedavg_fashion_mnist"))
    given = arguments.parse_args()
    torch.manual_seed(SEED)
    initial = Mlp()
    images, labels = read_split(given.fashion_mnist, "train", TRAIN_ROWS)
    test_images, test_labels = read_split(given.fashion_mnist, "t10k", TEST_ROWS)
    clients = [(images[rows], labels[rows]) for rows in partition()]

    write_safetensors(os.path.join(given.out, "seed_weights.safetensors"), dict(initial.named_parameters()))
    with open(os.path.join(given.out, "partition.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["client", "row"])
        writer.writerows((client, row) for client, rows in enumerate(partition()) for row in rows)
    accuracies = {}
    for name, variant in VARIANTS.items():
        exact = federate(initial, clients, variant, torch.float64)
        single = federate(initial, clients, variant, torch.float32)
        apart = max((a - b.double()).abs().max().item() for a, b in zip(exact.parameters(), single.parameters()))
        moved = max((a - b).abs().max().item() for a, b in zip(exact.parameters(), initial.parameters()))
        write_safetensors(os.path.join(given.out, f"expected_{name}.safetensors"), dict(exact.named_parameters()))
        accuracies[name] = round(accuracy(exact, test_images, test_labels), 6)
        print(f"{name}: accuracy {accuracies[name]:.1f} %, weights moved by {moved:.3g}, "
              f"float32 differs from float64 by {apart:.2g}")
    with open(os.path.join(given.out, "expected_accuracy.json"), "w", encoding="utf-8") as file:
        json.dump(accuracies, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
