"""Data and partitions of one's own: what [data] and [partition] say, from arrays."""
import csv
import hashlib
import io
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from mneme import _safetensors
from mneme._errors import ScenarioError
from mneme._types import Path

Rows = Any  # an array of numpy, a tensor of torch, or lists
Partition = Rows | Callable[[Any, int, int], Rows]  # of (labels, clients, seed)
FOLDER = os.path.join("runs", "data")


def as_tensor(value, name):
    """A torch tensor of arrays of numpy, torch or lists."""
    try:
        tensor = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as wrong:
        raise ScenarioError([(name, f"{type(value).__name__} is no array: {wrong}")]) from None
    return tensor.detach().cpu().contiguous()


def wrong_types(train_x, train_y, test_x, test_y):
    """What is wrong with the types of arrays; the engine looks at their values."""
    for name, rows, labels in (("train", train_x, train_y), ("test", test_x, test_y)):
        if rows is None:
            continue
        if rows.dtype not in (torch.uint8, torch.float32, torch.int64):
            yield name + "_x", f"{rows.dtype}; expected uint8 images, float32 numbers or int64 tokens"
        if labels.dtype.is_floating_point or labels.dtype == torch.bool or labels.dim() != 1:
            yield name + "_y", f"{labels.dtype} of {labels.dim()} axes; expected whole numbers [N], labels from 0"
        elif len(labels) != len(rows):
            yield name + "_y", f"{len(labels)} labels of {len(rows)} rows; expected one of each"
        elif len(labels) and int(labels.min()) < 0:
            row = int((labels < 0).nonzero()[0])
            yield name + "_y", f"row {row}: label {int(labels[row])}; expected labels from 0"


def column_of(split, name):
    """A column of Hugging Face `datasets` as an array of numpy; bytes stay bytes."""
    import numpy
    if name not in split.column_names:
        raise ScenarioError([(name, f"no such column; expected one of {', '.join(split.column_names)}")])
    column = split.select_columns([name]).with_format("numpy")[:][name]
    shapes = [numpy.shape(row) for row in column] if column.dtype == object else []
    for row, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ScenarioError([(name, f"row {row} is {list(shape)} and row 0 is {list(shapes[0])}; expected rows of "
                                        "one size")])
    return column.astype(numpy.uint8) if "uint8" in str(split.features[name]) else column


def rows_of(split, columns):
    """[N, ...] of a column, or [N, F] of several."""
    import numpy
    if isinstance(columns, str):
        return column_of(split, columns)
    return numpy.stack([column_of(split, name).astype(numpy.float32) for name in columns], axis=1)


def numbered(parts, column):
    """(names of classes by their letters, numbers of each part) of labels that are texts."""
    import numpy
    names = sorted(set(parts[0].tolist()))
    known = {name: number for number, name in enumerate(names)}
    for part in parts[1:]:
        for row, name in enumerate(part.tolist()):
            if name not in known:
                raise ScenarioError([(column, f"row {row} of test: '{name}' is a class that no training row has")])
    return names, [numpy.array([known[name] for name in part.tolist()], dtype=numpy.int64) for part in parts]


