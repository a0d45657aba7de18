#!/usr/bin/env python3
"""Runs FedHAF's two stages in eager PyTorch, one client after the other, for comparison with bench_adjustment.

    python3 tools/bench/adjustment_pytorch.py [CLIENTS]

The work is that of bench_adjustment: 100 new rows and 20 exemplars with 512 features, batch 64, two epochs of the head
and one of the module, SGD with momentum 0.9 and clipping, and the model before the task as teacher. The code is written
in the usual way: modules, a DataLoader over tensors, autograd, torch.optim. Both sides get precomputed backbone
features and use one thread. Prints client-rounds per CPU second. Does not use mneme.
"""
import copy
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

FEATURES, FRESH, OLD, BATCH, OLD_CLASSES, CLASSES = 512, 100, 20, 64, 10, 20


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(FEATURES, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.2))
        self.rest = nn.Sequential(nn.Linear(512, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.2),
                                  nn.Linear(512, 256), nn.BatchNorm1d(256))
        self.shortcut = nn.Linear(512, 256, bias=False)

    def forward(self, x):
        first = self.first(x)
        return self.rest(first) + self.shortcut(first)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.adjustment = Module()
        self.head = nn.Sequential(nn.Linear(256, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.2),
                                  nn.Linear(128, CLASSES))

    def forward(self, x):
        features = self.adjustment(x)
        return features, self.head(features)


def head_loss(net, teacher, x, y):
    _, logits = net(x)
    loss = functional.cross_entropy(logits, y)
    old = y < OLD_CLASSES
    if old.any():
        with torch.no_grad():
            _, taught = teacher(x[old])
        present = functional.log_softmax(logits[old][:, :OLD_CLASSES], 1)
        before = functional.log_softmax(taught[:, :OLD_CLASSES], 1)
        loss = loss + functional.kl_div(before, present, reduction="batchmean", log_target=True)
    return loss


def mean_length(rows, labels):
    return torch.stack([rows[labels == label].norm(dim=1).mean() for label in labels.unique()]).mean()


def module_loss(net, teacher, x, y):
    features = net.adjustment(x)
    old = y < OLD_CLASSES
    if not old.any() or old.all():
        return features.sum() * 0.0
    with torch.no_grad():
        taught = teacher.adjustment(x[old])
    balance = (mean_length(features[~old], y[~old]) - mean_length(taught, y[old])).abs()
    return 2.0 * functional.mse_loss(features[old], taught) + balance


def train_part(net, part, other, loss_of, teacher, loader, epochs):
    part.requires_grad_(True).train()
    other.requires_grad_(False).eval()
    optimizer = torch.optim.SGD(part.parameters(), lr=0.02, momentum=0.9)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss_of(net, teacher, x, y).backward()
            torch.nn.utils.clip_grad_norm_(part.parameters(), 5.0)
            optimizer.step()


def client_round(server_net, teacher, rows):
    net = copy.deepcopy(server_net)
    loader = DataLoader(rows, batch_size=BATCH, shuffle=True)
    train_part(net, net.head, net.adjustment, head_loss, teacher, loader, 2)
    train_part(net, net.adjustment, net.head, module_loss, teacher, loader, 1)
    return net.state_dict()


def main():
    torch.set_num_threads(1)
    clients = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    server_net, teacher = Net(), Net().eval()
    labels = torch.cat([OLD_CLASSES + torch.arange(FRESH) % (CLASSES - OLD_CLASSES), torch.arange(OLD) % OLD_CLASSES])
    data = [TensorDataset(torch.randn(FRESH + OLD, FEATURES), labels) for _ in range(clients)]
    client_round(server_net, teacher, data[0])
    began = time.process_time()
    for rows in data:
        client_round(server_net, teacher, rows)
    print(f"{clients / (time.process_time() - began):.1f} client-rounds per CPU second, one after the other")


if __name__ == "__main__":
    main()
