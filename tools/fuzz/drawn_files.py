"""Random files for drawn scenarios: user data in every format, and tables of partition, links, devices and
availability."""
import io
import zipfile

from array_bytes import Array, Texts, npy, png, safetensors_bytes

DOMAINS = ["east", "west"]


def _numbers(draw, count):
    return [draw.choice([0.0, 1.0, -2.5, draw.random(), draw.random() * 30]) for _ in range(count)]


def _arrays(draw, kind, shape, tokens, with_domains):
    """Random arrays of both splits in the format of data.name = "arrays"."""
    made, classes = {}, draw.choice([2, 4, 6])
    size = 1
    for extent in shape:
        size *= extent
    for split, rows in (("train", draw.choice([12, 40, 120])), ("test", draw.choice([6, 20]))):
        if kind == "images":
            values = Array("uint8", [rows, *shape], [draw.randrange(256) for _ in range(rows * size)])
        elif kind == "tokens":
            values = Array("int64", [rows, *shape], [draw.randrange(tokens) for _ in range(rows * size)])
        else:
            values = Array("float32", [rows, *shape], _numbers(draw, rows * size))
        made[split + "_x"] = values
        made[split + "_y"] = Array("int64", [rows], [row % classes for row in range(rows)])
        if with_domains:
            made[split + "_domain"] = Array("int64", [rows], [row // classes % 2 for row in range(rows)])
    if with_domains and draw.random() < 0.5:
        made["domain_names"] = Texts(DOMAINS)
    return made


def array_files(draw, folder, kind, shape, tokens, with_domains):
    """Returns (value of data.file, files)."""
    arrays = _arrays(draw, kind, shape, tokens, with_domains)
    form = draw.choice(["npz", "packed", "npy", "safetensors"])
    if form == "npy":
        return f"{folder}/train_x.npy", {f"{folder}/{name}.npy": npy(array) for name, array in arrays.items()}
    if form == "safetensors":
        return f"{folder}/rows.safetensors", {f"{folder}/rows.safetensors": safetensors_bytes(arrays)}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED if form == "packed" else zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), npy(array))
    return f"{folder}/rows.npz", {f"{folder}/rows.npz": packed.getvalue()}


def csv_files(draw, folder, columns, with_domains):
    """Returns (settings of [data], files): a table with random column names, sometimes without a split."""
    label, split, domain = (draw.choice([name, "x " + name]) for name in ("label", "split", "domain"))
    has_split, classes = draw.random() < 0.7, draw.choice([2, 4, 6])
    head = [label] + [f"n{at}" for at in range(columns)] + ([domain] if with_domains else []) + \
        ([split] if has_split else [])
    lines = [",".join(head)]
    for row in range(draw.choice([24, 60, 150])):
        words = [f"a{row % classes}"] + [f"{value:.3g}" for value in _numbers(draw, columns)]
        words += [DOMAINS[row // classes % 2]] if with_domains else []
        lines.append(",".join(words + (["test" if row // (2 * classes) % 3 == 2 else "train"] if has_split else [])))
    settings = {"file": f'"{folder}/table.csv"', "label_column": f'"{label}"'}
    if has_split or split != "split":
        settings["split_column"] = f'"{split}"' if has_split else '"split"'
    if with_domains:
        settings["domain_column"] = f'"{domain}"'
    if not has_split:
        settings["test_share"] = draw.choice(["0.2", "0.5"])
    return settings, {f"{folder}/table.csv": ("\n".join(lines) + "\n").encode()}


def picture_files(draw, folder, channels, side, with_domains):
    """Returns (settings of [data], files): images of three classes in folders."""
    files, splits = {}, draw.choice([["train", "test"], [""]])
    pixels = side * side
    for split in splits:
        for domain in DOMAINS if with_domains else [""]:
            for name in "ant", "bee", "cat":
                for number in range(draw.choice([3, 8])):
                    planes = [bytes(draw.randrange(256) for _ in range(pixels)) for _ in range(channels)]
                    path = "/".join(part for part in (folder, "p", split, domain, name, f"{number}.png") if part)
                    files[path] = png(side, side, planes)
    settings = {"root": f'"{folder}/p"'}
    if splits == [""]:
        settings["test_share"] = draw.choice(["0.2", "0.5"])
    return settings, files


def _spans(draw, clients, further):
    """Random lines with the columns client, from, to and the columns in `further`. Some clients have no line."""
    lines = []
    for client in range(clients):
        begin = 0.0
        for _ in range(draw.choice([0, 1, 1, 3])):
            begin += draw.choice([0.0, 0.0, 0.3, 5.0, 100.0])
            end = begin + draw.choice([0.05, 1.0, 40.0, 4000.0])
            lines.append(f"{client},{begin:.6g},{end:.6g}" + further())
            begin = end
    return lines


def availability_file(draw, clients):
    has_period = draw.random() < 0.3
    lines = _spans(draw, clients, (lambda: ",9000") if has_period else (lambda: ""))
    return "\n".join(["client,from,to" + (",period" if has_period else ""), *lines]) + "\n"


def link_file(draw, clients):
    lines = _spans(draw, clients, lambda: f",{draw.choice([0.01, 0.5, 20])},{draw.choice([0.05, 1, 90])}")
    return "\n".join(["client,from,to,uplink_mbit,downlink_mbit", *lines]) + "\n"


def capacity_file(draw, clients, profiles):
    lines = []
    for client in draw.sample(range(clients), draw.randrange(clients + 1)):
        profile = str(draw.randrange(profiles)) if profiles and draw.random() < 0.5 else ""
        speeds = [draw.choice(["", 1, 90, 2e4]), draw.choice(["", 0.2, 9]), draw.choice(["", 0.5, 30])]
        lines.append(",".join(map(str, [client, profile, *speeds])))
    return "\n".join(["client,profile,rows_per_second,uplink_mbit,downlink_mbit", *lines]) + "\n"


def partition_file(draw, clients, rows, tasks):
    """Table that gives each training row to one client, sometimes with a task."""
    with_tasks = draw.random() < 0.3
    chosen = [row for row in range(rows) if draw.random() < 0.8]
    lines = [f"{draw.randrange(clients)},{row}" + (f",{draw.randrange(tasks) + 1}" if with_tasks else "")
             for row in chosen]
    return "\n".join(["client,row" + (",task" if with_tasks else ""), *lines]) + "\n"


PROFILES = ["snapdragon-888", "raspberry-pi-5", "jetson-nano", "celeron-n5105"]
LINKS = ["lte", "dsl", "3g", "5g"]


def drawn_profiles(draw):
    """Returns (value of devices.profiles, number of profiles)."""
    texts = []
    for name in draw.sample(PROFILES, draw.choice([1, 2, 3])):
        link = f', link = "{draw.choice(LINKS)}"' if draw.random() < 0.7 else ""
        share = f", share = {draw.choice([0.3, 1, 2])}" if draw.random() < 0.5 else ""
        texts.append(f'{{ name = "{name}"{link}{share} }}')
    return "[" + ", ".join(texts) + "]", len(texts)
