#!/usr/bin/env python3
"""A step of DDE without LUCIR's other terms in JoyHuYY1412/DDE_CIL.

    python3 tools/research/export/official/dde_cil.py CHECKOUT [tests/golden]

The body of the net averages 16 x 16 pixels, so that features equal the input; its head is the checkout's
SplitCosineLinear. The script takes one step of SGD at a rate of 1, so the change of the head is the gradient. Needs
PyTorch and numpy. torch.clamp receives integers where the program passes booleans. LUCIR's ranking loss, whose weight
is 0, is omitted, because PyTorch 2 refuses its shapes.
"""
import os
import sys
import types

import torch

import learners
from learners import listed, made

REPOSITORY = "https://github.com/JoyHuYY1412/DDE_CIL"
COMMIT = "c1bb7f2794dadb02bf195318395d39b87cf50508"
OLD, NEW, FEATURES, NEIGHBOURS = 3, 2, 12, 3
LABELS = [0, 3, 4, 1, 3, 4, 2, 3, 4, 3]
MOMENTUM = 0.9


def images():
    """Rows whose features are made("dde.features", n, 12)."""
    means = made("dde.features", len(LABELS), FEATURES).float().reshape(-1, 3, 2, 2)
    return means.repeat_interleave(16, dim=2).repeat_interleave(16, dim=3)


class Net(torch.nn.Module):
    def __init__(self, head):
        super().__init__()
        self.pool, self.flat, self.fc = torch.nn.AvgPool2d(16), torch.nn.Flatten(), head

    def forward(self, rows, return_feat=False):
        features = self.flat(self.pool(rows))
        return (features, self.fc(features)) if return_feat else self.fc(features)


def main():
    checkout = sys.argv[1]
    into = sys.argv[2] if len(sys.argv) > 2 else os.path.join("tests", "golden")
    learners.stand_in("scipy", "scipy.spatial", "scipy.spatial.distance", "sklearn", "sklearn.metrics", "tensorboardX",
                      "utils_pytorch", "torchvision")
    learners.open_checkout(checkout, COMMIT)
    sys.path.insert(0, os.path.join(os.path.abspath(checkout), "cifar100-class-incremental"))
    import modified_linear
    from utils_incremental import incremental_train_and_eval_DCE_MR_LF_TDE as program

    clamp = torch.clamp
    torch.clamp = lambda x, **bounds: clamp(x.long() if x.dtype == torch.bool else x, **bounds)
    torch.nn.MarginRankingLoss = lambda margin: lambda right, others, order: torch.zeros(())
    net = Net(modified_linear.SplitCosineLinear(FEATURES, OLD, NEW))
    weights = made("dde.weight", OLD + NEW, FEATURES).float()
    with torch.no_grad():
        net.fc.fc1.weight.copy_(weights[:OLD])
        net.fc.fc2.weight.copy_(weights[OLD:])
        net.fc.sigma.fill_(2.0)
    before = torch.cat([net.fc.fc1.weight, net.fc.fc2.weight]).detach().clone()
    batches = [(images(), torch.tensor(LABELS))]
    schedule = types.SimpleNamespace(step=lambda: None, get_lr=lambda: [1.0])
    optimizer = torch.optim.SGD(net.fc.parameters(), lr=1.0)
    _, causal = program.incremental_train_and_eval_DCE_MR_LF_TDE(
        1, net, Net(modified_linear.CosineLinear(FEATURES, OLD)), optimizer, schedule, batches, batches, 1, 0, 0.0, 0.5,
        2, 0.0, len(LABELS), len(LABELS), top_k=NEIGHBOURS, device=torch.device("cpu"))
    after = torch.cat([net.fc.fc1.weight, net.fc.fc2.weight]).detach()
    learners.write(os.path.join(into, "dde", "official.json"), REPOSITORY, COMMIT, labels=LABELS, sigma=2.0,
                   neighbours=NEIGHBOURS, minus_gradient=listed(after - before),
                   minus_sigma_gradient=net.fc.sigma.item() - 2.0, causal_embed=listed(causal))


if __name__ == "__main__":
    main()
