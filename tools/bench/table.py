"""Formats the benchmark results as text."""

OTHERS_MAX = 0.1  # cores; lower use by other programs is not reported


def short(number):
    """Formats a number with about three digits, such as 12,300 or 0.62."""
    if number == 0:
        return "0"
    if abs(number) >= 999.5:
        return f"{round(number, 3 - len(str(int(abs(number))))):,.0f}"
    return f"{number:.3g}"


def megabytes(count):
    return f"{count / 1e6:,.0f} MB"


def times(ratio):
    return f"{short(ratio['median'])} ({short(ratio['min'])} - {short(ratio['max'])})"


def wide(line):
    return line["label"] + (f", {line['width']} wide" if line["width"] > 1 else "")


def row(label, cpu, wall="", peak="", ours=""):
    return f"  {label:<46}{cpu:>12}{wall:>12}{peak:>12}   {ours}".rstrip()


def limit_rows(result):
    gauges = {"gemm": ("limit: products at {} GFLOP/s", "flops_per_second", 1e9),
              "memory": ("limit: memory at {} GB/s", "bytes_per_second", 1e9)}
    for kind, limit in result.get("limits", {}).items():
        text, key, unit = gauges[kind]
        yield row(text.format(short(result["machine_limits"][key] / unit)), short(limit["cpu_rate"]),
                  ours=times(limit["ratio"]))


def verdict_row(verdict):
    relation, required, goal = verdict["relation"], short(verdict["required"]), short(verdict["goal"])
    aimed = f", aim {goal}" if goal != required else ""
    return f"  {'ok    ' if verdict['met'] else 'MISSED'} {verdict['label']}: {times(verdict['measured'])}; " \
           f"wanted {relation} {required}{aimed}"


def block(result):
    """Lines of the table for a benchmark."""
    yield result["title"]
    unit = result.get("unit", "client-rounds")
    yield row(f"{unit} a second", "of CPU", "of wall", "peak", "ours to it: median (min - max)")
    for line in result["contenders"]:
        yield row(wide(line), short(line["cpu_rate"]), short(line["wall_rate"]), megabytes(line["peak_rss_bytes"]),
                  times(line["ratio"]) if "ratio" in line else "")
        if "whole_cpu_rate" in line:
            yield row(f"  with its start of {short(line['start_seconds'])} s", short(line["whole_cpu_rate"]))
    yield from limit_rows(result)
    yield from map(verdict_row, result["verdicts"])


def text(report):
    machine = report["machine"]
    others = machine["cores_of_others"]
    lines = [f"{machine['cpu']}, {machine['cores']} cores; {report['mneme']}; medians of {report['repeat']}"
             + (", QUICK: not a measurement" if report["quick"] else "")]
    if others > OTHERS_MAX:
        lines.append(f"Other programs used {short(others)} cores: the rates are too low, and b7 is unreliable.")
    for result in report["benchmarks"]:
        lines += ["", *block(result)]
    return "\n".join(lines) + "\n"
