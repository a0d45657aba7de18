"""The benchmarks' results as a picture: horizontal bars, a benchmark below the other."""
from xml.sax.saxutils import escape

from table import short, wide

WIDTH, LEFT, RIGHT = 900, 330, 110        # pixels; names stand left of the bars, numbers right of them
TITLE, BAR, GAP, BETWEEN = 34, 18, 6, 26  # heights
OURS, OTHERS, LIMIT = "#1f6fb4", "#b8bec6", "#c0392b"


def words(x, y, content, anchor="start", weight="normal", colour="#222"):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" font-weight="{weight}" fill="{colour}">' \
           f'{escape(content)}</text>'


def limit_of(result):
    """The lower of the machine's limits in client-rounds a second; None where there is none."""
    return min((limit["cpu_rate"] for limit in result.get("limits", {}).values()), default=None)


def bars(result, top):
    """SVG elements of a benchmark, and the height they take."""
    rate, lines, limit = result["rate"], result["contenders"], limit_of(result)
    longest = max(line[rate] for line in lines)
    scale = (WIDTH - LEFT - RIGHT) / longest
    elements = [words(10, top + 20, result["title"], weight="bold")]
    y = top + TITLE
    for line in lines:
        length, ours = line[rate] * scale, line["label"].startswith("mneme")
        elements.append(words(LEFT - 8, y + BAR - 5, wide(line), anchor="end"))
        elements.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" '
                        f'fill="{OURS if ours else OTHERS}"/>')
        elements.append(words(LEFT + length + 6, y + BAR - 5, short(line[rate]), weight="bold" if ours else "normal"))
        y += BAR + GAP
    if limit is not None and limit <= longest:
        x = LEFT + limit * scale
        elements.append(f'<line x1="{x:.1f}" y1="{top + TITLE - 4}" x2="{x:.1f}" y2="{y}" stroke="{LIMIT}" '
                        'stroke-dasharray="4 3"/>')
    if limit is not None:
        elements.append(words(LEFT, y + 12, f"the machine's limit: {short(limit)}", colour=LIMIT))
        y += BAR
    return elements, y - top + BETWEEN


def svg(report):
    """A self-contained SVG; equal results give equal text."""
    elements, y = [], 44
    for result in report["benchmarks"]:
        found, height = bars(result, y)
        elements += found
        y += height
    unit = "client-rounds a second of CPU time (b7: of wall time), medians of " + str(report["repeat"])
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
            'font-family="sans-serif" font-size="13">', f'<rect width="{WIDTH}" height="{y}" fill="white"/>',
            words(10, 26, unit, colour="#555")]
    return "\n".join(head + elements + ["</svg>"]) + "\n"
