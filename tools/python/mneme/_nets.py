"""mneme.net: a torch.nn.Module as a list of layers that mneme computes natively, weights included."""
import hashlib
import operator
import os
import warnings

import torch
import torch.fx

from mneme import _safetensors
from mneme._data import FOLDER, write_whole
from mneme._errors import MnemeWarning, ScenarioError
from mneme._tokens import Tracer, Untraceable, attention_of, embedding_of, is_own_attention, is_self_attention, is_token


def square(value, what):
    """The number of (n, n) or n."""
    sides = {value} if isinstance(value, int) else set(value)
    if len(sides) != 1 or not isinstance(next(iter(sides)), int):
        raise Untraceable(f"{what} = {value}; expected a square")
    return sides.pop()


def conv_text(conv):
    if conv.groups != 1 or square(conv.dilation, "dilation") != 1 or conv.padding_mode != "zeros":
        raise Untraceable(f"{conv}: expected groups = 1, dilation = 1 and a border of zeros")
    kernel, stride = square(conv.kernel_size, "kernel"), square(conv.stride, "stride")
    padding = conv.padding if not isinstance(conv.padding, str) else {"valid": 0, "same": kernel // 2}[conv.padding]
    text = f"conv {conv.out_channels} {kernel}x{kernel}"
    text += f" stride {stride}" if stride != 1 else ""
    text += f" pad {square(padding, 'padding')}" if square(padding, "padding") else ""
    return text + ("" if conv.bias is not None else " no-bias")


def pool_text(window, stride, padding, dilation=1, ceil_mode=False):
    if square(dilation, "dilation") != 1 or ceil_mode:
        raise Untraceable("a pooling layer with dilation or ceil_mode")
    window, padding = square(window, "window"), square(padding, "padding")
    stride = window if stride is None or stride == () else square(stride, "stride")
    return f"max-pool {window} stride {stride}" + (f" pad {padding}" if padding else "")


def norm_text(norm):
    if abs(norm.eps - 1e-5) > 1e-12 or not norm.affine:
        raise Untraceable(f"{norm}: expected eps = 1e-5 and affine = True")
    if isinstance(norm, torch.nn.GroupNorm):
        return f"group-norm {norm.num_groups}"
    if norm.momentum != 0.1 or not norm.track_running_stats:
        raise Untraceable(f"{norm}: expected momentum = 0.1 and running statistics")
    return "batch-norm"


def layer_norm_text(norm):
    if len(norm.normalized_shape) != 1 or not norm.elementwise_affine or norm.bias is None:
        raise Untraceable(f"{norm}: expected one axis, a weight and a bias")
    return f"layer-norm {norm.eps:g}"


def mean_text(pool):
    if pool.output_size not in (1, (1, 1)):
        raise Untraceable(f"{pool}: expected an output of 1 x 1")
    return "global-avg-pool"


def exact(text, **expected):
    """The text of a module whose settings have to be these."""
    def checked(module):
        for name, value in expected.items():
            if getattr(module, name) != value:
                raise Untraceable(f"{module}: expected {name} = {value}")
        return text
    return checked


MODULES = {
    torch.nn.Conv2d: conv_text, torch.nn.BatchNorm1d: norm_text, torch.nn.BatchNorm2d: norm_text,
    torch.nn.GroupNorm: norm_text, torch.nn.LayerNorm: layer_norm_text, torch.nn.AdaptiveAvgPool2d: mean_text,
    torch.nn.Linear: lambda m: f"linear {m.out_features}" + ("" if m.bias is not None else " no-bias"),
    torch.nn.MaxPool2d: lambda m: pool_text(m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode),
    torch.nn.ReLU: exact("relu"), torch.nn.Sigmoid: exact("sigmoid"), torch.nn.Tanh: exact("tanh"),
    torch.nn.SiLU: exact("silu"), torch.nn.GELU: exact("gelu", approximate="none"),
    torch.nn.LeakyReLU: lambda m: f"leaky-relu {m.negative_slope}",
    torch.nn.Dropout: lambda m: f"dropout {m.p}" if m.p else "", torch.nn.Identity: exact(""),
    torch.nn.Flatten: exact("flatten", start_dim=1, end_dim=-1),
}
FUNCTIONS = {torch.relu: "relu", torch.nn.functional.relu: "relu", torch.sigmoid: "sigmoid", torch.tanh: "tanh",
             torch.nn.functional.silu: "silu", torch.nn.functional.gelu: "gelu"}
METHODS = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}
ADDITIONS = {operator.add, operator.iadd, torch.add}


