#!/usr/bin/env python3
"""FedBuff and FedAsync in plain PyTorch, the reference with which mneme must agree.

    python3 tools/research/export/async_reference.py FASHION_MNIST_FOLDER [tests/golden/async_fashion_mnist]

Clients, rows, net and initial weights are those of fedavg_reference.py. All four clients always work, each for a fixed
time that follows from its rows and its speed. A queue of four entries thus determines from which model each starts.
Writes the weights after the last server step for each variant, computed in float64. Does not use mneme.
"""
import argparse
import copy
import heapq
import math
import os

import torch
from fedavg_reference import (CLIENT_ROWS, EPOCHS, SEED, TRAIN_ROWS, Mlp, partition, read_split, train_client,
                              write_safetensors)

STEPS = 50
ROWS_PER_SECOND = (97.0, 61.0, 83.0, 11.0)  # speed of each client, as in the scenarios
LATENCY_NS = 50_000_000                      # latency of a download and of an upload, which otherwise take no time
TRAINING = {"learning_rate": 0.02}


def polynomial(age, exponent=0.5):
    return (1 + age) ** -exponent


def hinge(age, slope=0.25, bound=2):
    return 1.0 if age <= bound else 1 / (slope * (age - bound) + 1)


# Each variant's scenario is the .toml file of the same name in the output folder.
VARIANTS = {
    "fedbuff_rows": {"buffer": 3, "by_rows": True, "server_rate": 1.0, "staleness": polynomial},
    "fedbuff_uniform": {"buffer": 2, "by_rows": False, "server_rate": 0.5, "staleness": hinge},
    "fedasync": {"mixing": 0.6, "staleness": polynomial},
    "fedasync_hinge": {"mixing": 0.3, "staleness": hinge},
}


def duration_ns(client):
    """Duration of a client's task in ns, from its dispatch to the arrival of its upload."""
    return 2 * LATENCY_NS + math.ceil(1e9 * CLIENT_ROWS[client] * EPOCHS / ROWS_PER_SECOND[client])


def flat(net):
    return torch.cat([value.detach().double().flatten() for value in net.parameters()])


def with_weights(net, weights):
    """Returns a copy of `net` with the flat `weights`."""
    made, at = copy.deepcopy(net), 0
    with torch.no_grad():
        for value in made.parameters():
            value.copy_(weights[at:at + value.numel()].view_as(value))
            at += value.numel()
    return made


def fedbuff_step(model, buffer, variant):
    """FedBuff step (Nguyen et al. 2022, Algorithm 1): w += eta sum c s (w_k - start_k) / sum c."""
    change, weight = torch.zeros_like(model), 0.0
    for client, start, trained, age in buffer:
        c = CLIENT_ROWS[client] if variant["by_rows"] else 1
        change += c * variant["staleness"](age) * (trained - start)
        weight += c
    return model + variant["server_rate"] * change / weight


def fedasync_step(model, upload, variant):
    """FedAsync step (Xie et al. 2019, Algorithm 1): w = (1 - a) w + a w_k."""
    _, _, trained, age = upload
    share = variant["mixing"] * variant["staleness"](age)
    return (1 - share) * model + share * trained


def federate(initial, clients, variant, dtype):
    """Returns (the model after the last server step, the ages of all uploads), computed in `dtype`."""
    net = copy.deepcopy(initial).to(dtype)
    model, steps, buffer, ages = flat(net), 0, [], []
    queue = [(duration_ns(client), client, model, 0) for client in range(len(clients))]
    heapq.heapify(queue)
    while steps < STEPS:
        now, client, start, since = heapq.heappop(queue)
        assert not queue or queue[0][0] > now, "two arrivals at one time: their order would not be told by durations"
        images, labels = clients[client]
        trained = flat(train_client(with_weights(net, start), images.to(dtype), labels, TRAINING, 0))
        ages.append(steps - since)
        upload = (client, start, trained, steps - since)
        if "mixing" in variant:
            model, steps = fedasync_step(model, upload, variant), steps + 1
        else:
            buffer.append(upload)
            if len(buffer) == variant["buffer"]:
                model, steps, buffer = fedbuff_step(model, buffer, variant), steps + 1, []
        if dtype == torch.float32:
            model = model.float().double()
        heapq.heappush(queue, (now + duration_ns(client), client, model, steps))
    return with_weights(net, model), ages


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("fashion_mnist")
    arguments.add_argument("out", nargs="?", default=os.path.join("tests", "golden", "async_fashion_mnist"))
    given = arguments.parse_args()
    torch.manual_seed(SEED)
    initial = Mlp()
    images, labels = read_split(given.fashion_mnist, "train", TRAIN_ROWS)
    clients = [(images[rows], labels[rows]) for rows in partition()]
    for name, variant in VARIANTS.items():
        exact, ages = federate(initial, clients, variant, torch.float64)
        single, _ = federate(initial, clients, variant, torch.float32)
        write_safetensors(os.path.join(given.out, f"expected_{name}.safetensors"), dict(exact.named_parameters()))
        print(f"{name}: weights moved by {(flat(exact) - flat(initial)).abs().max():.3g}, "
              f"float32 differs from float64 by {(flat(exact) - flat(single)).abs().max():.2g}, "
              f"{len(ages)} uploads, up to {max(ages)} steps old, {sum(ages) / len(ages):.2f} on average")


if __name__ == "__main__":
    main()
