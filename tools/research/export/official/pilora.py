#!/usr/bin/env python3
"""PILoRA's low-rank adapters, distances, local update and prototype weights in Ghy0501/PILoRA.

    python3 tools/research/export/official/pilora.py CHECKOUT [tests/golden]

Needs PyTorch, numpy and timm, whose VisionTransformer is made small. safetensors, torchvision, sklearn and the
checkout's data modules are replaced by stubs, and scipy's distance table by PyTorch's. All values are float64.
"""
import os
import sys
import types

import numpy
import torch
from timm.models.vision_transformer import VisionTransformer

import learners
from learners import leaf, listed, made

REPOSITORY = "https://github.com/Ghy0501/PILoRA"
COMMIT = "6d1c4efaca134cfc4493cf151329d693e07e75c8"
SIDE, PATCH, WIDTH, DEPTH, HEADS, RANK, CLASSES, ROWS, EPOCHS = 8, 4, 16, 5, 2, 4, 8, 4, 2
TASK, FRESH = 1, [2, 4]  # the task and its classes
LABELS = [[2, 3, 2, 2], [3, 3, 2, 2]]
CENTER_RATE, LOW_RANK_RATE = 1e-2, 5e-3
PARTS = {"a_q": "query.down", "b_q": "query.up", "a_v": "value.down", "b_v": "value.up"}


def transformer(*_, **__):
    """Small transformer with weights from formula()."""
    net = VisionTransformer(img_size=SIDE, patch_size=PATCH, embed_dim=WIDTH, depth=DEPTH, num_heads=HEADS,
                            num_classes=CLASSES).double()
    with torch.no_grad():
        for name, value in net.named_parameters():
            if not name.startswith("head"):
                numbers = made("prompted." + name, *value.shape, scale=0.5)
                value.copy_(1.0 + numbers if "norm" in name and name.endswith(".weight") else numbers)
    return net


def low_rank(task, part):
    return made(f"pilora.{task}.lora.0.{part}", *((RANK, WIDTH) if part.endswith("down") else (WIDTH, RANK)))


def net_of(theirs):
    """Official net with low-rank adapters of the first tasks and prototypes from formula()."""
    theirs.create_model = transformer
    net = theirs.VLT("small", CLASSES, r=RANK, lora_layer=[0])
    net.feat_dim = WIDTH
    net.centers = torch.nn.ParameterList(
        [torch.nn.Parameter(made("pilora.centers.weight", CLASSES, WIDTH)[i].unsqueeze(1)) for i in range(CLASSES)])
    net.double()
    attention = net.encoder.blocks[0].attn.qkv
    with torch.no_grad():
        for task in range(TASK + 1):
            for name, part in PARTS.items():
                getattr(attention, f"linear_{name}_{task}").weight.copy_(low_rank(task, part))
    net.switch_lora(TASK)
    net.centers_initial(FRESH)
    return net


def passed(net):
    """Features and distances of images, and gradients of sum(f d) with respect to the parts."""
    images = made("prompted.images", ROWS, 3, SIDE, SIDE)
    _, feature, distances, _, _ = net(images)
    attention = net.encoder.blocks[0].attn.qkv
    gradients = torch.autograd.grad((feature * made("prompted.d_features", ROWS, WIDTH)).sum(),
                                    [getattr(attention, f"linear_{name}_{TASK}").weight for name in PARTS])
    return {"features": listed(feature), "distances": listed(distances),
            "gradients": {f"lora.0.{part}": listed(value) for part, value in zip(PARTS.values(), gradients)}}


def loss_of(cpn):
    distances = leaf("pilora.distances", ROWS, CLASSES)
    with torch.no_grad():
        distances.abs_()
    labels = torch.tensor([2, 0, 7, 2])
    _, loss = cpn.DCE(labels, distances)
    loss.backward()
    return {"labels": labels.tolist(), "loss": loss.item(), "gradient": listed(distances.grad)}


def learnt(update, net):
    """Upload of a client after its local epochs: parts, prototypes and mean features by class."""
    client = object.__new__(update.LocalUpdate)
    client.args = types.SimpleNamespace(local_ep=EPOCHS, device="cpu")
    client.trainloader = [(made(f"pilora.images.{step}", ROWS, 3, SIDE, SIDE), torch.tensor(labels))
                          for step, labels in enumerate(LABELS)]
    earlier = {name: [low_rank(task, PARTS[name]) for task in range(TASK)] for name in ("a_q", "a_v")}
    state, means = client.update_weights(net, object(), CENTER_RATE, LOW_RANK_RATE, TASK, earlier["a_q"],
                                         earlier["a_v"])
    numbers = {f"lora.0.{part}": listed(state[f"encoder.blocks.0.attn.qkv.linear_{name}_{TASK}.weight"])
               for name, part in PARTS.items()}
    numbers["centers.weight"] = listed(torch.cat([state[f"centers.{i}"] for i in range(CLASSES)], 1).T)
    return {"weights": numbers, "means": {str(c): listed(means[c]) for c in range(*FRESH)}}


def center_weights(utils):
    """Weights of three clients for ten classes: class 1 has one client, class 2 none."""
    clients, width = 3, 5
    centers = [[made(f"pilora.center.{c}.{k}", width).numpy() for k in range(clients)] for c in range(10)]
    means = [[made(f"pilora.mean.{c}.{k}", width).numpy() if c != 2 and (c != 1 or k == 0) else []
              for k in range(clients)] for c in range(10)]
    return [listed(weights) for weights in utils.compute_weight(centers, means)[:2]]


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("safetensors", "safetensors.torch", "torchvision", "torchvision.datasets",
                      "torchvision.transforms", "sklearn", "sklearn.metrics", "sklearn.metrics.pairwise", "scipy",
                      "scipy.spatial", "scipy.spatial.distance", "sampling", "iCIFAR100")
    sys.modules["scipy.spatial.distance"].cdist = lambda a, b, metric: torch.cdist(
        torch.from_numpy(numpy.array(a)), torch.from_numpy(numpy.array(b))).numpy()
    learners.open_checkout(checkout, COMMIT)
    sys.path.insert(0, os.path.join(os.path.abspath(checkout), "PILoRA-cifar"))
    import CPN
    import update
    import utils
    import VLT
    utils.np = numpy  # the sampling module of the checkout provides it
    torch.set_default_dtype(torch.float64)
    learners.write(os.path.join(into, "prompts", "pilora.json"), REPOSITORY, COMMIT, labels=LABELS,
                   center_rate=CENTER_RATE, low_rank_rate=LOW_RANK_RATE, passed=passed(net_of(VLT)),
                   loss=loss_of(CPN), learnt=learnt(update, net_of(VLT)), weights=center_weights(utils))


if __name__ == "__main__":
    main()