class Chain:
    """The layers of a traced net, from its input on."""

    def __init__(self, module):
        self.traced = torch.fx.GraphModule(module, Tracer().trace(module))
        self.modules = dict(module.named_modules())
        self.nodes = list(self.traced.graph.nodes)
        self.names = {}  # of parameters that mneme calls otherwise: {in the module: in mneme}
        self.sums = {}   # blocks by their nodes

    def texts(self):
        output = next(node for node in self.nodes if node.op == "output").args[0]
        inputs = [node for node in self.nodes if node.op == "placeholder"]
        if not isinstance(output, torch.fx.Node) or len(inputs) != 1:
            raise Untraceable("expected a net of one input and one output")
        return self.between(inputs[0], output)

    def between(self, first, last):
        """Texts of the layers behind `first` up to `last`."""
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
        """A residual block, and the node that both of its branches begin with; or what embeds patches."""
        if node not in self.sums:
            embedded = embedding_of(self.traced, node, self.modules)
            if embedded:
                text, names, start = embedded
                self.names.update(names)
            self.sums[node] = ([text], start) if embedded else self.block(node)
        return self.sums[node]

    def block(self, node):
        if len(node.args) != 2 or not all(isinstance(arg, torch.fx.Node) for arg in node.args) or node.kwargs:
            raise Untraceable("a sum of something else than two branches")
        left, right = node.args
        ancestors = self.chain_of(right)
        start = next((at for at in self.chain_of(left) if at in ancestors), None)
        if start is None:
            raise Untraceable("a sum of branches that do not begin together")
        body, shortcut = self.between(start, left), self.between(start, right)
        if not body:
            body, shortcut = shortcut, body
        return (["residual [", *body, *(["] shortcut [", *shortcut] if shortcut else []), "]"], start)

    def chain_of(self, node):
        """The node and all before it along first inputs; a sum is passed by the start of its branches."""
        nodes = [node]
        while node.op != "placeholder":
            node = self.added(node)[1] if self.is_sum(node) else self.single(node)[1]
            nodes.append(node)
        return nodes

    def single(self, node):
        """The text of a layer, in a list, and the node that it reads."""
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
        text = self.text_of(node)
        return ([text] if text else []), reads

    def is_attention(self, node):
        """True for a module of self-attention, or the first result of torch's."""
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
                raise Untraceable(f"'{node.target}' is a {type(module).__name__}, which is none of mneme's layers")
            text = MODULES[type(module)](module)
            named = any(True for _ in module.parameters())
            return f"{node.target}: {text}" if named else text
        token = is_token(node)
        if token in (0, -1):
            return "first-token" if token == 0 else "last-token"
        if node.op == "call_method" and node.target in METHODS:
            return METHODS[node.target]
        if node.op == "call_method" and node.target in ("flatten", "view", "reshape"):
            return self.flattened(node)
        if node.op == "call_function" and node.target in FUNCTIONS:
            return FUNCTIONS[node.target]
        if node.op == "call_function" and node.target is torch.flatten:
            return self.flattened(node)
        if node.op == "call_function" and node.target in (torch.nn.functional.max_pool2d, torch.max_pool2d):
            arguments = dict(zip(("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode"), node.args))
            arguments.update(node.kwargs)
            return pool_text(arguments["kernel_size"], arguments.get("stride"), arguments.get("padding", 0),
                             arguments.get("dilation", 1), arguments.get("ceil_mode", False))
        raise Untraceable(f"'{node.name}' calls {node.target}, which is none of mneme's layers")

    @staticmethod
    def flattened(node):
        start = node.args[1] if len(node.args) > 1 else node.kwargs.get("start_dim", 0)
        if node.target in ("view", "reshape"):
            if len(node.args) == 3 and node.args[2] == -1:
                return "flatten"
            raise Untraceable(f"'{node.name}' changes the shape; expected one row of numbers for each image")
        if start != 1:
            raise Untraceable(f"'{node.name}' flattens from axis {start}; expected 1")
        return "flatten"


class Net:
    """What [model] says for a net of torch. `layers` are its texts; None: it is a module file, which runs unfused."""

    def __init__(self, layers, tensors=None, module=b"", folder=FOLDER, names=None):
        self.layers, self.tensors, self.module, self.folder = layers, tensors, module, folder
        self.names = names or {}  # of parameters that mneme calls otherwise: {in the module: in mneme}

    def _file(self, content, ending):
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(os.path.abspath(self.folder), hashlib.sha256(content).hexdigest()[:32] + ending)
        if not os.path.exists(path):
            write_whole(path, content)
        return path

    def state_dict(self, run):
        """The final net of a Run under the module's own names: module.load_state_dict(net.state_dict(run),
        strict=False)."""
        theirs = {ours: name for name, ours in self.names.items()}
        return {theirs.get(name, name): tensor for name, tensor in run.model().items()}

    def model(self):
        """[model] of a scenario, as a dict: {"model": net.model(), ...}; writes the weights."""
        if self.layers is None:
            return {"module": self._file(self.module, ".pt"), "module_scores": True}
        keys = {"name": "layers", "layers": self.layers}
        if self.tensors:
            keys["seed_weights"] = self._file(_safetensors.as_bytes(self.tensors), ".safetensors")
        return keys


def net(module, *, weights=True, strict=False, folder=FOLDER):
    """A torch.nn.Module, traced by torch.fx, as a net of mneme: {"model": mneme.net(module).model()}.

    Its last layer has to be a Linear: the head, with a row for each class. `weights`: the run begins with the module's.
    What is no layer of mneme becomes a TorchScript file, which runs client by client: a warning says so, or, if
    `strict`, a ScenarioError does.
    """
    try:
        chain = Chain(module)
        texts = chain.texts()
        if not texts or ": linear " not in texts[-1]:
            raise Untraceable("the last layer is no Linear; expected the head, a row for each class")
    except (Untraceable, torch.fx.proxy.TraceError) as why:
        if strict:
            raise ScenarioError([("net", str(why))]) from None
        warnings.warn(f"{why}; the module runs as a TorchScript file, client by client and unfused: several times "
                      "slower for small nets", MnemeWarning, stacklevel=2)
        return Net(None, module=scripted(module), folder=folder)
    name = texts[-1].split(":")[0]
    texts[-1] = f"{name}: linear classes"
    tensors = {chain.names.get(key, key): value.detach().float().contiguous()
               for key, value in module.state_dict().items() if not key.endswith("num_batches_tracked")}
    return Net(texts, tensors if weights else None, folder=folder, names=chain.names)


def scripted(module):
    """The module as the content of a TorchScript file."""
    import io
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(module.eval()), buffer)
    return buffer.getvalue()
