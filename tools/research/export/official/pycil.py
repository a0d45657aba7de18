#!/usr/bin/env python3
"""iCaRL's distillation and herding, and BiC with all corrections, in G-U-N/PyCIL.

    python3 tools/research/export/official/pycil.py CHECKOUT [tests/golden]

Needs PyTorch and numpy. Nets, data sets and other imports of the checkout are replaced by stubs. BiC takes one step of
SGD at a rate of 1 on a linear net, so the change of the weights is the gradient.
"""
import os
import sys
import types

import numpy
import torch

import learners
from learners import leaf, listed, made
from ss_il import CLASSES, FEATURES, MIXED_LABELS, STEP, change_after

REPOSITORY = "https://github.com/G-U-N/PyCIL"
COMMIT = "87cc4110d60765dc3f64af7ef7a693efed8418ff"
CORRECTIONS = [(1.0, 0.0), (0.8, -0.3)]  # alpha and beta of all tasks but the newest


def icarl():
    from models import base, icarl as icarl_module

    z = leaf("icarl.old_logits", 6, 3, scale=3.0)
    loss = icarl_module._KD_loss(z, made("icarl.teacher", 6, 3, scale=2.0), 2)
    loss.backward()
    features = made("icarl.features", 30, 8).numpy()
    base.DataLoader = lambda rows, **_: rows
    data = types.SimpleNamespace(get_dataset=lambda classes, source, mode, appendent=None, ret_data=False: (
        (numpy.arange(30), None, None) if ret_data else None))
    learner = types.SimpleNamespace(_known_classes=0, _total_classes=1, _data_memory=[], _targets_memory=[],
                                    _extract_vectors=lambda loader: (features, None),
                                    _class_means=numpy.zeros((1, 8)))
    base.BaseLearner._construct_exemplar(learner, data, 12)
    return {"distillation": {"value": loss.item(), "d_logits": listed(z.grad)},
            "herding": learner._data_memory.tolist()}


def net_of(name, tasks):
    """PyCIL's net with corrections; its body returns the rows unchanged."""
    from utils.inc_net import BiasLayer_BIC, IncrementalNetWithBias
    from convs.linears import SimpleLinear

    class Net(torch.nn.Module):
        forward = IncrementalNetWithBias.forward
        bias_correction, task_sizes = True, [STEP] * tasks

        def convnet(self, rows):
            return {"features": rows}

    net = Net()
    net.fc = SimpleLinear(FEATURES, STEP * tasks).double()
    net.bias_layers = torch.nn.ModuleList([BiasLayer_BIC().double() for _ in range(tasks)])
    with torch.no_grad():
        net.fc.weight.copy_(made(name + ".weight", CLASSES, FEATURES)[:STEP * tasks])
        net.fc.bias.copy_(made(name + ".bias", CLASSES)[:STEP * tasks])
        for layer, (alpha, beta) in zip(net.bias_layers, CORRECTIONS):
            layer.alpha.fill_(alpha)
            layer.beta.fill_(beta)
    return net


def bic():
    from models import bic as bic_module

    net, rows = net_of("net", 3), made("bic.rows", len(MIXED_LABELS), FEATURES)
    batch = [(None, rows, torch.tensor(MIXED_LABELS))]
    bic_module.epochs = 1
    learner = types.SimpleNamespace(_network=net, _old_network=net_of("old", 2), _device=torch.device("cpu"),
                                    _known_classes=2 * STEP, _cur_task=2, lamda=2.0 / 3.0,
                                    _compute_accuracy=lambda model, loader: 0.0)
    optimizer = torch.optim.SGD(net.fc.parameters(), lr=1.0)
    scheduler = types.SimpleNamespace(step=lambda: None)
    change = change_after(net.fc, lambda: bic_module.BiC._run(learner, batch, None, optimizer, scheduler, "training"))
    return {"labels": MIXED_LABELS, "corrections": CORRECTIONS, "stage1_minus_gradient": change}


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("scipy", "scipy.spatial", "scipy.spatial.distance", "tqdm", "timm", "timm.models",
                      "timm.models.layers", "convs.cifar_resnet", "convs.resnet", "convs.ucir_cifar_resnet",
                      "convs.ucir_resnet", "convs.modified_represnet", "convs.resnet_cbam", "convs.memo_resnet",
                      "convs.memo_cifar_resnet", "convs.ACL_buffer", "torchvision", "torchvision.transforms")
    learners.open_checkout(checkout, COMMIT)
    learners.write(os.path.join(into, "icarl", "pycil.json"), REPOSITORY, COMMIT, **icarl())
    learners.write(os.path.join(into, "bic", "pycil.json"), REPOSITORY, COMMIT, **bic())


if __name__ == "__main__":
    main()
