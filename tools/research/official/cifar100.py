"""Reads CIFAR-100's binary files from one of the folders of $MNEME_DATA."""
import gzip
import lzma
import os

import numpy

from shim import Refused

PIXELS = 3 * 32 * 32
OPENERS = {"": open, ".xz": lzma.open, ".gz": gzip.open}


def cifar100_rows(part):
    """@param part "train" or "test" @return images [N, 32, 32, 3] uint8 and fine labels [N] int64, in file order"""
    for folder in os.environ.get("MNEME_DATA", "").split(os.pathsep):
        for ending, opened in OPENERS.items():
            path = os.path.join(folder, "cifar-100-binary", f"{part}.bin{ending}")
            if os.path.exists(path):
                with opened(path, "rb") as file:
                    records = numpy.frombuffer(file.read(), numpy.uint8).reshape(-1, 2 + PIXELS)
                return records[:, 2:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 1].astype(numpy.int64)
    raise Refused(f"no cifar-100-binary/{part}.bin below MNEME_DATA={os.environ.get('MNEME_DATA', '')!r}; expected a "
                  "folder with CIFAR-100's binary files (tools/fetch_data cifar100)")
