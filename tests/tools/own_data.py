"""User data in every supported format, written with the standard library alone."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "fuzz"))
from array_bytes import Array, Texts, png  # noqa: E402
from made_data import drawn, picture  # noqa: E402

class Pictures:
    """Images of classes cat, dog, ... (and domains), class by class, in the order of an image folder."""

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
        """uint8 images, with the channel axis last if requested."""
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
    """Rows of eight numbers in four classes; some of the numbers have other units."""

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
