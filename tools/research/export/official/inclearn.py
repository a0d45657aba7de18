#!/usr/bin/env python3
"""iCaRL's loss, herding and means, and PODNet's terms, in arthurdouillard/incremental_learning.pytorch.

    python3 tools/research/export/official/inclearn.py CHECKOUT [tests/golden]

Needs PyTorch and numpy. Other imports of the checkout are replaced by stubs, and scipy's cdist of squared distances by
PyTorch's.
"""
import os
import sys
import types

import numpy
import torch

import learners
from learners import leaf, listed, made

REPOSITORY = "https://github.com/arthurdouillard/incremental_learning.pytorch"
COMMIT = "c09fc54dc4e9b03f5ea209397bd7ac09d6f27eb1"
ROWS, CLASSES, NEW, FEATURES, PROXIES = 6, 5, 2, 8, 10
LABELS = [0, 4, 2, 3, 1, 3]
MAPS = ((2, 5, 4), (3, 4, 4), (4, 2, 2))  # channels, height, width


def icarl():
    import inclearn.models.icarl  # noqa: F401
    from inclearn.lib import herding
    from inclearn.models import ICarl

    targets = torch.tensor(LABELS)
    onehot = torch.nn.functional.one_hot(targets, CLASSES).double()
    teacher = made("icarl.teacher", ROWS, CLASSES - NEW, scale=2.0)
    losses = {}
    for name, old_model in (("first_task", None), ("later_task", lambda inputs: {"logits": teacher})):
        z = leaf("icarl.logits", ROWS, CLASSES, scale=3.0)
        learner = types.SimpleNamespace(_old_model=old_model, _task_size=NEW, _rotations_config={})
        loss = ICarl._compute_loss(learner, None, {"logits": z}, targets, onehot, None)
        loss.backward()
        losses[name] = {"value": loss.item(), "d_logits": listed(z.grad)}
    features = made("icarl.features", 30, FEATURES).numpy()
    flipped = made("icarl.flipped", 30, FEATURES).numpy()
    chosen = herding.icarl_selection(features, 12).tolist()
    means = numpy.stack([ICarl.compute_examplar_mean(features[c::3], flipped[c::3], [0, 2, 5], 3) for c in range(3)])
    queries = made("icarl.queries", 20, FEATURES).numpy()
    sys.modules["inclearn.models.icarl"].cdist = lambda a, b, _: torch.cdist(
        torch.tensor(a), torch.tensor(b)).square().numpy()
    sys.modules["inclearn.models.icarl"].utils = types.SimpleNamespace(
        extract_features=lambda model, loader: (queries, None))
    scores, _ = ICarl.compute_accuracy(None, None, means)
    return {"labels": LABELS, "losses": losses, "herding": chosen, "means": listed(means),
            "answers": scores.argmax(1).tolist()}


def podnet_terms():
    from inclearn.lib import losses
    from inclearn.lib.network.classifiers import CosineClassifier

    targets = torch.tensor(LABELS)
    terms = {}
    similarities = leaf("podnet.similarities", ROWS, CLASSES)
    loss = losses.nca(similarities, targets, scale=1.5, margin=0.6, exclude_pos_denominator=True)
    loss.backward()
    terms["nca"] = {"value": loss.item(), "gradient": listed(similarities.grad)}

    features, before = leaf("podnet.features", ROWS, FEATURES), made("podnet.old_features", ROWS, FEATURES)
    loss = losses.embeddings_similarity(before, features)
    loss.backward()
    terms["flat"] = {"value": loss.item(), "gradient": listed(features.grad)}

    maps = [leaf(f"podnet.map{i}", ROWS, *shape) for i, shape in enumerate(MAPS)]
    old_maps = [made(f"podnet.old_map{i}", ROWS, *shape) for i, shape in enumerate(MAPS)]
    loss = losses.pod(old_maps, maps, collapse_channels="spatial")
    loss.backward()
    terms["spatial"] = {"value": loss.item(), "gradients": [listed(map.grad) for map in maps]}

    head = CosineClassifier(FEATURES, torch.device("cpu"), proxy_per_class=PROXIES,
                            distance="neg_stable_cosine_distance")
    weights = leaf("podnet.proxies", CLASSES * PROXIES, FEATURES)
    head._weights = torch.nn.ParameterList([torch.nn.Parameter(weights.detach())])
    features = leaf("podnet.features", ROWS, FEATURES)
    logits = head(features)["logits"]
    (logits * made("podnet.d_logits", ROWS, CLASSES)).sum().backward()
    terms["head"] = {"logits": listed(logits), "d_features": listed(features.grad),
                     "d_proxies": listed(head._weights[0].grad)}
    return terms


def podnet_loss():
    from inclearn.models import PODNet

    targets = torch.tensor(LABELS)
    logits = leaf("podnet.similarities", ROWS, CLASSES)
    features = leaf("podnet.features", ROWS, FEATURES)
    maps = [leaf(f"podnet.map{i}", ROWS, *shape) for i, shape in enumerate(MAPS)]
    before = {"raw_features": made("podnet.old_features", ROWS, FEATURES),
              "attention": [made(f"podnet.old_map{i}", ROWS, *shape) for i, shape in enumerate(MAPS)]}
    factor = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    network = types.SimpleNamespace(post_process=lambda x: x * factor,
                                    post_processor=types.SimpleNamespace(factor=factor))
    learner = types.SimpleNamespace(
        _post_processing_type=None, _network=network, _old_model=lambda inputs: before,
        _nca_config={"margin": 0.6, "scale": 1.0, "exclude_pos_denominator": True},
        _pod_flat_config={"scheduled_factor": 1.0},
        _pod_spatial_config={"scheduled_factor": 3.0, "collapse_channels": "spatial"},
        _n_classes=CLASSES, _task_size=NEW, _task=1, _n_tasks=3, _class_weights=None,
        _metrics={"nca": 0.0, "flat": 0.0, "pod": 0.0}, _softmax_ce=False, _perceptual_features=None,
        _perceptual_style=None, _gradcam_distil=None)
    outputs = {"raw_features": features, "logits": logits, "attention": maps}
    loss = PODNet._compute_loss(learner, None, outputs, targets, None, torch.zeros(ROWS))
    loss.backward()
    return {"value": loss.item(), "d_logits": listed(logits.grad / factor.detach()), "d_sigma": factor.grad.item(),
            "d_features": listed(features.grad), "d_maps": [listed(map.grad) for map in maps]}


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("gensim", "gensim.models", "matplotlib", "matplotlib.pyplot", "sklearn", "sklearn.cluster",
                      "sklearn.manifold", "sklearn.metrics", "sklearn.metrics.pairwise", "sklearn.decomposition",
                      "sklearn.linear_model", "sklearn.model_selection", "sklearn.neighbors",
                      "sklearn.preprocessing", "sklearn.svm", "sklearn.utils", "sklearn.utils.class_weight", "scipy",
                      "scipy.io", "scipy.spatial", "scipy.spatial.distance", "scipy.special", "tqdm", "yaml")
    learners.open_checkout(checkout, COMMIT)
    if not hasattr(torch, "frobenius_norm"):
        torch.frobenius_norm = lambda x, dim: torch.linalg.vector_norm(x, dim=dim)
    learners.write(os.path.join(into, "icarl", "inclearn.json"), REPOSITORY, COMMIT, **icarl())
    learners.write(os.path.join(into, "podnet", "inclearn.json"), REPOSITORY, COMMIT, labels=LABELS,
                   terms=podnet_terms(), loss=podnet_loss())


if __name__ == "__main__":
    main()
