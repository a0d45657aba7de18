#!/usr/bin/env python3
"""Draws the layers of mneme, lowest first, as the build declares them: layers.py [ROOT].

A layer stands one line above the highest layer that it depends on. After the arrow are its dependencies, except those
that it reaches through other layers.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def reach(layers):
    """Returns {layer: all layers below it}. One pass is enough, because the build requires the lowest layers first."""
    below = {}
    for name, direct in layers.items():
        below[name] = set(direct).union(*(below[one] for one in direct))
    return below


def heights(layers):
    height = {}
    for name, direct in layers.items():
        height[name] = 1 + max((height[one] for one in direct), default=-1)
    return height


def drawing(layers):
    """Formats the layers as text, with one line for each height."""
    below, height = reach(layers), heights(layers)
    lines = [[] for _ in range(1 + max(height.values()))]
    for name, direct in layers.items():
        drawn = [one for one in direct if not any(one in below[other] for other in direct)]
        short = " ".join(one.rsplit("/", 1)[-1] for one in drawn)
        lines[height[name]].append(f"{name} ◄ {short}" if short else name)
    return "".join("   ".join(line) + "\n" for line in lines)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else ROOT
    with open(os.path.join(root, tidy.LAYERS_FILE), encoding="utf-8") as file:
        print(drawing(tidy.read_layers({tidy.LAYERS_FILE: file.read()})), end="")


if __name__ == "__main__":
    main()
