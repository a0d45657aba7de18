#!/usr/bin/env python3
"""Server of OSI-FL's official program (Zaland et al.), task by task, on a CPU.

    tools/research/official/osi_fl.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/obaidullahzaland/OSI-FL at the commit below. Its train.py reads data and arguments
when it is imported. The functions that train and select are therefore extracted by their syntax tree. They run with
loaders that do not shuffle and a residual net for CIFAR instead of ResNet-18. Writes osi_fl/top_k.json (two tasks of
train_incremental_topk: losses, the net after each task, the selection) and osi_fl/held_back.json (two tasks of OSCAR-R,
at momentum 0, because the code's momentum persists over tasks and mneme's does not).
"""
import ast
import collections
import copy
import sys
import types

import numpy
import torch
from torch import nn

import shim
from shim import replaced, rounded
from small_nets import moved, named, pixels
from torchvision_reference import CifarResNet

CLASSES, ROWS, KEPT, EPOCHS = 4, 40, 3, 2
TAKEN = ("select_topk_per_class_indices", "train_incremental_topk", "train_incremental_model_regularized", "test_model")


class InOrder(torch.utils.data.DataLoader):
    def __init__(self, *given, shuffle=False, **named_):
        super().__init__(*given, shuffle=False, **named_)


class Plateau(torch.optim.lr_scheduler.ReduceLROnPlateau):
    def __init__(self, *given, verbose=False, **named_):  # newer versions lack this parameter
        super().__init__(*given, **named_)


class WithoutMomentum(torch.optim.SGD):
    def __init__(self, parameters, lr, momentum):
        super().__init__(parameters, lr=lr)


class OsiFl(shim.Adapter):
    NAME = "osi_fl"
    REPOSITORY = "https://github.com/obaidullahzaland/OSI-FL"
    COMMIT = "bf60f749f07f8caedbd8250e0ac326c7aee83f9a"
    STUBS = ("ptflops",)

    def load(self, checkout):
        super().load(checkout)
        import utils.models
        self.models = utils.models
        with open("train.py", encoding="utf-8") as file:
            tree = ast.parse(file.read())
        tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in TAKEN]
        silent = types.SimpleNamespace(info=lambda *_: None)
        self.code = {"torch": torch, "nn": nn, "optim": torch.optim, "np": numpy, "copy": copy,
                     "DataLoader": InOrder, "ConcatDataset": torch.utils.data.ConcatDataset,
                     "Subset": torch.utils.data.Subset, "defaultdict": collections.defaultdict,
                     "gloss_logger": silent, "accuracy_logger": silent, "print_model_complexity": lambda *_: None,
                     "clients_test_dataloaders": {"first": [], "second": []}}
        exec(compile(tree, "train.py", "exec"), self.code)
        self.code["test_model"] = lambda *_, **__: None  # there are no test rows

    def net(self):
        """The official BackboneModel: frozen except for a linear head."""
        with replaced({(self.models.models, "resnet18"): lambda pretrained: CifarResNet(1, 1)}):
            made = self.models.BackboneModel("resnet18", CLASSES)
        with torch.no_grad():
            values = named(CifarResNet(1, CLASSES), "")
            made.encoder.load_state_dict(values.state_dict(), strict=False)
            made.final_proj[0].load_state_dict(values.fc.state_dict())
        return made


def tasks():
    """Two tasks of two classes each: datasets of (image, label)."""
    return {name: [(image, 2 * task + (i * i + i // 3) % 2) for i, image in enumerate(pixels("task." + name, ROWS))]
            for task, name in enumerate(("first", "second"))}


def by_mneme_names(net):
    plain = {name.replace("encoder.", "").replace("final_proj.0.", "fc."): value
             for name, value in net.state_dict().items()}
    return moved(types.SimpleNamespace(state_dict=lambda: plain))


class KeptLoss(nn.CrossEntropyLoss):
    values = []

    def forward(self, *given):
        value = super().forward(*given)
        self.values.append(rounded(value.detach()))
        return value


def top_k(adapter):
    net, after, chosen = adapter.net(), [], []
    select = adapter.code["select_topk_per_class_indices"]

    def watched(*given, **named_):
        after.append(by_mneme_names(net))
        chosen.append(select(*given, **named_))
        return chosen[-1]
    KeptLoss.values = []
    adapter.code["select_topk_per_class_indices"] = watched
    with replaced({(nn, "CrossEntropyLoss"): KeptLoss}), shim.quiet():
        adapter.code["train_incremental_topk"](net, tasks(), {"first": [], "second": []}, KEPT, EPOCHS, "cpu")
    return {"settings": {"rows": ROWS, "kept": KEPT, "epochs": EPOCHS, "batch": 32, "rate": 1e-3, "momentum": 0.9},
            "losses": KeptLoss.values, "nets": after, "chosen": chosen}


def held_back(adapter):
    rate, weight = 0.5, 20.0  # large enough for a visible penalty, which is divided by the sizes of tensors
    net, after = adapter.net(), []
    adapter.code["test_model"] = lambda *_, **__: after.append(by_mneme_names(net))
    with replaced({(torch.optim, "SGD"): WithoutMomentum, (torch.optim.lr_scheduler, "ReduceLROnPlateau"): Plateau}), \
            shim.quiet():
        adapter.code["train_incremental_model_regularized"](net, tasks(), EPOCHS, "cpu", lr=rate, batch_size=32,
                                                            reg_lambda=weight)
    return {"settings": {"rate": rate, "weight": weight, "epochs": EPOCHS, "batch": 32}, "nets": after}


def steps(adapter):
    return {"osi_fl/top_k": top_k(adapter), "osi_fl/held_back": held_back(adapter)}


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    sys.exit(shim.main(OsiFl(), steps, __doc__))
