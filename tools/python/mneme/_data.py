"""User data and partitions: the keys of [data] and [partition] for arrays."""
import csv
import hashlib
import io
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from mneme import _safetensors
from mneme._arrays import (are_pictures, as_rows, as_tensor, column_of, is_split, is_splits, is_torch_dataset, items_of,
                           kind_of, names_of_classes, numbered, parts_of, refuse, rows_of, stacked_pictures)
from mneme._parquet import parquet_column, parquet_rows, read_parquet
from mneme._errors import ScenarioError
from mneme._types import Path

Rows = Any  # numpy array, torch tensor, or lists
Partition = Rows | Callable[[Any, int, int], Rows]  # function of (labels, clients, seed)
FOLDER = os.path.join("runs", "data")


def wrong_labels(rows, labels):
    """Error text for the labels of a part; "" if they are valid. The engine checks the rows."""
    if len(labels) != len(rows):
        return f"{len(labels)} labels of {len(rows)} rows; expected one of each"
    if len(labels) and int(labels.min()) < 0:
        row = int((labels < 0).nonzero()[0])
        return f"row {row}: label {int(labels[row])}; expected labels from 0"
    return ""


def wrong_types(arrays):
    """Errors (where, text) for arrays of unsupported types."""
    for part in ("train", "test"):
        rows, labels = arrays.get(part + "_x"), arrays.get(part + "_y")
        if rows is None:
            continue
        if rows.dtype not in (torch.uint8, torch.float32, torch.int64):
            yield part + "_x", f"{rows.dtype}; expected uint8 images, float32 numbers or int64 tokens"
        elif rows.dim() < 2:
            yield part + "_x", f"an array of {rows.dim()} axes; expected rows [N, ...]"
        elif text := wrong_labels(rows, labels):
            yield part + "_y", text


def ambiguous(rows):
    """True if either the second or the last axis could hold the channels."""
    return rows.dim() == 4 and rows.shape[1] in (1, 3) and rows.shape[3] in (1, 3)


def rows_of_parts(parts, layout, side):
    """Returns ({where: rows or None}, layout). Lists of images become arrays with channels first."""
    parts = {where: part for where, part in parts.items() if part is not None}
    if side and not all(map(are_pictures, parts.values())):
        refuse("side", "resizes Pillow images, and the rows are arrays; resize them first")
    if not all(map(are_pictures, parts.values())):
        return {where: as_rows(part, where) for where, part in parts.items()}, layout
    images = stacked_pictures(parts, side)
    return images, "channels-first" if any(map(ambiguous, images.values())) else layout


