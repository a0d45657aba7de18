"""Small nets and rows by name that several adapters show official code: tests in C++ make the same."""
import torch
from torch import nn

from shim import made_values, summary, values_of
from torchvision_reference import CifarResNet

SIDE = 16


class Answering(nn.Module):
    """A residual net for CIFAR whose answer is a dictionary, as in PyCIL and what derives from it."""

    def __init__(self, prefix, classes):
        super().__init__()
        self.net = named(CifarResNet(1, classes), prefix + "net.")

    def forward(self, x):
        return {"logits": self.net(x)}


def named(net, prefix):
    """Parameters and running statistics by name."""
    with torch.no_grad():
        for name, value in [*net.named_parameters(), *net.named_buffers()]:
            if not name.endswith("num_batches_tracked"):
                value.copy_(made_values(prefix + name, tuple(value.shape)))
    return net


def pixels(name, rows):
    """[rows, 3, SIDE, SIDE] bytes v as 2 v / 255 - 1, rounded as a float32 is."""
    whole = ((values_of(name, (rows, 3, SIDE, SIDE)) + 1) * 127.5).byte()
    return (whole.float() * torch.tensor(2 / 255, dtype=torch.float32) - 1).double()


def moved(net):
    """Summaries of all that a net holds."""
    return {name: summary(name, value) for name, value in net.state_dict().items()
            if not name.endswith("num_batches_tracked")}
