"""Small nets, and rows computed from names, that several adapters use. The C++ tests compute the same ones."""
import torch
from torch import nn

from shim import made_values, summary, values_of
from torchvision_reference import CifarResNet

SIDE = 16


class Answering(nn.Module):
    """Residual net for CIFAR that returns a dictionary, as in PyCIL and programs based on it."""

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
    """Images [rows, 3, SIDE, SIDE] of bytes v as 2 v / 255 - 1, rounded to float32."""
    whole = ((values_of(name, (rows, 3, SIDE, SIDE)) + 1) * 127.5).byte()
    return (whole.float() * torch.tensor(2 / 255, dtype=torch.float32) - 1).double()


def moved(net):
    """Summaries of all tensors of a net."""
    return {name: summary(name, value) for name, value in net.state_dict().items()
            if not name.endswith("num_batches_tracked")}
