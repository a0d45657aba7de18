"""What a node may answer instead of what it has found: changes of its reports, each drawn from a seed."""
import copy
import struct

from mutations import mutated
from wave_reports import decoded, encoded

FAR = [-1, 0, 1, 7, 255, 2**31 - 1, 2**31, 2**40 + 1, 2**62, -2**63]


def _entries(report, *names):
    return [(name, at) for name in names for at in range(len(report[name]))]


def emptied(report, draw):
    for name in ("issued", "released", "finished", "failed"):
        report[name] = []
    report["lists"] = 0
    report["last"] = draw.choice([report["last"], 1])


def without_one(report, draw):
    if entries := _entries(report, "issued", "finished"):
        name, at = draw.choice(entries)
        del report[name][at]


def told_twice(report, draw):
    if entries := _entries(report, "issued", "finished"):
        name, at = draw.choice(entries)
        report[name].insert(draw.choice([at, len(report[name])]), copy.deepcopy(report[name][at]))


def other_end(report, draw):
    report["last"] = draw.choice([1 - report["last"], 2])


def other_shard(report, draw):
    report["shard"] = draw.choice([report["shard"] + 1, 0, 7, 2**32 - 1])


def other_figures(report, draw):
    name = draw.choice(["heard", "busy_ns"])
    report[name] = draw.choice([0, 1, report[name] + 100]) if name == "heard" else draw.choice(FAR)


def other_id(report, draw):
    if entries := _entries(report, "issued", "finished"):
        name, at = draw.choice(entries)
        if name == "issued":
            part = draw.randrange(3)
            report[name][at]["id"][part] = (report[name][at]["id"][part] + draw.choice([-1, 1, 1000])) % 2**32
        else:
            report[name][at]["id"] = (report[name][at]["id"] + draw.choice([-1000, 1000, 2**40])) % 2**64


