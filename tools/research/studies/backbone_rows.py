#!/usr/bin/env python3
"""Features of CIFAR-100's rows as a data set of numbers, so that a sweep needs neither images nor the backbone.

    tools/research/studies/backbone_rows.py CACHE ROWS.safetensors

CACHE is the feature_cache of a run of scenarios/small/fedhaf_efficientnet_*.toml. The script keeps rows of the classes
60 to 99 with labels 0 to 39, in file order. Runs with `model.name = "identity"` on them have the accuracies of runs
with the net.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from study_runs import feature_tables, labels_array  # noqa: E402
from array_bytes import Packed, write_safetensors  # noqa: E402

CLASSES, FIRST = 100, 60  # of CIFAR-100; the first class that is kept
TRAIN, TEST = 60, 40      # rows per class in the files


def rows_of(cache, per_class):
    """Bytes of the kept rows [N, D] and their labels, from the fullest table with this number of rows per class."""
    found = [table for table in feature_tables(cache) if len(table[1]) == per_class * CLASSES]
    features, known, width = max(found, key=lambda table: sum(table[1]))
    kept = [row for row in range(len(known)) if row % CLASSES >= FIRST]  # record k * 100 + c has class c
    if not all(known[row] for row in kept):
        raise SystemExit(f"{cache}: some rows have no features yet: the run did not reach its last task")
    rows = b"".join(features[4 * width * row:4 * width * (row + 1)] for row in kept)
    return rows, [row % CLASSES - FIRST for row in kept], width


def main():
    cache, out = sys.argv[1:]
    arrays = {}
    for part, per_class in (("train", TRAIN), ("test", TEST)):
        rows, labels, width = rows_of(cache, per_class)
        arrays[part + "_x"] = Packed("float32", [len(labels), width], rows)
        arrays[part + "_y"] = labels_array(labels)
    write_safetensors(out, arrays)


if __name__ == "__main__":
    main()
