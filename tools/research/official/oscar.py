#!/usr/bin/env python3
"""Training of OSCAR's official program (Zaland et al., ICME 2025), epoch by epoch, on a CPU.

    tools/research/official/oscar.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/obaidullahzaland/oscar at the commit below. Its train.py reads data when it is
imported. Its arguments, train_model and the main block (net, loss, optimizer, schedule) are therefore extracted by
their syntax tree. They run on fixed batches with a residual net for CIFAR instead of ResNet-18. Writes
oscar/training.json (losses of all steps; net, right predictions and rate after each epoch; the selected net) and
oscar/schedule.json (rates for large losses, because the schedule receives the loss instead of the epoch's number).
"""
import argparse
import ast
import collections
import copy
import sys
import types
import warnings

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
    """True for the functions that train and test, the parser of arguments, and the main block."""
    if isinstance(node, ast.FunctionDef):
        return node.name in TAKEN
    if isinstance(node, ast.Assign):
        return node.targets[0].id in ("parser", "args") if isinstance(node.targets[0], ast.Name) else False
    if isinstance(node, ast.If):
        return "__main__" in ast.unparse(node.test)
    return ast.unparse(node).startswith("parser.add_argument")


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

    def run_main(self, net, started, rows, tests, arguments, **names):
        """Runs the main block. @param net replaces torchvision's resnet18 @param started sets the initial weights of
        the program's net @param names replaced names of train.py @return all variables that it has defined"""
        from tqdm import tqdm
        names = {"__name__": "__main__", "argparse": argparse, "copy": copy, "torch": torch, "nn": nn,
                 "optim": torch.optim, "StepLR": torch.optim.lr_scheduler.StepLR, "tqdm": tqdm,
                 "defaultdict": collections.defaultdict, "accuracy_logger": SILENT, "device": "cpu",
                 "initialize_model": lambda *given, **named_: started(self.models.initialize_model(*given, **named_)),
                 "dataloaders": {"train": rows}, "image_datasets": {"train": range(rows_in(rows))},
                 "clients_test_dataloaders": tests, "print": lambda *_: None, **names}
        with warnings.catch_warnings(), replaced({(self.models.models, "resnet18"): lambda pretrained: net(),
                                                  (sys, "argv"): ["train.py", "--backbone", "resnet18", *arguments]}):
            warnings.simplefilter("ignore")  # torch warns that passing an epoch to a schedule is deprecated
            exec(self.program, names)
        return names

    def trained(self, *arguments, scale=1.0):
        """Trains on rows from names. @param scale of the head's weights @return records of epochs, and the net"""
        kept = {"losses": [], "right": [], "rates": [], "nets": []}
        nets = []

        class Watched(torch.optim.lr_scheduler.StepLR):
            def step(self, *given):
                super().step(*given)
                if given:  # false in the first call, which torch itself makes
                    kept["losses"].append(rounded(given[0]))
                    kept["rates"].append(rounded(self.get_last_lr()[0]))
                    kept["nets"].append(moved(nets[0]))

        def started(net):
            nets.append(named(net, ""))
            with torch.no_grad():
                net.fc.weight.mul_(scale)
            return net

        def note_accuracy(text):
            if text.startswith("Train Loss"):
                kept["right"].append(round(float(text.split()[-1]) * ROWS))
        rows = batches()
        self.run_main(lambda: CifarResNet(1, CLASSES), started, rows, {"all": rows},
                      ["--num_classes", str(CLASSES), *arguments], StepLR=Watched, print=note_accuracy)
        return kept, nets[0]


def rows_in(rows):
    """Returns the rows. @param rows a loader, or a list of batches"""
    return len(rows.dataset) if hasattr(rows, "dataset") else sum(len(labels) for _, labels in rows)


def batches():
    """Rows in order; every epoch starts from the first."""
    images, labels = pixels("rows", ROWS), torch.tensor([(i * i + i // 3) % CLASSES for i in range(ROWS)])
    return list(zip(images.split(BATCH), labels.split(BATCH)))


def training(adapter):
    kept, net = adapter.trained("--lr", str(RATE), "--iterations", str(EPOCHS))
    return {"settings": {"rows": ROWS, "batch": BATCH, "rate": RATE, "momentum": 0.9, "epochs": EPOCHS}, **kept,
            "kept": moved(net)}


def schedule(adapter):
    """Starts from a head with large weights: the rate falls while the loss is above 7."""
    kept, _ = adapter.trained("--iterations", str(EPOCHS), scale=20.0)
    return {"losses": kept["losses"], "rates": kept["rates"]}


def steps(adapter):
    return {"oscar/training": training(adapter), "oscar/schedule": schedule(adapter)}


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    sys.exit(shim.main(Oscar(), steps, __doc__))
