#!/usr/bin/env python3
"""STSA and STSA-E in plain PyTorch on pooled data, the reference with which mneme's federation must agree.

    python3 tools/research/export/ridge_reference.py FASHION_MNIST_FOLDER [tests/golden/stsa_fashion_mnist]

Needs PyTorch and the four idx .gz files of Fashion-MNIST. Writes the weights of a frozen net, a projection, a partition
with dummy clients, and for each variant the accuracy matrix and the last read-out, in float64. STSA is centralized
ridge regression; STSA-E uses the published form of its estimate (eq. 10). Does not use mneme.
"""
import argparse
import csv
import json
import os

import torch
from fedavg_reference import read_split, write_safetensors

TRAIN_ROWS, TEST_ROWS, PIXELS, FEATURES, WIDTH, CLASSES = 1500, 1000, 784, 24, 80, 10
CLIENTS, DUMMIES, CLASSES_PER_TASK, RIDGE = 4, 6, 2, 50.0
SEED = 20250602

# Each variant's scenario is the .toml file of the same name in the output folder.
VARIANTS = {
    "exact_linear": {},
    "exact_cosine": {"cosine": True},
    "estimated_total": {"estimated": True},
    "estimated_nonempty": {"estimated": True, "nonempty": True},
    "official": {"estimated": True, "cosine": True, "clamped": True},
}


def owner_of(row):
    """Client and dummy of a row. The split is skewed: some dummies lack a class, and the last ones have few rows."""
    client = (row * row + row // 7) % 11 % CLIENTS
    return client, (row // 3) % DUMMIES if client else 0


def estimated_gram(h, labels, rows, variant):
    """Sum over classes of a sum_k c_k c_k^T / n_k - b C C^T."""
    total = torch.zeros(h.shape[1], h.shape[1], dtype=torch.float64)
    for c in sorted(set(labels.tolist())):
        parts = {}
        for i in (labels == c).nonzero().flatten().tolist():
            parts.setdefault(owner_of(rows[i]), []).append(i)
        sums = torch.stack([h[held].sum(0) for _, held in sorted(parts.items())])
        counts = torch.tensor([float(len(held)) for _, held in sorted(parts.items())], dtype=torch.float64)
        n, kappa = counts.sum().item(), float(len(parts) if variant.get("nonempty") else CLIENTS * DUMMIES)
        a, b = (n - 1) / (kappa - 1), (n - kappa) / (n * (kappa - 1))
        if variant.get("clamped"):
            a, b = max(a, 0.0), max(b, 0.0)
        everything = sums.sum(0, keepdim=True)
        total += a * sums.t() @ (sums / counts[:, None]) - b * everything.t() @ everything
    return total


def learn(variant, train, test, projection):
    """Returns (accuracy matrix, last read-out [classes, width])."""
    (h, labels), (test_h, test_labels) = [(torch.relu(x @ projection), y) for x, y in (train, test)]
    gram = torch.zeros(WIDTH, WIDTH, dtype=torch.float64)
    sums = torch.zeros(WIDTH, CLASSES, dtype=torch.float64)
    matrix = []
    for seen in range(CLASSES_PER_TASK, CLASSES + 1, CLASSES_PER_TASK):
        rows = ((labels >= seen - CLASSES_PER_TASK) & (labels < seen)).nonzero().flatten()
        part, part_labels = h[rows], labels[rows]
        gram += (estimated_gram(part, part_labels, rows.tolist(), variant) if variant.get("estimated")
                 else part.t() @ part)
        sums += part.t() @ torch.nn.functional.one_hot(part_labels, CLASSES).double()
        weights = torch.linalg.solve(gram + RIDGE * torch.eye(WIDTH, dtype=torch.float64), sums)
        shown = weights[:, :seen]
        guesses = (test_h @ (shown / shown.norm(dim=0) if variant.get("cosine") else shown)).argmax(1)
        matrix.append([100.0 * (guesses == test_labels)[test_labels // CLASSES_PER_TASK == t].double().mean().item()
                       for t in range(seen // CLASSES_PER_TASK)])
    return matrix, weights.t()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("fashion_mnist")
    arguments.add_argument("out", nargs="?", default=os.path.join("tests", "golden", "stsa_fashion_mnist"))
    given = arguments.parse_args()
    torch.manual_seed(SEED)
    net = torch.nn.Linear(PIXELS, FEATURES)
    projection = torch.randn(FEATURES, WIDTH)
    write_safetensors(os.path.join(given.out, "weights.safetensors"), {"fc1.weight": net.weight, "fc1.bias": net.bias})
    write_safetensors(os.path.join(given.out, "projection.safetensors"), {"W_R": projection})
    with open(os.path.join(given.out, "partition.csv"), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["row", "client", "dummy"])
        writer.writerows((row, *owner_of(row)) for row in range(TRAIN_ROWS))

    def features(split, rows):
        images, labels = read_split(given.fashion_mnist, split, rows)
        with torch.no_grad():
            return torch.relu(images @ net.weight.double().t() + net.bias.double()), labels

    train, test = features("train", TRAIN_ROWS), features("t10k", TEST_ROWS)
    matrices = {}
    for name, variant in VARIANTS.items():
        matrices[name], readout = learn(variant, train, test, projection.double())
        write_safetensors(os.path.join(given.out, f"expected_{name}.safetensors"), {"readout.weight": readout})
        print(f"{name}: last row {', '.join(f'{value:.2f}' for value in matrices[name][-1])} %")
    with open(os.path.join(given.out, "expected_accuracy.json"), "w", encoding="utf-8") as file:
        json.dump(matrices, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
