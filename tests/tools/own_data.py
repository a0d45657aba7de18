"""A user's own data in every form that mneme reads, written with the standard library alone."""
import json
import os
import struct
import zipfile
import zlib

from made_data import drawn, picture

CODES = {"uint8": ("|u1", "B"), "float32": ("<f4", "f"), "int64": ("<i8", "q"), "float64": ("<f8", "d")}
TENSORS = {"uint8": "U8", "float32": "F32", "int64": "I64", "float64": "F64"}


class Array:
    """Numbers by rows, with a shape and one of the dtypes of CODES."""

    def __init__(self, dtype, shape, values):
        self.dtype, self.shape, self.values = dtype, list(shape), values

    def content(self):
        return struct.pack(f"<{len(self.values)}{CODES[self.dtype][1]}", *self.values)


class Texts:
    def __init__(self, texts):
        self.texts = texts


def npy(array):
    if isinstance(array, Texts):
        letters = max(map(len, array.texts))
        descr, shape = f"<U{letters}", [len(array.texts)]
        content = b"".join(text.ljust(letters, "\0").encode("utf-32-le") for text in array.texts)
    else:
        descr, shape, content = CODES[array.dtype][0], array.shape, array.content()
    sizes = "".join(f"{extent}, " for extent in shape)
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({sizes}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


def write_npz(path, arrays, packed=False):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(name + ".npy", npy(array))


def write_npy(folder, arrays):
    os.makedirs(folder, exist_ok=True)
    for name, array in arrays.items():
        with open(os.path.join(folder, name + ".npy"), "wb") as file:
            file.write(npy(array))


def write_safetensors(path, arrays):
    header, contents = {}, b""
    for name, array in arrays.items():
        if isinstance(array, Texts):
            header.setdefault("__metadata__", {})[name] = json.dumps(array.texts)
            continue
        content = array.content()
        header[name] = {"dtype": TENSORS[array.dtype], "shape": array.shape,
                        "data_offsets": [len(contents), len(contents) + len(content)]}
        contents += content
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + contents)


def png(height, width, planes):
    """`planes`: one of grey, or three; bytes of height x width each."""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    lines = b""
    for y in range(height):
        at = slice(y * width, (y + 1) * width)
        lines += b"\0" + bytes(value for pixel in zip(*(plane[at] for plane in planes)) for value in pixel)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if len(planes) == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


class Pictures:
    """Pictures of classes cat, dog, .. (and domains), class by class, as a folder of them is numbered."""

    NAMES = ["ant", "bee", "cat", "dog"]

    def __init__(self, channels=3, side=8, train=10, test=4, domains=()):
        self.channels, self.side, self.domains = channels, side, list(domains)
        self.rows = {"train": self._rows("train", train), "test": self._rows("test", test)}

    def _rows(self, split, count):
        pixels = self.channels * self.side * self.side
        return [(picture(split, row, label, pixels, domain), label, place)
                for place, domain in enumerate(self.domains or ["any"])
                for label in range(len(self.NAMES)) for row in range(count)]

    def write_folder(self, root, splits=("train", "test")):
        plane = self.side * self.side
        numbers = {}
        for split in splits:
            for pixels, label, domain in self.rows[split]:
                parts = [root] + ([split] if len(splits) > 1 else []) + self.domains[domain:domain + 1]
                folder = os.path.join(*parts, self.NAMES[label])
                os.makedirs(folder, exist_ok=True)
                numbers[folder] = numbers.get(folder, 0) + 1
                with open(os.path.join(folder, f"{numbers[folder]:03}.png"), "wb") as file:
                    file.write(png(self.side, self.side,
                                   [pixels[c * plane:(c + 1) * plane] for c in range(self.channels)]))

    def arrays(self, last=False, splits=("train", "test")):
        """uint8 images, with the axis of channels last if asked for."""
        made = {"class_names": Texts(self.NAMES)}
        plane = self.side * self.side
        for split in splits:
            values = b""
            for pixels, _, _ in self.rows[split]:
                values += bytes(pixels[c * plane + i] for i in range(plane)
                                for c in range(self.channels)) if last else pixels
            rows, side = len(self.rows[split]), self.side
            shape = [rows, side, side, self.channels] if last else [rows, self.channels, side, side]
            made[split + "_x"] = Array("uint8", shape, values)
            made[split + "_y"] = Array("int64", [rows], [label for _, label, _ in self.rows[split]])
            if self.domains:
                made[split + "_domain"] = Array("int64", [rows], [domain for _, _, domain in self.rows[split]])
        if self.domains:
            made["domain_names"] = Texts(self.domains)
        return made


class Numbers:
    """Rows of eight numbers, some in other units, of four classes."""

    NAMES = ["ant", "bee", "cat", "dog"]
    WIDTH = 8

    def __init__(self, train=40, test=16):
        self.rows = {split: [self._row(split, row) for row in range(count)]
                     for split, count in (("train", train), ("test", test))}

    def _row(self, split, row):
        label = row % 4
        noise, own = drawn(f"{split} {row}", self.WIDTH), drawn(f"class {label}", self.WIDTH)
        return [(a + 3 * b) / 64 * (10 if i == 0 else 1) for i, (a, b) in enumerate(zip(noise, own))], label

    def arrays(self, splits=("train", "test")):
        made = {"class_names": Texts(self.NAMES)}
        for split in splits:
            rows = self.rows[split]
            made[split + "_x"] = Array("float32", [len(rows), self.WIDTH], [v for values, _ in rows for v in values])
            made[split + "_y"] = Array("int64", [len(rows)], [label for _, label in rows])
        return made

    def write_csv(self, path, splits=("train", "test")):
        with open(path, "w", encoding="utf-8") as file:
            names = ",".join(f"n{i}" for i in range(self.WIDTH))
            file.write(f"label,{names}{',split' if len(splits) > 1 else ''}\n")
            for split in splits:
                for values, label in self.rows[split]:
                    numbers = ",".join(repr(value) for value in values)
                    file.write(f"{self.NAMES[label]},{numbers}{',' + split if len(splits) > 1 else ''}\n")