def other_job(report, draw):
    if report["issued"]:
        job = draw.choice(report["issued"])
        name = draw.choice(["rows", "bytes", "width", "options"])
        job[name] = draw.choice([*FAR, job[name] + 1, job[name] // 2]) if name != "options" else draw.randrange(2**64)


def other_batches(report, draw):
    if report["released"]:
        change = draw.randrange(3)
        if change == 0:
            report["released"].pop()
        elif change == 1:
            report["released"].append([])
        elif report["released"][0]:
            report["released"][0].append(report["released"][0][0])


def other_weight(report, draw):
    if report["finished"]:
        done = draw.choice(report["finished"])
        name = draw.choice(["rows", "bytes", "proxy_bytes"])
        done[name] = draw.choice([*FAR, done[name] + 1])


def _tensors(report, parts=("upload", "memory", "to_proxy")):
    return [(done[part]["tensors"], at) for done in report["finished"] for part in parts
            for at in range(len(done[part].get("tensors", ())))]


def other_type(report, draw):
    """A tensor of another type: of as many bytes, or of as many numbers."""
    found = [tensors[at] for tensors, at in _tensors(report) if "data" in tensors[at]]
    if found:
        tensor = draw.choice(found)
        if tensor["dtype"] == 6:
            tensor["dtype"] = draw.choice([3, 3, -1, 99])
        elif tensor["dtype"] in (4, 7):
            tensor["dtype"] = 11 - tensor["dtype"]
        else:
            tensor["dtype"] = 11


def other_sizes(report, draw):
    found = [tensors[at] for tensors, at in _tensors(report) if tensors[at].get("data")]
    if found:
        tensor = draw.choice(found)
        bytes_each = len(tensor["data"])
        for size in tensor["sizes"]:
            bytes_each //= max(size, 1)
        if draw.randrange(2) and tensor["sizes"]:
            tensor["sizes"][0] -= 1
            row = len(tensor["data"]) // (tensor["sizes"][0] + 1)
            tensor["data"] = tensor["data"][:-row]
        else:
            tensor["sizes"].append(1)


def other_name(report, draw):
    if found := _tensors(report):
        tensors, at = draw.choice(found)
        tensors[at]["name"] = draw.choice([b"", b"\xff\xfe", b"weight", tensors[at]["name"] + b"s"])


def no_upload(report, draw):
    """The last upload's tensors are gone: no later map of the report refers to them."""
    if report["finished"]:
        done = report["finished"][-1]
        if done["upload"].get("tensors"):
            done["upload"]["tensors"] = []
            done["bytes"] = draw.choice([0, done["bytes"]])


def other_counts(report, draw):
    if report["finished"]:
        name = draw.choice([b"forged", b"\xff", b"", b'"'])
        draw.choice(report["finished"])["counts"].append([name, draw.choice([1.0, float("nan"), float("inf")])])


def failing(report, draw):
    """A round that was to end, or to go on, is said to have failed."""
    if report["finished"]:
        done = report["finished"].pop(draw.randrange(len(report["finished"])))
        round_id, stage = done["id"], 0
    elif report["issued"]:
        job = report["issued"].pop(draw.randrange(len(report["issued"])))
        round_id, stage = job["id"][0], job["id"][1]
    else:
        round_id, stage = 0, 0
    report["failed"].append({"id": [round_id, stage, 0], "client": draw.randrange(12), "round": 0,
                             "reason": draw.choice([b"out of memory", b"", b"\xff\n", b"x" * 100_000,
                                                    b"interrupted between two slices of a program"])})


# -- changes of numbers, which only a second computation shows

def other_numbers(report, draw):
    found = [tensors[at] for tensors, at in _tensors(report) if tensors[at].get("data")]
    if found:
        tensor = draw.choice(found)
        data = bytearray(tensor["data"])
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        tensor["data"] = bytes(data)


def other_round(report, draw):
    """A result is said to be that of the round before or behind, which the node may have been given too."""
    if report["finished"]:
        done = draw.choice(report["finished"])
        done["id"] = (done["id"] + draw.choice([-1, 1])) % 2**64


def swapped_results(report, draw):
    if len(report["finished"]) > 1:
        a, b = draw.sample(report["finished"], 2)
        for name in a:
            if name != "id":
                a[name], b[name] = b[name], a[name]


def other_losses(report, draw):
    told = [done["losses"] for done in report["finished"] if "terms" in done["losses"]]
    if told:
        losses = draw.choice(told)
        losses[draw.choice(["rows", "sum"])] *= draw.choice([2.0, -1.0, float("nan")])


INTEGERS = {0: "B", 1: "b", 2: "h", 3: "i", 4: "q"}  # dtypes and their letters in struct
FAR_FLOATS = [float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45, 0.0, -1.0]


def forged_integers(report, draw):
    """Classes, rows, counts and indices that nobody has: one number, or all of a tensor."""
    found = [tensors[at] for tensors, at in _tensors(report)
             if tensors[at].get("data") and tensors[at]["dtype"] in INTEGERS]
    if found:
        _forge(draw.choice(found), draw, lambda letter: draw.choice(FAR))


def forged_floats(report, draw):
    found = [tensors[at] for tensors, at in _tensors(report)
             if tensors[at].get("data") and tensors[at]["dtype"] in (6, 7)]
    if found:
        _forge(draw.choice(found), draw, lambda letter: draw.choice(FAR_FLOATS))


def _forge(tensor, draw, value_of):
    letter = {**INTEGERS, 6: "f", 7: "d"}[tensor["dtype"]]
    size = struct.calcsize(letter)
    count = len(tensor["data"]) // size
    values = list(struct.unpack(f"<{count}{letter}", tensor["data"]))
    value = value_of(letter)
    if letter not in "fd":
        value = (value + (1 << 8 * size - 1)) % (1 << 8 * size) - (1 << 8 * size - 1) if letter != "B" else value % 256
    chosen = range(count) if draw.randrange(4) == 0 else [draw.randrange(count)]
    for at in chosen:
        values[at] = value
    tensor["data"] = struct.pack(f"<{count}{letter}", *values)


FORM_CHANGES = [emptied, emptied, without_one, told_twice, other_end, other_shard, other_figures, other_id, other_job,
                other_batches, other_weight, other_type, other_sizes, other_name, no_upload, other_counts, failing]
NUMBER_CHANGES = [other_numbers, other_round, swapped_results, other_losses]


def changed(message, change, draw):
    """The message with its report changed; as it was where it is none, or the change finds nothing in it."""
    report = decoded(message)
    if report is None:
        return message
    change(report, draw)
    return encoded(report)


def damaged(message, draw):
    """Any bytes of a report; of another message none: what nodes say before they work is another search's."""
    return bytes(mutated(message, draw)) if decoded(message) else message
