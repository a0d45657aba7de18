#!/usr/bin/env python3
"""What the training of OSCAR's released program computes (Zaland et al., ICME 2025), epoch by epoch, on a CPU.

    tools/official/oscar.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/obaidullahzaland/oscar at the commit below. Its train.py reads data where it is
imported: its arguments, train_model and what is below `if __name__ == "__main__"` (net, loss, optimizer, schedule) are
taken out of it by their syntax tree, and run on fixed batches with a residual net for CIFAR in the place of ResNet-18.
Written are oscar/training.json (losses of all steps, the net, right answers and rate after each epoch, the net that is
kept) and oscar/schedule.json (the rates where losses are large: the schedule takes the loss for the epoch's number).
"""
import argparse
import ast
import collections
import copy
import sys
import types

import torch
from torch import nn

import shim
from shim import replaced, rounded
from small_nets import moved, named, pixels
from torchvision_reference import CifarResNet

CLASSES, ROWS, BATCH, RATE, EPOCHS = 4, 48, 16, 0.05, 5
TAKEN = ("train_model", "test_model", "test_model_catgory")
SILENT = types.SimpleNamespace(info=lambda *_: None)


def is_of_program(node):
    """Functions that train and test, the parser of arguments, and the main block."""
    if isinstance(node, ast.FunctionDef):
        return node.name in TAKEN
    if isinstance(node, ast.Assign):
        return node.targets[0].id in ("parser", "args") if isinstance(node.targets[0], ast.Name) else False
    return "parser.add_argument" in ast.unparse(node) or isinstance(node, ast.If) and "__main__" in ast.unparse(node.test)


class Oscar(shim.Adapter):
    NAME = "oscar"
    REPOSITORY = "https://github.com/obaidullahzaland/oscar"
    COMMIT = "450d932940e3411299f86e318a3331d0d9019029"

    def load(self, checkout):
        super().load(checkout)
        import utils.models
        self.models = utils.models
        with open("train.py", encoding="utf-8") as file:
            tree = ast.parse(file.read())
        tree.body = [node for node in tree.body if is_of_program(node)]
        self.program = compile(tree, "train.py", "exec")

    def trained(self, *arguments, scale=1.0):
        """Runs the main block. @param scale of the head's weights @return what is kept of its epochs, and the net"""
        from tqdm import tqdm
        rows, kept = batches(), {"losses": [], "right": [], "rates": [], "nets": []}

        class Watched(torch.optim.lr_scheduler.StepLR):
            def step(self, *given):
                super().step(*given)
                if given:  # not the first call, which torch makes
                    kept["losses"].append(rounded(given[0]))
                    kept["rates"].append(rounded(self.get_last_lr()[0]))
                    kept["nets"].append(moved(names["model"]))

        def note_accuracy(text):
            if text.startswith("Train Loss"):
                kept["right"].append(round(float(text.split()[-1]) * ROWS))

        def initialized(*given, **named_):
            net = named(self.models.initialize_model(*given, **named_), "")
            with torch.no_grad():
                net.fc.weight.mul_(scale)
            return net
        names = {"__name__": "__main__", "argparse": argparse, "copy": copy, "torch": torch, "nn": nn,
                 "optim": torch.optim, "StepLR": Watched, "tqdm": tqdm, "defaultdict": collections.defaultdict,
                 "initialize_model": initialized, "accuracy_logger": SILENT, "device": "cpu", "print": note_accuracy,
                 "dataloaders": {"train": rows}, "image_datasets": {"train": range(ROWS)},
                 "clients_test_dataloaders": {"all": rows}}
        with replaced({(self.models.models, "resnet18"): lambda pretrained: CifarResNet(1, CLASSES),
                       (sys, "argv"): ["train.py", "--backbone", "resnet18", "--num_classes", str(CLASSES), *arguments]}):
            exec(self.program, names)
        return kept, names["model"]


def batches():
    """The rows in their order, with which every epoch begins anew."""
    images, labels = pixels("rows", ROWS), torch.tensor([(i * i + i // 3) % CLASSES for i in range(ROWS)])
    return list(zip(images.split(BATCH), labels.split(BATCH)))


def training(adapter):
    kept, net = adapter.trained("--lr", str(RATE), "--iterations", str(EPOCHS))
    return {"settings": {"rows": ROWS, "batch": BATCH, "rate": RATE, "momentum": 0.9, "epochs": EPOCHS}, **kept,
            "kept": moved(net)}


def schedule(adapter):
    """A head whose weights are large has losses beyond 7, where the rate falls, until they are below."""
    kept, _ = adapter.trained("--iterations", str(EPOCHS), scale=20.0)
    return {"losses": kept["losses"], "rates": kept["rates"]}


def steps(adapter):
    return {"oscar/training": training(adapter), "oscar/schedule": schedule(adapter)}


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    sys.exit(shim.main(Oscar(), steps, __doc__))
