"""Encoders of transformers in a traced net: converts torch's encoders to layers, and restricts the last block to the
first token."""
import torch

from mneme._tokens import Untraceable, attention_of

ACTIVATIONS = {torch.nn.functional.relu: "relu", torch.nn.functional.gelu: "gelu", torch.relu: "relu"}


def layer_norm_text(norm):
    if len(norm.normalized_shape) != 1 or not norm.elementwise_affine or norm.bias is None:
        raise Untraceable(f"{norm}: expected one axis, a weight and a bias")
    return f"layer-norm {norm.eps:g}"


def activation_of(layer, name):
    if isinstance(layer.activation, torch.nn.ReLU):
        return "relu"
    if isinstance(layer.activation, torch.nn.GELU) and layer.activation.approximate == "none":
        return "gelu"
    if layer.activation not in ACTIVATIONS:
        raise Untraceable(f"'{name}': expected relu or gelu as the activation")
    return ACTIVATIONS[layer.activation]


def layer_of(layer, name):
    """(texts, {parameter name in the module: name in mneme}) of a TransformerEncoderLayer."""
    if layer.linear1.bias is None:
        raise Untraceable(f"'{name}': expected layers with a bias")
    attention, names = attention_of(layer.self_attn, f"{name}.self_attn")
    drops = [[f"dropout {drop.p}"] if drop.p else [] for drop in (layer.dropout1, layer.dropout, layer.dropout2)]
    norms = [f"{name}.norm{i}: {layer_norm_text(getattr(layer, f'norm{i}'))}" for i in (1, 2)]
    attended = [attention, *drops[0]]
    linear = [f"{name}.linear1: linear {layer.linear1.out_features}", activation_of(layer, name), *drops[1],
              f"{name}.linear2: linear {layer.linear2.out_features}", *drops[2]]
    if layer.norm_first:
        return ["residual [", norms[0], *attended, "]", "residual [", norms[1], *linear, "]"], names
    return ["residual [", *attended, "]", norms[0], "residual [", *linear, "]", norms[1]], names


def encoder_of(module, name):
    """The same for a TransformerEncoder or one of its layers; None for other modules."""
    if type(module) is torch.nn.TransformerEncoderLayer:
        return layer_of(module, name)
    if type(module) is not torch.nn.TransformerEncoder:
        return None
    texts, names = [], {}
    for i, layer in enumerate(module.layers):
        more, theirs = layer_of(layer, f"{name}.layers.{i}")
        texts += more
        names.update(theirs)
    if module.norm is not None:
        texts.append(f"{name}.norm: {layer_norm_text(module.norm)}")
    return texts, names


# Layers that process tokens independently.
BY_TOKEN = {"layer-norm", "linear", "relu", "leaky-relu", "sigmoid", "tanh", "silu", "gelu", "dropout"}


def kind_of(text):
    return text.split(": ")[-1].split()[0]


def block_before(texts, end):
    """Index of the start of the block that ends at texts[end]."""
    depth = 0
    for at in range(end, -1, -1):
        depth += texts[at] == "]"
        depth -= texts[at] == "residual ["
        if depth == 0:
            return at
    raise Untraceable("a block without a beginning")


def first_token_alone(texts):
    """Returns an equivalent net whose last block computes only the first token, if later layers use only that one."""
    if "first-token" not in texts:
        return texts
    last = len(texts) - 1 - texts[::-1].index("first-token")
    at = last - 1
    while at >= 0:
        if texts[at] != "]":
            if kind_of(texts[at]) not in BY_TOKEN:
                return texts
            at -= 1
            continue
        begin = block_before(texts, at)
        body = texts[begin + 1:at]
        kinds = [kind_of(text) for text in body]
        if "attention" in kinds:
            where = len(kinds) - 1 - kinds[::-1].index("attention")
            if not set(kinds[where + 1:]) <= BY_TOKEN or not set(kinds[:where]) <= BY_TOKEN | {"attention"}:
                return texts
            body[where] += " first-token"
            block = ["residual [", *body, "] shortcut [", "first-token", "]"]
            return [*texts[:begin], *block, *texts[at + 1:last], *texts[last + 1:]]
        if not set(kinds) <= BY_TOKEN:
            return texts
        at = begin - 1
    return texts