class Data:
    """Rows of one's own: uint8 images [N, C, H, W], [N, H, W, C] or [N, H, W], float32 numbers, or int64 tokens [N, T].

    Arrays of numpy, torch or lists. Without test rows `test_share` of each class is drawn by key. The rows are kept
    below `folder`, by their content, so that a run can be resumed.
    """

    def __init__(self, train_x: Rows, train_y: Rows, test_x: Rows = None, test_y: Rows = None, *,
                 train_domain: Rows = None, test_domain: Rows = None, class_names: Sequence[str] | None = None,
                 test_share: float = 0.0, folder: Path = FOLDER) -> None:
        if (test_x is None) != (test_y is None):
            raise ScenarioError([("test_y" if test_y is None else "test_x", "missing; expected both or none")])
        arrays = {"train_x": train_x, "train_y": train_y, "test_x": test_x, "test_y": test_y,
                  "train_domain": train_domain, "test_domain": test_domain}
        self.arrays = {name: as_tensor(value, name) for name, value in arrays.items() if value is not None}
        wrong = list(wrong_types(*(self.arrays.get(name) for name in ("train_x", "train_y", "test_x", "test_y"))))
        if wrong:
            raise ScenarioError(wrong)
        for name in ("train_y", "test_y"):
            if name in self.arrays:
                self.arrays[name] = self.arrays[name].to(torch.int64)
        self.class_names = list(class_names) if class_names else None
        self.test_share, self.folder = test_share, folder

    @classmethod
    def from_datasets(cls, train: Any, test: Any = None, *, rows: str | Sequence[str] = "image",
                      labels: str = "label", **options: Any) -> "Data":
        """The same from two splits of Hugging Face `datasets`. rows: the column of pictures, numbers or tokens, or a
        list of columns of numbers, a table. labels: the column of classes, by number or by name."""
        names = getattr(train.features.get(labels), "names", None)
        splits = [split for split in (train, test) if split is not None]
        labelled = [column_of(split, labels) for split in splits]
        if labelled[0].dtype.kind in "UO":
            names, labelled = numbered(labelled, labels)
        arrays = [part for split, label in zip(splits, labelled) for part in (rows_of(split, rows), label)]
        return cls(*arrays, class_names=names, **options)

    def keys(self) -> dict[str, Any]:
        """[data] of the scenario; writes the file if it is not there."""
        os.makedirs(self.folder, exist_ok=True)
        content = _safetensors.as_bytes(self.arrays, {"class_names": self.class_names} if self.class_names else {})
        path = os.path.join(os.path.abspath(self.folder), hashlib.sha256(content).hexdigest()[:32] + ".safetensors")
        if not os.path.exists(path):
            write_whole(path, content)
        chosen = {"data.name": "arrays", "data.file": path}
        return {**chosen, "data.test_share": self.test_share} if self.test_share else chosen


def write_whole(path, content):
    with open(path + ".part", "wb") as file:
        file.write(content)
    os.replace(path + ".part", path)


def said(scenario, overrides, section, name):
    """A key of the scenario where it is a dict, or of the overrides; None where neither says it."""
    for keys in (overrides, scenario if isinstance(scenario, dict) else {}):
        if f"{section}.{name}" in keys:
            return keys[f"{section}.{name}"]
        if isinstance(keys.get(section), dict) and name in keys[section]:
            return keys[section][name]
    return None


def partition_keys(partition, data, scenario, overrides):
    """[partition] of the scenario, from the client of each training row."""
    clients = said(scenario, overrides, "clients", "count")
    if callable(partition):
        if data is None or clients is None:
            raise ScenarioError([("partition", "a function needs data=mneme.Data(...) and clients.count, whose labels "
                                               "and number it is called with")])
        seed = overrides.get("seed", scenario.get("seed", 1) if isinstance(scenario, dict) else 1)
        partition = partition(data.arrays["train_y"].numpy(), clients, seed)
    owners = as_tensor(partition, "partition")
    if owners.dim() != 1 or owners.dtype.is_floating_point:
        raise ScenarioError([("partition", f"{owners.dtype} of {owners.dim()} axes; expected whole numbers [rows]: the "
                                           "client of each training row, below 0 nobody's")])
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["client", "row"])
    table.writerows((int(client), row) for row, client in enumerate(owners.tolist()) if client >= 0)
    content = text.getvalue().encode()
    os.makedirs(FOLDER, exist_ok=True)
    path = os.path.join(os.path.abspath(FOLDER), hashlib.sha256(content).hexdigest()[:32] + ".csv")
    if not os.path.exists(path):
        write_whole(path, content)
    return {"partition.kind": "file", "partition.file": path}


def described(scenario, data, partition, overrides):
    """The keys that stand for `data` and `partition`."""
    if data is not None and not isinstance(data, Data):
        raise ScenarioError([("data", f"{type(data).__name__}; expected mneme.Data(train_x, train_y, ...)")])
    keys = data.keys() if data is not None else {}
    if partition is not None:
        keys.update(partition_keys(partition, data, scenario, overrides))
    return keys
