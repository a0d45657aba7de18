"""Common definition of the real and the simulated federation: nets, rows, clients and the scenario."""
import json

# Both sides use random pixels of the data set's shape as rows, because the duration of a step does not depend on them.
FEDERATIONS = {
    "lenet": {"shape": [1, 28, 28], "classes": 10, "model": {"name": "lenet"}, "batch": 32, "rows": (300, 900),
              "mbit": (10.0, 40.0), "trains": True},
    "cnn": {"shape": [3, 32, 32], "classes": 100, "model": {"name": "cnn"}, "batch": 32, "rows": (20, 60),
            "mbit": (20.0, 100.0), "trains": True},
    # 11,018,670 numbers of 4 bytes. Nothing is trained, so only the links matter.
    "noop": {"shape": [784], "classes": 10, "model": {"name": "mlp", "hidden": [4096, 1900]}, "batch": 1,
             "rows": (1, 1), "mbit": (40.0, 100.0), "trains": False},
}
NOOP_SHAPES = [(4096, 784), (4096,), (1900, 4096), (1900,), (10, 1900), (10,)]


def between(low, high, place, count):
    """Value `place` of `count` values spread evenly over [low, high]."""
    return low if count < 2 else low + (high - low) * place / (count - 1)


def clients_of(kind, count):
    """Clients with shares of a core from 0.1 to 0.5 (less if there are many), and with links and rows that vary against
    them."""
    of = FEDERATIONS[kind]
    share_max = min(0.5, 3.2 / count - 0.1)
    clients = []
    for i in range(count):
        mbit = round(between(*of["mbit"], (i * 5) % count, count), 1)
        clients.append({"share": round(between(0.1, max(share_max, 0.1), (i * 3 + 1) % count, count), 3),
                        "uplink_mbit": mbit, "downlink_mbit": round(1.5 * mbit, 1),
                        "rows": round(between(*of["rows"], (i * 7 + 2) % count, count))})
    return clients


def net_of(kind):
    """The net in PyTorch, and a loss over all its classes; None for a federation without training."""
    from torch import nn
    if kind == "lenet":
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                             nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
                             nn.ReLU(), nn.Linear(84, 10))
    if kind == "cnn":
        return nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Dropout(0.25), nn.Flatten(), nn.Linear(64 * 14 * 14, 128), nn.ReLU(), nn.Dropout(0.5),
                             nn.Linear(128, 100))
    raise ValueError(f"{kind} has no net: it does not train")


def arrays_of(kind):
    """Weights that are sent over the links, as NumPy arrays."""
    import numpy
    if not FEDERATIONS[kind]["trains"]:
        return [numpy.zeros(shape, dtype=numpy.float32) for shape in NOOP_SHAPES]
    return [value.detach().numpy() for value in net_of(kind).state_dict().values()]


def value_text(value):
    return json.dumps(value)


def scenario_text(kind, clients, rounds, deadline_s, concurrency, profiles):
    """The same federation as a scenario of mneme. `profiles`: one file per client; `concurrency` > 0: asynchronous,
    FedAsync."""
    of = FEDERATIONS[kind]
    lines = [f'title = "tools/research/realtime: {kind}, {len(clients)} clients"', "tasks.kind = \"single\"",
             f"clients.count = {len(clients)}", 'strategy.name = "fedavg"', "evaluation.every = 0",
             "checkpoint.every = 0",
             "[data]", 'name = "synthetic"', f"shape = {value_text(of['shape'])}", f"classes = {of['classes']}",
             f"rows = {max(sum(client['rows'] for client in clients), of['classes'])}",
             "[partition]", 'kind = "file"', 'file = "partition.csv"',
             "[model]", *(f"{key} = {value_text(value)}" for key, value in of["model"].items()),
             "[training]", f"batch = {of['batch']}", "learning_rate = 0.01",
             "[rounds]", f"per_task = {rounds}"]
    if concurrency > 0:
        lines += ['mode = "async"', 'aggregation = "fedasync"', f"concurrency = {concurrency}"]
    else:
        lines += ["cohort = 0", f'deadline = "{deadline_s} s"', 'late = "keep"']
    entries = ", ".join(f'{{ file = "{file}" }}' for file in profiles)
    return "\n".join(lines + ["[devices]", f"profiles = [{entries}]", 'capacity_file = "capacity.csv"', ""])


def partition_text(clients):
    """Partition of rows 0 to n - 1 in blocks."""
    lines, row = ["client,row"], 0
    for number, client in enumerate(clients):
        lines += [f"{number},{row + i}" for i in range(client["rows"])]
        row += client["rows"]
    return "\n".join(lines) + "\n"


def capacity_text(clients):
    return "client,profile\n" + "".join(f"{number},{number}\n" for number in range(len(clients)))
