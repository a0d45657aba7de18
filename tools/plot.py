"""Draws the results of tools as SVG. Equal results give equal text."""
import os
import re
from xml.sax.saxutils import escape

PALETTE_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools", "charts", "palette.hpp")


def palette():
    """The program's colors for its own figures, in their order."""
    with open(PALETTE_FILE, encoding="utf-8") as file:
        return re.findall(r'"(#[0-9a-f]{6})"', file.read())


class Picture:
    """Shapes on white, in pixels from the upper left corner. The height may grow while shapes are added."""

    def __init__(self, width, height=0, font_size=12):
        self.width, self.height, self.font_size = width, height, font_size
        self.shapes = []

    def text(self, x, y, words, anchor="start", bold=False, color="#222"):
        weight = ' font-weight="bold"' if bold else ""
        self.shapes.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"{weight}>'
                           f'{escape(str(words))}</text>')

    def rectangle(self, x, y, width, height, color):
        self.shapes.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>')

    def line(self, points, color="#222", stroke=1.0, dashed=False):
        """Draws a line through the points (x, y)."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.shapes.append(f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="{stroke}"'
                           f'{dashes}/>')

    def dot(self, x, y, color, radius=4):
        self.shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}"/>')

    def svg(self):
        """Returns a self-contained SVG document."""
        head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" font-family="sans-serif" font-size="{self.font_size}">',
                f'<rect width="{self.width}" height="{self.height}" fill="white"/>']
        return "\n".join(head + self.shapes + ["</svg>"]) + "\n"


class Axes:
    """Box in a picture with axes: x from 0 to x_max, and y from 0 at the bottom to y_max."""

    def __init__(self, picture, margin, x_max, y_max):
        self.picture, self.margin, self.x_max, self.y_max = picture, margin, x_max, y_max

    def place(self, x, y):
        width, height = (size - 2 * self.margin for size in (self.picture.width, self.picture.height))
        return (self.margin + x / self.x_max * width, self.margin + (1 - y / self.y_max) * height)

    def draw(self, x_ticks, y_ticks, x_label):
        self.picture.line([self.place(0, self.y_max), self.place(0, 0), self.place(self.x_max, 0)])
        for tick in x_ticks:
            x, y = self.place(tick, 0)
            self.picture.text(x, y + 18, f"{tick:g}", anchor="middle")
        for tick in y_ticks:
            x, y = self.place(0, tick)
            self.picture.text(x - 8, y + 4, f"{tick:g}", anchor="end")
        self.picture.text(self.picture.width / 2, self.picture.height - 15, x_label, anchor="middle")

    def curve(self, points, label, color):
        """Draws points joined by a line, with the label above the first point."""
        places = [self.place(x, y) for x, y in points]
        self.picture.line(places, color, stroke=2.0)
        for x, y in places:
            self.picture.dot(x, y, color)
        self.picture.text(places[0][0], places[0][1] - 10, label, color=color)
