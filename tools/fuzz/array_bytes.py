"""Writes arrays as .npy, .npz and .safetensors, and images as PNG, with the standard library alone."""
import json
import os
import struct
import zipfile
import zlib

CODES = {"uint8": ("|u1", "B"), "float32": ("<f4", "f"), "int64": ("<i8", "q"), "float64": ("<f8", "d")}
TENSORS = {"uint8": "U8", "float32": "F32", "int64": "I64", "float64": "F64"}


class Array:
    """Array of numbers in row-major order, with a shape and one of the dtypes of CODES."""

    def __init__(self, dtype, shape, values):
        self.dtype, self.shape, self.values = dtype, list(shape), values

    def content(self):
        return struct.pack(f"<{len(self.values)}{CODES[self.dtype][1]}", *self.values)


class Packed:
    """Array whose numbers are given as bytes."""

    def __init__(self, dtype, shape, content):
        self.dtype, self.shape, self._content = dtype, list(shape), content

    def content(self):
        return self._content


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
    with open(path, "wb") as file:
        file.write(safetensors_bytes(arrays))


def safetensors_bytes(arrays):
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
    return struct.pack("<Q", len(text)) + text + contents


def png(height, width, planes):
    """Content of a PNG image. planes: one (gray) or three, each of height x width bytes"""
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    lines = b""
    for y in range(height):
        at = slice(y * width, (y + 1) * width)
        lines += b"\0" + bytes(value for pixel in zip(*(plane[at] for plane in planes)) for value in pixel)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if len(planes) == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
