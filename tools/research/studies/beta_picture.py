#!/usr/bin/env python3
"""Draws the trade-off of FIL-VER's beta: tools/research/studies/beta_picture.py < TABLE.csv > PICTURE.svg

The table is that of mneme compare --format csv over strategy.beta, with the metrics named in fil_ver_beta.toml in the
same folder.
"""
import csv
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.dont_write_bytecode = True
from plot import Axes, Picture, palette  # noqa: E402


def points_of(lines):
    """For each beta: the mean sigma, and the accuracies on the first and on later tasks; sorted by sigma."""
    means = {}
    for line in csv.DictReader(lines):
        means.setdefault(line["strategy.beta"], {})[line["metric"]] = float(line["mean"])
    points = [{"beta": beta, "sigma": found["sigma_mean"], "first": found["task_1"],
               "later": statistics.mean(found[f"task_{task}"] for task in (2, 3, 4))} for beta, found in means.items()]
    return sorted(points, key=lambda point: point["sigma"])


def svg(points):
    """Draws accuracy on the first and on later tasks over the mean sigma of the embeddings."""
    picture = Picture(640, 400)
    axes = Axes(picture, margin=60, x_max=1, y_max=100)
    axes.draw([0, 0.2, 0.4, 0.6, 0.8, 1], range(0, 101, 20), "mean sigma of the embeddings; beta at each point")
    for point in points:
        x, y = axes.place(point["sigma"], point["later"])
        picture.text(x, y + 20, point["beta"], anchor="middle", color="gray")
    first, later = palette()[:2]
    axes.curve([(point["sigma"], point["first"]) for point in points], "task 1 (%)", first)
    axes.curve([(point["sigma"], point["later"]) for point in points], "tasks 2 to 4 (%)", later)
    return picture.svg()


if __name__ == "__main__":
    sys.stdout.write(svg(points_of(sys.stdin)))
