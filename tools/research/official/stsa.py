#!/usr/bin/env python3
"""Statistics of STSA's repository, and one round of its EWC and LwF, on a CPU.

    tools/research/official/stsa.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/Yuqin-G/STSA at the commit below. Writes stsa/statistics.json (replace_fc1 and
replace_fc_ours3 over two tasks, on features from names), fed_ewc/local_rounds.json and fed_lwf/local_rounds.json (a
client's training on fixed batches, in the first task and in a later one), all in float64.
"""
import sys
import types

import torch
from torch import nn

import shim
from shim import listed, replaced, summary, values_of
from small_nets import Answering, moved, pixels

CLASSES, FEATURES, WIDTH, DUMMIES, RIDGE = 4, 5, 7, 3, 10.0
HELD = [[0, 3, 4, 9, 10, 11, 13], [1, 2, 5, 6], [7, 8, 12, 14, 15, 16, 17, 18, 19]]  # rows of three clients


class Stsa(shim.Adapter):
    NAME = "stsa"
    REPOSITORY = "https://github.com/Yuqin-G/STSA"
    COMMIT = "aaaa006e0b63ebc637b16118925b0e19730c7d25"
    STUBS = ("sklearn", "scipy", "timm", "easydict")

    def load(self, checkout):
        super().load(checkout)
        import methods.ewc
        import methods.lwf
        import methods.STSA
        self.stsa, self.ewc, self.lwf = methods.STSA, methods.ewc, methods.lwf

        class InOrder(torch.utils.data.DataLoader):
            def __init__(self, *given, shuffle=False, num_workers=0, **named):
                super().__init__(*given, shuffle=False, **named)
        self.stsa.DataLoader = InOrder
        self.stsa.DatasetSplit = torch.utils.data.Subset


# -- STSA -------------------------------------------------------------------------------------------------------------

def rows_of_task(task):
    features = values_of(f"features.{task}", (20, FEATURES)).double()
    return [(i, features[i], torch.tensor(2 * task + (i * i + i // 3) % 2)) for i in range(20)]


def statistics(adapter, kind):
    learner = object.__new__(adapter.stsa.STSA)
    learner.args = {"frac": 1.0, "num_users": len(HELD), "local_bs": 4, "M": WIDTH, "nb_classes": CLASSES,
                    "ridge": RIDGE, "dummy": DUMMIES}
    learner.user_groups = HELD
    learner.W_rand = values_of("W_R", (FEATURES, WIDTH)).double()
    learner.P, learner.G = torch.zeros(WIDTH, CLASSES), torch.zeros(WIDTH, WIDTH)
    net = types.SimpleNamespace(fc=types.SimpleNamespace(weight=nn.Parameter(torch.zeros(CLASSES, WIDTH))),
                                extract_vector=lambda rows: rows)
    net.eval = net.cuda = lambda: net
    learner._network, made = net, []
    for task in range(2):
        with replaced({(torch, "randperm"): torch.arange}):
            getattr(learner, kind)(None, net, learner.args, rows_of_task(task))
        made.append({"gram": listed(learner.G), "sums": listed(learner.P), "readout": listed(net.fc.weight)})
    return made


# -- EWC and LwF ------------------------------------------------------------------------------------------------------

SEEN, OLD, ROWS = 6, 4, 8


def batches(name, low, count=2):
    return [(None, pixels(f"{name}.{i}", ROWS), torch.tensor([low + (i + r * r) % (SEEN - low) for r in range(ROWS)]))
            for i in range(count)]


def ewc_rounds(adapter):
    """A client's training and Fisher pass: its upload, and the Fisher information that it keeps."""
    made = {}
    for name in ("first", "later"):
        learner = object.__new__(adapter.ewc.EWC)
        learner.args, learner.fisher_list, learner.mean_list = {"local_ep": 1}, {}, {}
        net = Answering("client.", SEEN)
        if name == "first":
            sent = learner._local_update(net, batches(name, 0), 0)
        else:
            learner._known_classes, learner._total_classes = OLD, SEEN
            learner._network = Answering("server.", SEEN)
            learner.fisher_list[0] = {n: torch.full_like(p, 1e-5) for n, p in net.named_parameters()}
            learner.mean_list[0] = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
            sent = learner._local_finetune(net, batches(name, OLD), 0)
        shown = types.SimpleNamespace(state_dict=lambda sent=sent: {n.replace("net.", ""): v for n, v in sent.items()})
        made[name] = {"sent": moved(shown),
                      "fisher": {n.replace("net.", ""): summary(n.replace("net.", ""), v)
                                 for n, v in learner.fisher_list[0].items()}}
    return made


def lwf_rounds(adapter):
    made = {}
    for name in ("first", "later"):
        learner = object.__new__(adapter.lwf.LwF)
        learner.args, learner._known_classes = {"local_ep": 1}, OLD
        learner._old_network = Answering("old.", SEEN).eval()
        whole = learner._old_network.forward
        learner._old_network.forward = lambda x, whole=whole: {"logits": whole(x)["logits"][:, :OLD]}
        net = Answering("client.", SEEN)
        train = learner._local_update if name == "first" else learner._local_finetune
        train(net, batches(name, 0 if name == "first" else OLD))
        made[name] = moved(net.net)
    return made


def steps(adapter):
    return {"stsa/statistics": {"exact": statistics(adapter, "replace_fc1"),
                                "estimated": statistics(adapter, "replace_fc_ours3")},
            "fed_ewc/local_rounds": ewc_rounds(adapter), "fed_lwf/local_rounds": lwf_rounds(adapter)}


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    sys.exit(shim.main(Stsa(), steps, __doc__))
