"""Small generated data sets in the file formats of public ones, for tests of reading, partitioning and training if
the real data are missing.

An image is the sum of a pattern of its class, a pattern of its domain (a quarter each) and noise, all drawn from
SHAKE-256 of a name, so that every machine gets the same images. Results on them do not apply to real data.
"""
import gzip
import hashlib
import os
import struct


def drawn(name, count):
    """Returns `count` pseudorandom bytes derived from this name."""
    return hashlib.shake_256(name.encode()).digest(count)


def picture(split, row, label, pixels, domain="any"):
    """Returns image `row` of a split, of class `label`, as `pixels` bytes."""
    parts = zip(drawn(f"class {label}", pixels), drawn(f"domain {domain}", pixels), drawn(f"{split} row {row}", pixels))
    return bytes((a + b + 2 * c) // 4 for a, b, c in parts)


def write_idx(folder, prefix, rows, side):
    """Writes the two idx .gz files of a split: `rows` are (pixels, label), images are `side` pixels wide and high."""
    os.makedirs(folder, exist_ok=True)
    files = {"images-idx3": struct.pack(">4I", 0x803, len(rows), side, side) + b"".join(x for x, _ in rows),
             "labels-idx1": struct.pack(">2I", 0x801, len(rows)) + bytes(label for _, label in rows)}
    for kind, content in files.items():
        with gzip.open(os.path.join(folder, f"{prefix}-{kind}-ubyte.gz"), "wb", 1) as file:
            file.write(content)


def write_gray(root, name, classes, side, train_per_class, test_per_class):
    """Writes root/name with the four files of a gray image data set like MNIST, USPS and EMNIST."""
    prefixes = {"mnist": ("train", "t10k"), "fashion-mnist": ("train", "t10k")}
    for split, prefix, per_class in zip(("train", "test"), prefixes.get(name, (f"{name}-train", f"{name}-test")),
                                        (train_per_class, test_per_class)):
        rows = [(picture(f"{name} {split}", row, row % classes, side * side), row % classes)
                for row in range(per_class * classes)]
        write_idx(os.path.join(root, name), prefix, rows, side)


def write_pacs(root, per_pair):
    """Writes root/pacs-32/pacs32.bin: domain, class, planes R, G, B; `per_pair` records of each domain and class."""
    os.makedirs(os.path.join(root, "pacs-32"))
    with open(os.path.join(root, "pacs-32", "pacs32.bin"), "wb") as file:
        for domain in range(4):
            for row in range(7 * per_pair):
                label = row % 7
                file.write(bytes((domain, label)) + picture(f"pacs {domain}", row, label, 3 * 32 * 32, str(domain)))


def write_speeches(root):
    """Writes root/shakespeare/speeches.tsv.gz: 20 speeches of 100 letters of three roles in each of three plays."""
    os.makedirs(os.path.join(root, "shakespeare"))
    lines = [f"{play}\tROLE {role}\t" + "".join(chr(97 + byte % 26) for byte in drawn(f"{play} {role} {speech}", 100))
             for play in ("hamlet", "kinghenryv", "tempest") for role in range(3) for speech in range(20)]
    with gzip.open(os.path.join(root, "shakespeare", "speeches.tsv.gz"), "wt", 1, encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def write_data(root, *names):
    """Writes the data sets with these values of `data.name` below `root`, in at most 1 s each."""
    for name in names:
        if name == "pacs":
            write_pacs(root, 40)
        elif name == "shakespeare-roles":
            write_speeches(root)
        elif name == "digits":
            write_data(root, "mnist", "usps")
        else:
            classes, side = {"mnist": (10, 28), "usps": (10, 16), "emnist47": (47, 28)}[name]
            write_gray(root, name, classes, side, 40, 10)
