"""mneme.net: converts a torch.nn.Module to layers that mneme computes natively, with its weights."""
import hashlib
import operator
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
import torch.fx

from mneme import _safetensors
from mneme._calls import call_text, flatten_text, gelu_text, mean_pool_text, pool_text, square
from mneme._data import FOLDER, write_whole
from mneme._encoders import encoder_of, first_token_alone, layer_norm_text
from mneme._errors import MnemeWarning, ScenarioError
from mneme._exported import exported, first_line
from mneme._tokens import Tracer, Untraceable, attention_of, embedding_of, is_own_attention, is_self_attention
from mneme._types import Path


def conv_text(conv):
    if conv.groups != 1 or square(conv.dilation, "dilation") != 1 or conv.padding_mode != "zeros":
        raise Untraceable(f"{conv}: expected groups = 1, dilation = 1 and a border of zeros")
    kernel, stride = square(conv.kernel_size, "kernel"), square(conv.stride, "stride")
    if conv.padding == "same" and kernel % 2 == 0:
        raise Untraceable(f"{conv}: expected an odd kernel, or a border that is equal on all sides")
    padding = conv.padding if not isinstance(conv.padding, str) else {"valid": 0, "same": kernel // 2}[conv.padding]
    text = f"conv {conv.out_channels} {kernel}x{kernel}"
    text += f" stride {stride}" if stride != 1 else ""
    text += f" pad {square(padding, 'padding')}" if square(padding, "padding") else ""
    return text + ("" if conv.bias is not None else " no-bias")


def norm_text(norm):
    if abs(norm.eps - 1e-5) > 1e-12 or not norm.affine:
        raise Untraceable(f"{norm}: expected eps = 1e-5 and affine = True")
    if isinstance(norm, torch.nn.GroupNorm):
        return f"group-norm {norm.num_groups}"
    if norm.momentum != 0.1 or not norm.track_running_stats:
        raise Untraceable(f"{norm}: expected momentum = 0.1 and running statistics")
    return "batch-norm"


def exact(text, **expected):
    """Makes a converter for a module that requires these values of its settings."""
    def checked(module):
        for name, value in expected.items():
            if getattr(module, name) != value:
                raise Untraceable(f"{module}: expected {name} = {value}")
        return text
    return checked


MODULES = {
    torch.nn.Conv2d: conv_text, torch.nn.BatchNorm1d: norm_text, torch.nn.BatchNorm2d: norm_text,
    torch.nn.GroupNorm: norm_text, torch.nn.LayerNorm: layer_norm_text,
    torch.nn.AdaptiveAvgPool2d: lambda m: mean_pool_text(m.output_size),
    torch.nn.Linear: lambda m: f"linear {m.out_features}" + ("" if m.bias is not None else " no-bias"),
    torch.nn.MaxPool2d: lambda m: pool_text(m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode,
                                           m.return_indices),
    torch.nn.ReLU: exact("relu"), torch.nn.Sigmoid: exact("sigmoid"), torch.nn.Tanh: exact("tanh"),
    torch.nn.SiLU: exact("silu"), torch.nn.GELU: lambda m: gelu_text(m.approximate),
    torch.nn.LeakyReLU: lambda m: f"leaky-relu {m.negative_slope}",
    torch.nn.Dropout: lambda m: f"dropout {m.p}" if m.p else "", torch.nn.Identity: exact(""),
    torch.nn.Flatten: lambda m: flatten_text(m.start_dim, m.end_dim),
}
ADDITIONS = {operator.add, operator.iadd, torch.add}


class Chain:
    """The layers of a traced net, starting at its input."""

    def __init__(self, module):
        try:
            self.traced = torch.fx.GraphModule(module, Tracer().trace(module))
        except Exception as error:  # noqa: BLE001  whatever the module's own code makes of proxies
            raise Untraceable(f"torch.fx cannot trace it: {first_line(error)}") from error
        self.module, self.modules = module, dict(module.named_modules())
        self.nodes = list(self.traced.graph.nodes)
        self.names = {}  # renamed parameters: {name in the module: name in mneme}
        self.sums = {}   # residual blocks by node

    def texts(self):
        output = next(node for node in self.nodes if node.op == "output").args[0]
        inputs = [node for node in self.nodes if node.op == "placeholder"]
        if not isinstance(output, torch.fx.Node) or len(inputs) != 1:
            raise Untraceable("expected a net of one input and one output")
        return first_token_alone(self.between(inputs[0], output))

    def between(self, first, last):
        """Texts of the layers after `first` up to and including `last`."""
        texts = []
        while last is not first:
            fresh, last = self.added(last) if self.is_sum(last) else self.single(last)
            texts = fresh + texts
        return texts

    @staticmethod
    def is_sum(node):
        return node.op == "call_function" and node.target in ADDITIONS or node.op == "call_method" and node.target in (
            "add", "add_")

    def added(self, node):
        """Texts of a residual block or a patch embedding, and its input node."""
        if node not in self.sums:
            embedded = embedding_of(self.traced, node, self.modules)
            if embedded:
                text, names, start = embedded
                self.names.update(names)
            self.sums[node] = ([text], start) if embedded else self.block(node)
        return self.sums[node]

    def block(self, node):
        if len(node.args) != 2 or not all(isinstance(arg, torch.fx.Node) for arg in node.args) or node.kwargs:
            raise Untraceable("a sum of other operands than two branches")
        left, right = node.args
        ancestors = self.chain_of(right)
        start = next((at for at in self.chain_of(left) if at in ancestors), None)
        if start is None:
            raise Untraceable("a sum of branches that do not start at the same layer")
        body, shortcut = self.between(start, left), self.between(start, right)
        if not body:
            body, shortcut = shortcut, body
        return (["residual [", *body, *(["] shortcut [", *shortcut] if shortcut else []), "]"], start)

    def chain_of(self, node):
        """The node and its predecessors along first inputs. A sum is replaced by the node at which its branches
        begin."""
        nodes = [node]
        while node.op != "placeholder":
            node = self.added(node)[1] if self.is_sum(node) else self.single(node)[1]
            nodes.append(node)
        return nodes

    def single(self, node):
        """Texts of a layer or an encoder, and its input node; no text for a layer that computes nothing."""
        reads = node.args[0] if node.args else None
        if node.op == "call_module" and isinstance(self.modules[node.target], torch.nn.MultiheadAttention):
            raise Untraceable(f"the weights of '{node.target}' are used, not its output alone")
        if not isinstance(reads, torch.fx.Node):
            raise Untraceable(f"'{node.name}' reads no other layer")
        if self.is_attention(node):
            inner = reads if node.op == "call_function" else node
            text, names = attention_of(self.modules[inner.target], inner.target)
            self.names.update(names)
            return [text], inner.args[0]
        encoder = encoder_of(self.modules[node.target], node.target) if node.op == "call_module" else None
        if encoder:
            texts, names = encoder
            if len(node.args) > 1 or any(value is not None for value in node.kwargs.values()):
                raise Untraceable(f"'{node.target}' reads a mask; expected tokens alone")
            self.names.update(names)
            return texts, reads
        text = self.text_of(node)
        return ([text] if text else []), reads

    def is_attention(self, node):
        """True for a self-attention module, or the first result of torch's."""
        if node.op == "call_module":
            return is_own_attention(self.modules[node.target])
        inner = node.args[0]
        return (node.target is operator.getitem and node.args[1] == 0 and inner.op == "call_module"
                and isinstance(self.modules[inner.target], torch.nn.MultiheadAttention)
                and is_self_attention(inner, self.modules[inner.target]))

    def text_of(self, node):
        if node.op == "call_module":
            module = self.modules[node.target]
            if type(module) not in MODULES:
                raise Untraceable(f"'{node.target}' is a {type(module).__name__}, which has no counterpart among "
                                  "mneme's layers")
            text = "" if self.drops_nothing(module) else MODULES[type(module)](module)
            named = any(True for _ in module.parameters())
            return f"{node.target}: {text}" if named else text
        return call_text(node)


    def drops_nothing(self, part):
        """True for a Dropout in evaluation mode in a net in training mode."""
        return isinstance(part, torch.nn.Dropout) and self.module.training and not part.training


class HasModel(Protocol):
    """Object with model() as of a Run."""

    def model(self) -> dict[str, torch.Tensor]: ...


class Net:
    """Keys of [model] for a net of torch. `layers` are its texts; None: it is a module in a file, which runs
    unfused."""

    def __init__(self, layers: Sequence[str] | None, tensors: Mapping[str, torch.Tensor] | None = None,
                 module: bytes = b"", folder: Path = FOLDER, names: Mapping[str, str] | None = None,
                 frozen: Sequence[str] = ()) -> None:
        self.layers, self.tensors, self.module, self.folder = layers, tensors, module, folder
        self.names = names or {}  # renamed parameters: {name in the module: name in mneme}
        self.frozen = list(frozen)  # model.frozen; the file of a module contains requires_grad itself

    def _file(self, content, ending):
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(os.path.abspath(self.folder), hashlib.sha256(content).hexdigest()[:32] + ending)
        if not os.path.exists(path):
            write_whole(path, content)
        return path

    def state_dict(self, run: HasModel) -> dict[str, torch.Tensor]:
        """Returns the final net of a Run with the module's names: module.load_state_dict(net.state_dict(run),
        strict=False)."""
        theirs = {ours: name for name, ours in self.names.items()}
        return {theirs.get(name, name): tensor for name, tensor in run.model().items()}

    def model(self) -> dict[str, Any]:
        """Returns the keys of [model] as a dict: {"model": net.model(), ...}. Writes the weights file."""
        if self.layers is None:
            return {"module": self._file(self.module, ".pt2"), "module_output": "scores"}
        keys = {"name": "layers", "layers": self.layers}
        if self.frozen:
            keys["frozen"] = self.frozen
        if self.tensors:
            keys["seed_weights"] = self._file(_safetensors.as_bytes(self.tensors), ".safetensors")
        return keys


def net(module: torch.nn.Module, *, weights: bool = True, strict: bool = False, example: Any = None,
        folder: Path = FOLDER) -> Net:
    """Converts a torch.nn.Module, traced by torch.fx, to a net of mneme: {"model": mneme.net(module).model()}.

    The last layer must be a Linear, the head, with a row per class. `weights`: the run starts with the module's
    weights.

    A module that is no chain of mneme's layers is written to a file and runs client by client; it must return a score
    per class. A warning reports this, or a ScenarioError if `strict` is set. `example`: a batch of rows as forward()
    takes them, which torch.export needs to write the file (.pt2); batch norms and dropout train as in PyTorch.
    Parameters with requires_grad = False keep their values. A normalization in evaluation mode within a net in training
    mode keeps its running statistics.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"mneme.net({type(module).__name__}): expected a torch.nn.Module")
    try:
        chain = Chain(module)
        texts = chain.texts()
        expect_head(texts)
        expect_own_parameters(module, texts)
    except Untraceable as why:
        if strict:
            raise ScenarioError([("net", str(why))]) from None
        if not weights:
            text = ("weights = False: the module becomes a file with its current weights; expected "
                    "weights = True, or new values in the module")
            raise ScenarioError([("net", text)]) from None
        if example is None:
            text = (f"{why}; the module becomes an exported program, for which torch.export needs a batch of rows: "
                    "mneme.net(module, example=rows)")
            raise ScenarioError([("net", text)]) from None
        content = exported(module, example)
        warnings.warn(f"{why}; the module runs as an exported program, client by client and unfused: several times "
                      "slower for small nets", MnemeWarning, stacklevel=2)
        return Net(None, module=content, folder=folder)
    texts[-1] = f"{named_layer(texts[-1])}: linear classes"
    tensors = {chain.names.get(key, key): value.detach().float().contiguous()
               for key, value in module.state_dict().items() if is_read(chain.names.get(key, key), texts)}
    frozen = [name for name in (chain.names.get(key, key) for key in kept(module)) if is_read(name, texts)]
    return Net(texts, tensors if weights else None, folder=folder, names=chain.names, frozen=frozen)


def kept(module):
    """Names of parameters and running statistics that training must not change."""
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            yield name
    for name, part in module.named_modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and module.training and not part.training:
            yield from (f"{name}.running_mean", f"{name}.running_var")


def named_layer(text):
    """Name in a layer's text, which prefixes its parameters; "" if it has none."""
    return text.split(": ")[0] if ": " in text else ""


EMBEDDED = ("cls_token", "pos_embed", "patch_embed.proj")


def is_read(key, texts):
    """True for a tensor of one of these layers; the module's forward() uses no others."""
    names = {named_layer(text) for text in texts}.union(EMBEDDED if texts[0].startswith("patch-embedding") else ())
    return not key.endswith("num_batches_tracked") and any(name and f"{key}.".startswith(f"{name}.") for name in names)


def expect_head(texts):
    if not texts or ": linear " not in texts[-1] or texts[-1].endswith("no-bias"):
        raise Untraceable("the last layer is no Linear with a bias; expected the head, a row for each class")


def expect_own_parameters(module, texts):
    """Raises unless every layer has its own parameters: mneme does not support shared layers."""
    names = [name for name in map(named_layer, texts) if name]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise Untraceable(f"'{twice[0]}' is called twice; expected layers with separate weights")
    owners = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        other = owners.setdefault(id(parameter), name)
        if other != name:
            raise Untraceable(f"'{other}' and '{name}' are one parameter; expected layers with separate weights")
