"""Counts which client of a scenario holds how many rows of which class."""
import html
from collections.abc import Sequence
from typing import Any

from mneme import _engine
from mneme._data import Data, described
from mneme._data import Partition as Owners
from mneme._errors import ScenarioError
from mneme._methods import Method, host
from mneme._scenarios import opened
from mneme._types import Keys, Scenario


class PartitionCounts:
    """Numbers of training rows that clients hold. rows: [clients][classes], of all tasks; classes: names of the
    columns. A notebook shows this object as a heat map, and print() shows it as numbers."""

    def __init__(self, classes: list[str], rows: list[list[int]]) -> None:
        self.classes, self.rows = classes, rows

    def plot(self, axes: Any = None) -> Any:
        """Draws a heat map of clients and classes with matplotlib and returns its Axes. Raises ImportError if
        matplotlib is not installed. axes: where to draw; default: a new figure."""
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("plot() needs matplotlib (pip install matplotlib); print(partition) shows the numbers") \
                from None
        axes = pyplot.subplots()[1] if axes is None else axes
        image = axes.imshow(self.rows, aspect="auto", interpolation="nearest", cmap="Blues", vmin=0)
        axes.set_xlabel("class")
        axes.set_ylabel("client")
        if len(self.classes) <= 20:
            axes.set_xticks(range(len(self.classes)), self.classes, rotation=90)
        axes.figure.colorbar(image, ax=axes, label="rows")
        return axes

    def __str__(self) -> str:
        columns = [["client", *map(str, range(len(self.rows)))]]
        columns += [[name, *(str(row[number]) for row in self.rows)] for number, name in enumerate(self.classes)]
        columns += [["rows", *(str(sum(row)) for row in self.rows)]]
        widths = [max(map(len, column)) for column in columns]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in zip(*columns))

    def _repr_html_(self) -> str:
        most = max((max(row, default=0) for row in self.rows), default=0) or 1
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.classes)
        body = "".join(f"<tr><th>{client}</th>" + "".join(
            f'<td style="background: rgba(31, 119, 180, {rows / most:.2f})">{rows}</td>' for rows in row) + "</tr>"
                       for client, row in enumerate(self.rows))
        return f"<table><tr><th>client</th>{head}</tr>{body}</table>"


def partition(scenario: Scenario, overrides: Keys = {}, *, data: Data | None = None,  # noqa: B006
              partition: Owners | None = None, methods: Sequence[type[Method]] = ()) -> PartitionCounts:
    """Splits the data of a scenario over its clients, as a run does, and counts the rows of each class.
    scenario, overrides, data, partition and methods: see run(). Raises ScenarioError with all errors."""
    host(methods)
    if data is not None or partition is not None:
        overrides = {**overrides, **described(scenario, data, partition, dict(overrides))}
    with opened(scenario, overrides) as source:
        errors, classes, rows = _engine._partition(source.file, source.settings)
        if errors:
            raise ScenarioError(source.named(errors))
    return PartitionCounts(classes, rows)
