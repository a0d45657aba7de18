"""Small data sets made up in the public formats of their files, for tests of how data are read, shared out and learnt
where the real ones are not.

A picture is its class's own and that of its domain, one part in four each, and noise. All are drawn by SHAKE-256 of a
text that names them, so every machine makes the same ones. Nothing that is measured on them says anything of real data.
"""
import gzip
import hashlib
import os
import struct


def drawn(name, count):
    """`count` bytes that belong to this name."""
    return hashlib.shake_256(name.encode()).digest(count)


def picture(split, row, label, pixels, domain="any"):
    """`pixels` bytes: row `row` of a split, a picture of class `label`."""
    parts = zip(drawn(f"class {label}", pixels), drawn(f"domain {domain}", pixels), drawn(f"{split} row {row}", pixels))
    return bytes((a + b + 2 * c) // 4 for a, b, c in parts)


def write_idx(folder, prefix, rows, side):
    """The two idx .gz files of a split: `rows` are (pixels, label), images are `side` pixels wide and high."""
    os.makedirs(folder, exist_ok=True)
    files = {"images-idx3": struct.pack(">4I", 0x803, len(rows), side, side) + b"".join(x for x, _ in rows),
             "labels-idx1": struct.pack(">2I", 0x801, len(rows)) + bytes(label for _, label in rows)}
    for kind, content in files.items():
        with gzip.open(os.path.join(folder, f"{prefix}-{kind}-ubyte.gz"), "wb", 1) as file:
            file.write(content)


def write_grey(root, name, classes, side, train_per_class, test_per_class):
    """root/name with the four files of a set of grey images, as MNIST, USPS and EMNIST are published."""
    prefixes = {"mnist": ("train", "t10k"), "fashion-mnist": ("train", "t10k")}
    for split, prefix, per_class in zip(("train", "test"), prefixes.get(name, (f"{name}-train", f"{name}-test")),
                                        (train_per_class, test_per_class)):
        rows = [(picture(f"{name} {split}", row, row % classes, side * side), row % classes)
                for row in range(per_class * classes)]
        write_idx(os.path.join(root, name), prefix, rows, side)


def write_pacs(root, per_pair):
    """root/pacs-32/pacs32.bin: domain, class, planes R, G, B; `per_pair` records of each domain and class."""
    os.makedirs(os.path.join(root, "pacs-32"))
    with open(os.path.join(root, "pacs-32", "pacs32.bin"), "wb") as file:
        for domain in range(4):
            for row in range(7 * per_pair):
                label = row % 7
                file.write(bytes((domain, label)) + picture(f"pacs {domain}", row, label, 3 * 32 * 32, str(domain)))


def write_data(root, *names):
    """Writes the data sets of these names (as `data.name` has them) below `root`; at most a second's work each."""
    for name in names:
        if name == "pacs":
            write_pacs(root, 40)
        elif name == "digits":
            write_data(root, "mnist", "usps")
        else:
            classes, side = {"mnist": (10, 28), "usps": (10, 16), "emnist47": (47, 28)}[name]
            write_grey(root, name, classes, side, 40, 10)
