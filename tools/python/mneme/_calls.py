"""Layer texts of the functions and methods that a traced net calls."""
import torch
import torch.fx
from torch.nn import functional

from mneme._tokens import Untraceable, is_token


def square(value, what):
    """Returns n for (n, n) or n."""
    sides = {value} if isinstance(value, int) else set(value)
    if len(sides) != 1 or not isinstance(next(iter(sides)), int):
        raise Untraceable(f"{what} = {value}; expected a square")
    return sides.pop()


def pool_text(kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    if square(dilation, "dilation") != 1 or ceil_mode or return_indices:
        raise Untraceable("a pooling layer with dilation, ceil_mode or return_indices")
    window, padding = square(kernel_size, "window"), square(padding, "padding")
    stride = window if stride is None or stride == () else square(stride, "stride")
    return f"max-pool {window} stride {stride}" + (f" pad {padding}" if padding else "")


def mean_pool_text(output_size):
    if output_size not in (1, (1, 1), [1, 1]):
        raise Untraceable(f"an average pool of {output_size}; expected an output of 1 x 1")
    return "global-avg-pool"


def gelu_text(approximate="none"):
    if approximate != "none":
        raise Untraceable(f"gelu with approximate = '{approximate}'; expected 'none'")
    return "gelu"


def dropout_text(p=0.5, training=True):
    return f"dropout {p}" if p else ""  # evaluation mode has no dropout, even if the net was traced in training mode


def flatten_text(start_dim=0, end_dim=-1):
    if start_dim != 1 or end_dim not in (-1, 3):
        raise Untraceable(f"axes {start_dim} to {end_dim} are flattened; expected 1 to -1")
    return "flatten"


def view_text(*sizes):
    """Text of view(rows, -1) and view(-1, numbers), which flatten images."""
    sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    is_flat = len(sizes) == 2 and (sizes[1] == -1 or isinstance(sizes[1], int) and (
        sizes[0] == -1 or isinstance(sizes[0], torch.fx.Node)))
    if not is_flat:
        raise Untraceable(f"a change of shape to {tuple(map(str, sizes))}; expected one row of numbers for each image")
    return "flatten"


def mean_text(dim=None, keepdim=False):
    axes = {axis % 4 for axis in dim} if isinstance(dim, (tuple, list)) else set()
    if axes != {2, 3}:
        raise Untraceable(f"a mean over {dim}; expected the height and width of images, (2, 3)")
    return "global-avg-pool"


def plain(text):
    """Makes a converter that returns `text` for a function of one tensor, which may be in-place."""
    return (), lambda: text


# {function or name of a method: (names of its arguments after the tensor, its text)}
TEXTS = {
    torch.relu: plain("relu"), functional.relu: plain("relu"), "relu": plain("relu"), "relu_": plain("relu"),
    torch.sigmoid: plain("sigmoid"), functional.sigmoid: plain("sigmoid"), "sigmoid": plain("sigmoid"),
    torch.tanh: plain("tanh"), functional.tanh: plain("tanh"), "tanh": plain("tanh"),
    functional.silu: plain("silu"), "contiguous": plain(""),
    functional.leaky_relu: (("negative_slope",), lambda negative_slope=0.01: f"leaky-relu {negative_slope}"),
    functional.gelu: (("approximate",), gelu_text),
    functional.dropout: (("p", "training"), dropout_text),
    functional.adaptive_avg_pool2d: (("output_size",), mean_pool_text),
    torch.flatten: (("start_dim", "end_dim"), flatten_text), "flatten": (("start_dim", "end_dim"), flatten_text),
    torch.mean: (("dim", "keepdim"), mean_text), "mean": (("dim", "keepdim"), mean_text),
}
POOLS = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
TEXTS.update({pool: (POOLS, pool_text) for pool in (functional.max_pool2d, torch.max_pool2d)})
IN_PLACE = "inplace"


def call_text(node):
    """Text of a function or method call; "" for the identity."""
    token = is_token(node)
    if token in (0, -1):
        return "first-token" if token == 0 else "last-token"
    if node.op == "call_method" and node.target in ("view", "reshape"):
        return view_text(*node.args[1:])
    if node.target not in TEXTS:
        name = getattr(node.target, "__name__", node.target)
        raise Untraceable(f"'{node.name}' calls {name}, which has no counterpart among mneme's layers")
    names, text = TEXTS[node.target]
    given = {**dict(zip((*names, IN_PLACE), node.args[1:])),
             **{name: value for name, value in node.kwargs.items() if name != IN_PLACE}}
    given.pop(IN_PLACE, None)
    if not set(given) <= set(names) or any(isinstance(value, torch.fx.Node) for value in given.values()):
        raise Untraceable(f"'{node.name}' has arguments that none of mneme's layers has: {given}")
    return text(**given)
