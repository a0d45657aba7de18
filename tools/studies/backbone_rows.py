#!/usr/bin/env python3
"""Features of CIFAR-100's rows as a data set of numbers, so that a sweep needs neither pictures nor the backbone.

    tools/studies/backbone_rows.py CACHE ROWS.safetensors

CACHE is the feature_cache that a run of scenarios/small/fedhaf_efficientnet_*.toml has left. Kept are the rows of classes
60 to 99 with labels 0 to 39, in the order of the files: runs with `model.name = "identity"` on them have the accuracies of
those behind the net.
"""
import json
import pathlib
import struct
import sys

CLASSES, FIRST = 100, 60  # of CIFAR-100; the first that is kept
TRAIN, TEST = 60, 40      # rows of a class in the files that were read


def tables(cache):
    """(features, known rows, width) of each file of a feature cache."""
    for path in sorted(pathlib.Path(cache).glob("*.safetensors")):
        content = path.read_bytes()
        length, = struct.unpack_from("<Q", content)
        entries = {name: entry for name, entry in json.loads(content[8:8 + length]).items() if "shape" in entry}
        body = content[8 + length:]
        features, = (entry for entry in entries.values() if entry["dtype"] == "F32")
        known, = (entry for entry in entries.values() if entry["dtype"] == "U8")
        yield (body[slice(*features["data_offsets"])], body[slice(*known["data_offsets"])], features["shape"][-1])


def rows_of(cache, per_class):
    """Bytes of the kept rows [N, D] and their labels, from the fullest table with so many rows of each class."""
    found = [table for table in tables(cache) if len(table[1]) == per_class * CLASSES]
    features, known, width = max(found, key=lambda table: sum(table[1]))
    kept = [row for row in range(len(known)) if row % CLASSES >= FIRST]  # record k * 100 + c is of class c
    if not all(known[row] for row in kept):
        raise SystemExit(f"{cache}: some rows have no features yet: the run did not reach its last task")
    return b"".join(features[4 * width * row:4 * width * (row + 1)] for row in kept), [row % CLASSES - FIRST for row in kept], width


def write(path, arrays):
    """A safetensors file of {name: (dtype, shape, bytes)}."""
    header, at = {}, 0
    for name, (dtype, shape, content) in arrays.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(content)]}
        at += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    parts = [struct.pack("<Q", len(text)), text, *(content for _, _, content in arrays.values())]
    pathlib.Path(path).write_bytes(b"".join(parts))


def main():
    cache, out = sys.argv[1:]
    arrays = {}
    for part, per_class in (("train", TRAIN), ("test", TEST)):
        rows, labels, width = rows_of(cache, per_class)
        arrays[part + "_x"] = ("F32", [len(labels), width], rows)
        arrays[part + "_y"] = ("I64", [len(labels)], struct.pack(f"<{len(labels)}q", *labels))
    write(out, arrays)


if __name__ == "__main__":
    main()
