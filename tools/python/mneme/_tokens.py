"""Parts of vision transformers in a traced net: patch embedding and self-attention."""
import math
import operator

import torch
import torch.fx


class Untraceable(ValueError):
    """Error of a part of a module without an equivalent layer in mneme."""


TOLERANCE = 1e-4  # largest difference between a part and the formula of its layer


def is_own_attention(module):
    """True for self-attention with Linear `qkv` and `proj` and a number of heads, as in timm and elsewhere."""
    parts = [getattr(module, name, None) for name in ("qkv", "proj")]
    return all(isinstance(part, torch.nn.Linear) for part in parts) and own_heads(module) > 0


def own_heads(module):
    heads = getattr(module, "num_heads", getattr(module, "heads", 0))
    return heads if isinstance(heads, int) else 0


class Tracer(torch.fx.Tracer):
    """Tracer that does not trace into torch's modules and self-attention."""

    def is_leaf_module(self, m, module_qualified_name):
        return super().is_leaf_module(m, module_qualified_name) or is_own_attention(m)


def attention_formula(x, heads, qkv, proj):
    """Computes self-attention as the layer `attention` does. x: [N, T, W]; qkv, proj: (weight, bias)."""
    rows, tokens, width = x.shape
    q, k, v = torch.nn.functional.linear(x, *qkv).view(rows, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    shares = (q @ k.transpose(-2, -1) / math.sqrt(width // heads)).softmax(-1)
    return torch.nn.functional.linear((shares @ v).transpose(1, 2).reshape(x.shape), *proj)


def example(*sizes):
    """Random inputs to compare a part with its layer; does not change the caller's generator."""
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(0))


def expect_equal(module_output, formula_output, name):
    if module_output.shape != formula_output.shape or not torch.allclose(module_output, formula_output, rtol=TOLERANCE,
                                                                         atol=TOLERANCE):
        raise Untraceable(f"'{name}' computes something other than the layer that its structure suggests")


def attention_of(module, name):
    """(text, {parameter name in the module: name in mneme}) of a self-attention module."""
    if is_own_attention(module):
        with torch.no_grad():
            x = example(2, 5, module.qkv.in_features)
            state = module.training
            parts = [(part.weight, part.bias) for part in (module.qkv, module.proj)]
            expect_equal(module.eval()(x), attention_formula(x, own_heads(module), *parts), name)
            module.train(state)
        if module.qkv.bias is None or module.proj.bias is None:
            raise Untraceable(f"'{name}' has projections without a bias")
        return f"{name}: attention {own_heads(module)}", {}
    plain = (module.batch_first and module.dropout == 0.0 and module.in_proj_bias is not None
             and module.bias_k is None and not module.add_zero_attn and module.in_proj_weight is not None)
    if not plain:
        raise Untraceable(f"'{name}': expected MultiheadAttention with batch_first, a bias and no dropout")
    names = {"in_proj_weight": "qkv.weight", "in_proj_bias": "qkv.bias", "out_proj.weight": "proj.weight",
             "out_proj.bias": "proj.bias"}
    return (f"{name}: attention {module.num_heads}",
            {f"{name}.{theirs}": f"{name}.{ours}" for theirs, ours in names.items()})


def is_self_attention(node, module):
    """True if query, key and value are the same and there is no mask."""
    given = {**dict(zip(("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask"), node.args)),
             **node.kwargs}
    return (given.get("query") is given.get("key") is given.get("value") and not given.get("is_causal")
            and given.get("attn_mask") is None and given.get("key_padding_mask") is None)


def is_token(node):
    """Returns n for x[:, n], or None."""
    if node.op != "call_function" or node.target is not operator.getitem or not isinstance(node.args[1], tuple):
        return None
    rows, *which = node.args[1]
    is_all = rows == slice(None) and which and isinstance(which[0], int) and all(w == slice(None) for w in which[1:])
    return which[0] if is_all else None


class Reached(Exception):
    """Ends an interpretation and carries the value of a node."""

    def __init__(self, value):
        super().__init__()
        self.value = value


class UpTo(torch.fx.Interpreter):
    def __init__(self, traced, last):
        super().__init__(traced)
        self.last = last

    def run_node(self, n):
        value = super().run_node(n)
        if n is self.last:
            raise Reached(value)
        return value


def value_at(traced, node, x):
    try:
        with torch.no_grad():
            UpTo(traced, node).run(x)
    except Reached as reached:
        return reached.value
    except Exception as error:  # of the module's code
        raise Untraceable(f"'{node.name}' cannot be computed separately: {error}") from error
    raise Untraceable(f"'{node.name}' is never computed")


MOVES = ("flatten", "reshape", "view", "permute", "transpose", "contiguous")


def conv_before(node, modules):
    """The convolution before images are flattened to tokens, or None."""
    while isinstance(node, torch.fx.Node):
        if node.op == "call_module" and isinstance(modules[node.target], torch.nn.Conv2d):
            return node
        moves = node.op == "call_method" and node.target in MOVES or node.op == "call_function" and node.target in (
            torch.flatten, torch.permute, torch.transpose, torch.reshape)
        moves = moves or node.op == "call_module" and isinstance(modules[node.target], (torch.nn.Identity,
                                                                                        torch.nn.Flatten))
        node = node.args[0] if moves else None
    return None


def class_token_of(node):
    """Name of the parameter that is expanded for every image, or ""."""
    while isinstance(node, torch.fx.Node) and node.op == "call_method" and node.target in ("expand", "repeat"):
        node = node.args[0]
    return node.target if isinstance(node, torch.fx.Node) and node.op == "get_attr" else ""


def embedding_of(traced, node, modules):
    """(text, names as in attention_of(), node of the images) of `cat([class token, patches]) + positions`; None for
    other sums."""
    sides = [arg for arg in node.args if isinstance(arg, torch.fx.Node)]
    positions = [arg for arg in sides if arg.op == "get_attr"]
    joined = [arg for arg in sides if arg.op == "call_function" and arg.target in (torch.cat, torch.concat)]
    if len(positions) != 1 or len(joined) != 1:
        return None
    parts = joined[0].args[0]
    conv = conv_before(parts[-1], modules) if len(parts) == 2 else None
    token = class_token_of(parts[0])
    if conv is None or not token:
        return None
    module, place = modules[conv.target], positions[0].target
    for name in (token, place):
        if not isinstance(operator.attrgetter(name)(traced), torch.nn.Parameter):
            raise Untraceable(f"'{name}' is not a parameter; expected a class token and positions that are trained")
    patch = module.kernel_size[0]
    pos = operator.attrgetter(place)(traced)
    side = math.isqrt(pos.shape[1] - 1)
    if (module.kernel_size != (patch, patch) or module.stride != (patch, patch) or module.padding not in (0, (0, 0))
            or module.groups != 1 or module.bias is None or side * side != pos.shape[1] - 1):
        raise Untraceable(f"'{conv.target}': expected square patches of square images, without a border")
    x = example(2, module.in_channels, side * patch, side * patch)
    with torch.no_grad():
        patches = module(x).flatten(2).transpose(1, 2)
        first = operator.attrgetter(token)(traced).expand(len(x), -1, -1)
        expect_equal(value_at(traced, node, x), torch.cat([first, patches], 1) + pos, node.name)
    names = {token: "cls_token", place: "pos_embed", conv.target + ".weight": "patch_embed.proj.weight",
             conv.target + ".bias": "patch_embed.proj.bias"}
    return f"patch-embedding {patch} {module.out_channels}", names, conv.args[0]