class Data:
    """User data: uint8 images [N, C, H, W], [N, H, W, C] or [N, H, W]; numbers of any float type; or integers [N, T],
    which are tokens.

    Accepts numpy arrays, torch tensors, pandas objects, lists, and lists of Pillow images. Labels and domains are
    integers from 0, or strings, which are numbered in sorted order or by `class_names`. layout: "channels-first" or
    "channels-last", needed if the shape is ambiguous. side: for Pillow images of several sizes, the side length in
    pixels to which the largest centered square of each is resized (bilinear, with antialiasing). Without test rows,
    `test_share` of each class is selected by the seed. The rows are saved in `folder`, named by content, so that a run
    can be resumed.
    """

    def __init__(self, train_x: Rows, train_y: Rows, test_x: Rows = None, test_y: Rows = None, *,
                 train_domain: Rows = None, test_domain: Rows = None, class_names: Sequence[str] | None = None,
                 layout: str = "auto", side: int = 0,
                 test_share: float = 0.0, folder: Path = FOLDER) -> None:
        for name, given, other in (("test_x", test_x, test_y), ("test_y", test_y, test_x),
                                   ("train_domain", train_domain, test_domain)):
            if given is None and other is not None:
                refuse(name, "missing; expected both or none")
        if train_domain is not None and test_domain is None and test_x is not None:
            refuse("test_domain", "missing; expected both or none")
        shown, layout = rows_of_parts({"train_x": train_x, "test_x": test_x}, layout, side)
        arrays = dict(shown)
        class_names, arrays["train_y"], arrays["test_y"] = numbered(
            train_y, test_y, ("train_y", "test_y"), "class", list(class_names) if class_names else None)
        names = {"class_names": class_names}
        if train_domain is not None:
            names["domain_names"], arrays["train_domain"], arrays["test_domain"] = numbered(
                train_domain, test_domain, ("train_domain", "test_domain"), "domain")
        self.arrays = {name: array for name, array in arrays.items() if array is not None}
        wrong = list(wrong_types(self.arrays))
        if wrong:
            raise ScenarioError(wrong)
        self.names = {name: texts for name, texts in names.items() if texts}
        self.class_names = class_names
        self.layout, self.test_share, self.folder = layout, test_share, folder

    @classmethod
    def from_datasets(cls, train: Any, test: Any = None, *, rows: str | Sequence[str] = "image",
                      labels: str = "label", domains: str = "", **options: Any) -> "Data":
        """Creates Data from two splits of Hugging Face `datasets`, from a DatasetDict with both, or from two map-style
        torch Datasets (such as torchvision's) with items (row, label), which are read once.

        rows: the column of images, numbers or tokens, or a list of numeric columns. labels, domains: the columns of
        classes and domains, as numbers or names.
        """
        if test is None and is_splits(train):
            train, test = parts_of(train)
        splits = [split for split in (train, test) if split is not None]
        parts = {"class_names": names_of_classes(train)}
        if all(map(is_torch_dataset, splits)):
            items = [items_of(split, where) for split, where in zip(splits, ("train", "test"))]
            shown, labelled = map(list, zip(*items))
        elif all(map(is_split, splits)):
            shown = [rows_of(split, rows) for split in splits]
            labelled = [column_of(split, labels, "labels") for split in splits]
            parts["class_names"] = getattr(train.features[labels], "names", None)
            placed = [column_of(split, domains, "domains") for split in splits] if domains else []
            parts.update(zip(("train_domain", "test_domain"), placed))
        else:
            refuse("data", f"{' and '.join(map(kind_of, splits))}; expected splits of Hugging Face datasets, a "
                           "DatasetDict, or torch Datasets")
        names, *labelled = numbered(labelled[0], labelled[1] if test is not None else None, (labels, labels))
        parts["class_names"] = names or parts["class_names"]
        return cls(*[array for part in zip(shown, labelled) for array in part], **{**parts, **options})

    @classmethod
    def from_hub(cls, name: str, split: str | Sequence[str] = ("train", "test"), *, config: str | None = None,
                 revision: str | None = None, **options: Any) -> "Data":
        """Creates Data from a data set of the Hugging Face hub, or from a folder in its format, with `datasets`.

        split: the training and the test split, or one split, of which test_share selects test rows. Slices are those of
        `datasets`: "train[:1000]". config: name of a configuration. revision: branch, tag or commit. options: see
        from_datasets().
        """
        try:
            from datasets import load_dataset
        except ImportError:
            return refuse("data", "mneme.Data.from_hub() needs the package datasets; install it: pip install datasets")
        splits = [split] if isinstance(split, str) else list(split)
        if not 1 <= len(splits) <= 2:
            refuse("split", f"{len(splits)} names; expected one split, or the training and the test split")
        try:
            loaded = [load_dataset(name, config, split=part, revision=revision) for part in splits]
        except Exception as wrong:  # any error of `datasets`: an unknown name, split or configuration, or no network
            return refuse("data", f"'{name}' cannot be loaded ({type(wrong).__name__}: {wrong}); expected a data set "
                                  "of huggingface.co/datasets and splits that it has, as in from_hub(\"cifar10\", "
                                  "(\"train\", \"test\"))")
        return cls.from_datasets(*loaded, **options)

    @classmethod
    def from_parquet(cls, train: Path, test: Path | None = None, *, rows: str | Sequence[str] = (),
                     labels: str = "label", domains: str = "", **options: Any) -> "Data":
        """Creates Data from Parquet files, with pyarrow.

        rows: the column of images (encoded, as `datasets` writes them), lists of numbers or tokens, or a list of
        numeric columns; default: all columns except those of labels and domains. labels, domains: see from_datasets().
        """
        tables = [read_parquet(file) for file in (train, test) if file is not None]
        if not rows:
            rows = [name for name in tables[0].column_names if name not in (labels, domains)]
            rows = rows[0] if len(rows) == 1 else rows
        splits = dict(zip(("train", "test"), tables))
        parts: dict[str, Any] = {f"{name}_y": parquet_column(table, labels, "labels") for name, table in splits.items()}
        parts.update({f"{name}_x": parquet_rows(table, rows) for name, table in splits.items()})
        if domains:
            parts.update({f"{name}_domain": parquet_column(table, domains, "domains")
                          for name, table in splits.items()})
        return cls(**parts, **options)

    def keys(self) -> dict[str, Any]:
        """Returns the keys of [data]. Writes the data file if it does not exist."""
        os.makedirs(self.folder, exist_ok=True)
        content = _safetensors.as_bytes(self.arrays, self.names)
        path = os.path.join(os.path.abspath(self.folder), hashlib.sha256(content).hexdigest()[:32] + ".safetensors")
        if not os.path.exists(path):
            write_whole(path, content)
        chosen = {"data.name": "arrays", "data.file": path}
        if self.layout != "auto":
            chosen["data.layout"] = self.layout
        return {**chosen, "data.test_share": self.test_share} if self.test_share else chosen


