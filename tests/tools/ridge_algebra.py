"""STSA and STSA-E on generated digits in pure Python with float64, as reference for ridge_agreement_test.

STSA is centralized ridge regression; STSA-E follows the published form of its estimate.
tools/research/export/ridge_reference.py does the same algebra in PyTorch on Fashion-MNIST; the two share no code.
"""
import csv
import hashlib
import os
from operator import mul

from made_data import write_idx

PIXELS, CLASSES, CLASSES_PER_TASK = 784, 10, 2
CLIENTS, DUMMIES, RIDGE = 4, 6, 50.0
MEAN, DEVIATION = 0.2860, 0.3530  # mneme's normalization constants of Fashion-MNIST
TRAIN_ROWS, TEST_ROWS = 600, 200


def made_digit(split, row):
    """Returns (pixels, label): one part class pattern, three parts noise."""
    label = row * 7 % CLASSES
    picture = hashlib.shake_256(f"class {label}".encode()).digest(PIXELS)
    noise = hashlib.shake_256(f"{split} row {row}".encode()).digest(PIXELS)
    return bytes((a + 3 * b) // 4 for a, b in zip(picture, noise)), label


def owner_of(row):
    """Returns client and dummy of a row. Skewed: some dummies lack a class, and the last ones have few rows."""
    client = (row * row + row // 7) % 11 % CLIENTS
    return client, (row // 3) % DUMMIES if client else 0


class MadeDigits:
    """Rows of both splits, in MNIST's file format and as a partition."""

    def __init__(self):
        self.train = [made_digit("train", row) for row in range(TRAIN_ROWS)]
        self.test = [made_digit("t10k", row) for row in range(TEST_ROWS)]

    def write(self, folder):
        """Writes folder/fashion-mnist and folder/partition.csv."""
        for prefix, rows in (("train", self.train), ("t10k", self.test)):
            write_idx(os.path.join(folder, "fashion-mnist"), prefix, rows, 28)
        with open(os.path.join(folder, "partition.csv"), "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["row", "client", "dummy"])
            writer.writerows((row, *owner_of(row)) for row in range(len(self.train)))


def dot(a, b):
    return sum(map(mul, a, b))


def relu(values):
    return [max(value, 0.0) for value in values]


def features(rows, weights, projection):
    """Returns [(random features, label)] of rows; `weights` as (shape, values) by name."""
    (width, _), flat = weights["fc1.weight"]
    layer = [flat[i * PIXELS:(i + 1) * PIXELS] for i in range(width)]
    bias = weights["fc1.bias"][1]
    (_, projected), values = projection
    columns = [values[j::projected] for j in range(projected)]
    made = []
    for pixels, label in rows:
        x = [(pixel / 255 - MEAN) / DEVIATION for pixel in pixels]
        hidden = relu(dot(x, row) + b for row, b in zip(layer, bias))
        made.append((relu(dot(hidden, column) for column in columns), label))
    return made


def add_outer(gram, a, b, factor):
    """gram += factor a b^T"""
    for line, value in zip(gram, a):
        if value:
            scaled = factor * value
            line[:] = [sum_ + scaled * other for sum_, other in zip(line, b)]


def add_estimate(gram, parts, kappa, clamped):
    """Adds a sum_k c_k c_k^T / n_k - b C C^T of one class. `parts`: (sum of features, rows) of each dummy with rows."""
    n = sum(rows for _, rows in parts)
    a, b = (n - 1) / (kappa - 1), (n - kappa) / (n * (kappa - 1))
    if clamped:
        a, b = max(a, 0.0), max(b, 0.0)
    for sums, rows in parts:
        add_outer(gram, sums, sums, a / rows)
    total = [sum(values) for values in zip(*(sums for sums, _ in parts))]
    add_outer(gram, total, total, -b)


def solved(gram, sums):
    """Returns (G + gamma I)^-1 C^T by Gaussian elimination with pivoting: a row of numbers for each class."""
    size = len(gram)
    lines = [gram[i][:i] + [gram[i][i] + RIDGE] + gram[i][i + 1:] + [c[i] for c in sums] for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda j: abs(lines[j][i]))
        lines[i], lines[pivot] = lines[pivot], lines[i]
        head = lines[i]
        for j in range(i + 1, size):
            factor = lines[j][i] / head[i]
            lines[j][i:] = [value - factor * other for value, other in zip(lines[j][i:], head[i:])]
    found = [[0.0] * size for _ in sums]
    for c, column in enumerate(found):
        for i in reversed(range(size)):
            column[i] = (lines[i][size + c] - dot(lines[i][i + 1:size], column[i + 1:])) / lines[i][i]
    return found


def learn(variant, train, test):
    """Returns (accuracy matrix in percent, last read-out [classes][width]). `train`: rows of the partition."""
    width = len(train[0][0])
    gram, sums, matrix = [[0.0] * width for _ in range(width)], [[0.0] * width for _ in range(CLASSES)], []
    for seen in range(CLASSES_PER_TASK, CLASSES + 1, CLASSES_PER_TASK):
        for c in range(seen - CLASSES_PER_TASK, seen):
            parts = {}
            for row, (h, label) in enumerate(train):
                if label != c:
                    continue
                sums[c] = list(map(sum, zip(sums[c], h)))
                if not variant.get("estimated"):
                    add_outer(gram, h, h, 1.0)
                held, count = parts.get(owner_of(row), ([0.0] * width, 0))
                parts[owner_of(row)] = list(map(sum, zip(held, h))), count + 1
            if variant.get("estimated"):
                kappa = len(parts) if variant.get("nonempty") else CLIENTS * DUMMIES
                add_estimate(gram, parts.values(), kappa, variant.get("clamped"))
        readout = solved(gram, sums[:seen])
        scale = [dot(w, w) ** 0.5 if variant.get("cosine") else 1.0 for w in readout]
        guesses = [max(range(seen), key=lambda c: dot(readout[c], h) / scale[c]) for h, _ in test]
        matrix.append([percent_right(guesses, test, task) for task in range(seen // CLASSES_PER_TASK)])
    return matrix, readout


def percent_right(guesses, test, task):
    right = [guess == label for guess, (_, label) in zip(guesses, test) if label // CLASSES_PER_TASK == task]
    return 100.0 * sum(right) / len(right)
