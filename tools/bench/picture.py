"""Draws the benchmark results as horizontal bars, one benchmark below the other."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from plot import Picture, palette  # noqa: E402
from table import short, wide  # noqa: E402

WIDTH, LEFT, RIGHT = 900, 330, 110        # pixels; names are at the left of the bars, numbers at the right
TITLE, BAR, GAP, BETWEEN = 34, 18, 6, 26  # heights in pixels
OURS, LIMIT = palette()[:2]
OTHERS = "#b8bec6"


def limit_of(result):
    """The lower of the machine's limits in client-rounds per second; None if the result has no limits."""
    return min((limit["cpu_rate"] for limit in result.get("limits", {}).values()), default=None)


def draw_bars(picture, result):
    """Appends the bars of a benchmark at the bottom of the picture."""
    rate, lines, limit = result["rate"], result["contenders"], limit_of(result)
    longest = max(line[rate] for line in lines)
    scale = (WIDTH - LEFT - RIGHT) / longest
    top = picture.height
    picture.text(10, top + 20, result["title"], bold=True)
    y = top + TITLE
    for line in lines:
        length, ours = line[rate] * scale, line["label"].startswith("mneme")
        picture.text(LEFT - 8, y + BAR - 5, wide(line), anchor="end")
        picture.rectangle(LEFT, y, length, BAR, OURS if ours else OTHERS)
        picture.text(LEFT + length + 6, y + BAR - 5, short(line[rate]), bold=ours)
        y += BAR + GAP
    if limit is not None and limit <= longest:
        x = LEFT + limit * scale
        picture.line([(x, top + TITLE - 4), (x, y)], LIMIT, dashed=True)
    if limit is not None:
        picture.text(LEFT, y + 12, f"the machine's limit: {short(limit)}", color=LIMIT)
        y += BAR
    picture.height = y + BETWEEN


def svg(report):
    picture = Picture(WIDTH, height=44, font_size=13)
    picture.text(10, 26, "client-rounds a second of CPU time (b7: of wall time), medians of " + str(report["repeat"]),
                 color="#555")
    for result in report["benchmarks"]:
        draw_bars(picture, result)
    return picture.svg()