def write_whole(path, content):
    with open(path + ".part", "wb") as file:
        file.write(content)
    os.replace(path + ".part", path)


def said(scenario, overrides, section, name):
    """Value of a key in a scenario dict or in the overrides; None if neither has it."""
    for keys in (overrides, scenario if isinstance(scenario, dict) else {}):
        if f"{section}.{name}" in keys:
            return keys[f"{section}.{name}"]
        if isinstance(keys.get(section), dict) and name in keys[section]:
            return keys[section][name]
    return None


def partition_keys(partition, data, scenario, overrides):
    """Returns the keys of [partition]. partition: the client of each training row, or a function that returns it"""
    clients = said(scenario, overrides, "clients", "count")
    if callable(partition):
        if data is None or clients is None:
            raise ScenarioError([("partition", "a function is called with labels and number of clients; expected "
                                               "data=mneme.Data(...) and clients.count")])
        seed = overrides.get("seed", scenario.get("seed", 1) if isinstance(scenario, dict) else 1)
        partition = partition(data.arrays["train_y"].numpy(), clients, seed)
    owners = as_tensor(partition, "partition")
    if owners.dim() != 1 or owners.dtype.is_floating_point:
        raise ScenarioError([("partition", f"{owners.dtype} of {owners.dim()} axes; expected whole numbers [rows]: the "
                                           "client of each training row, below 0 for none")])
    if data is not None and len(owners) != len(data.arrays["train_y"]):
        rows = len(data.arrays["train_y"])
        raise ScenarioError([("partition", f"{len(owners)} clients of {rows} training rows; expected the client of "
                                           "each, below 0 for rows without a client")])
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


def data_of(value):
    """Converts an argument of Data.from_datasets() to Data; Data and None are returned unchanged."""
    if value is None or isinstance(value, Data):
        return value
    parts = value if isinstance(value, tuple) and len(value) == 2 else (value,)
    if any(is_splits(part) or is_split(part) or is_torch_dataset(part) for part in parts):
        return Data.from_datasets(*parts)
    return refuse("data", f"{kind_of(value)}; expected mneme.Data(train_x, train_y, ...)")


def described(scenario, data, partition, overrides):
    """Returns the keys that describe `data` and `partition`."""
    data = data_of(data)
    keys = data.keys() if data is not None else {}
    if partition is not None:
        keys.update(partition_keys(partition, data, scenario, overrides))
    return keys
