"""Converts modules without equivalent layers in mneme to TorchScript files."""
import copy
import io
import warnings

import torch
import torch.fx
from torch import Tensor, nn

from mneme._errors import ScenarioError
from mneme._exported import first_line


class EncoderLayer(nn.Module):
    """torch's TransformerEncoderLayer without its fused inference operator, which has no gradient."""

    def __init__(self, layer):
        super().__init__()
        for name in ("self_attn", "linear1", "dropout", "linear2", "norm1", "norm2", "dropout1", "dropout2"):
            setattr(self, name, getattr(layer, name))
        self.activation, self.norm_first = layer.activation, layer.norm_first
        self.train(layer.training)

    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        if self.norm_first:
            x = src + self.attended(self.norm1(src), src_mask, src_key_padding_mask, is_causal)
            return x + self.fed_forward(self.norm2(x))
        x = self.norm1(src + self.attended(src, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self.fed_forward(x))

    def attended(self, x: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool) -> Tensor:
        return self.dropout1(self.self_attn(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False,
                                            is_causal=is_causal)[0])

    def fed_forward(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class Encoder(nn.Module):
    """torch's TransformerEncoder without nested tensors."""

    def __init__(self, encoder):
        super().__init__()
        self.layers, self.norm, self.num_layers = encoder.layers, encoder.norm, encoder.num_layers
        self.train(encoder.training)

    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor:
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=is_causal)
        if self.norm is not None:
            src = self.norm(src)
        return src


def recurrent(rnn, with_state):
    """torch's LSTM, GRU or RNN as one operator call. with_state: forward() takes the initial state, which is zero
    otherwise. TorchScript shares code by class, so each has its own class."""
    layers = rnn.num_layers * (2 if rnn.bidirectional else 1)
    rows = f"x.size({0 if rnn.batch_first else 1})"
    names = ", ".join(f"self.{name}" for group in rnn._all_weights for name in group)
    flags = f"{rnn.bias}, {rnn.num_layers}, {float(rnn.dropout)}, False, {rnn.bidirectional}, {rnn.batch_first}"
    rest = f"[{names}], {flags}"

    def zeros(width):
        return f"torch.zeros([{layers}, {rows}, {width}], dtype=x.dtype, device=x.device)"

    if isinstance(rnn, nn.LSTM):
        taken, kind = (", state: Tuple[Tensor, Tensor]" if with_state else ""), "Tuple[Tensor, Tuple[Tensor, Tensor]]"
        state = "[state[0], state[1]]" if with_state else f"[{zeros(rnn.proj_size or rnn.hidden_size)}, " \
                                                          f"{zeros(rnn.hidden_size)}]"
        body = f"y, h, c = torch.lstm(x, {state}, {rest})\n    return y, (h, c)"
    else:
        taken, kind = (", state: Tensor" if with_state else ""), "Tuple[Tensor, Tensor]"
        name = "gru" if isinstance(rnn, nn.GRU) else f"rnn_{rnn.nonlinearity}"
        body = f"y, h = torch.{name}(x, {'state' if with_state else zeros(rnn.hidden_size)}, {rest})\n    return y, h"

    class Recurrent(torch.jit.ScriptModule):
        __constants__ = ["input_size", "hidden_size", "num_layers", "proj_size", "bidirectional", "batch_first"]

        def __init__(self):
            super().__init__()
            for name in self.__constants__:
                setattr(self, name, getattr(rnn, name))
            for name, parameter in rnn.named_parameters():
                self.register_parameter(name, parameter)
            self.define(f"def forward(self, x: Tensor{taken}) -> {kind}:\n    {body}\n")

    return Recurrent()


PLAIN = {nn.TransformerEncoderLayer: EncoderLayer, nn.TransformerEncoder: Encoder}
RECURRENT = (nn.LSTM, nn.GRU, nn.RNN)


def with_plain_parts(module, with_state):
    """The module with torch's encoders and recurrent layers replaced; parameter names do not change."""
    for name, part in module.named_children():
        plain = with_plain_parts(part, with_state)
        if plain is not part:
            setattr(module, name, plain)
    if type(module) in RECURRENT:
        return recurrent(module, with_state)
    return PLAIN[type(module)](module) if type(module) in PLAIN else module


class Tracer(torch.fx.Tracer):
    """Tracer that does not trace into replaced layers."""

    def is_leaf_module(self, m, module_qualified_name):
        return isinstance(m, (torch.jit.ScriptModule, *PLAIN.values())) or super().is_leaf_module(
            m, module_qualified_name)


def in_evaluation(module, with_state):
    """Copy of the module on the CPU in evaluation mode."""
    return with_plain_parts(copy.deepcopy(module).cpu().eval(), with_state)


def by_script(module):
    return torch.jit.script(module)


def by_fx(module):
    return torch.jit.script(torch.fx.GraphModule(module, Tracer().trace(module)))


def ways(module):
    """Ways to make a TorchScript module, in order: (name, function of a copy of the module, with_state)."""
    states = (False, True) if any(type(part) in RECURRENT for part in module.modules()) else (False,)
    for name, way in (("torch.jit.script", by_script), ("torch.fx", by_fx)):
        for with_state in states:
            yield name, way, with_state


def nodes_of(block):
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from nodes_of(inner)


def drops(node):
    """True for dropout with a nonzero rate."""
    return "dropout" in node.kind() and node.inputsSize() > 1 and list(node.inputs())[1].toIValue() not in (None, 0.0)


def untrained_text(graph):
    """Names the operators that do not train in evaluation mode, or ""."""
    nodes = list(nodes_of(graph))
    counts = {"batch norm keeps its running statistics": sum("batch_norm" in node.kind() for node in nodes),
              "dropout drops nothing": sum(map(drops, nodes))}
    several = {"batch norm keeps its": "batch norms keep their", "dropout drops": "dropouts drop"}
    parts = []
    for text, count in counts.items():
        for one, more in several.items() if count > 1 else ():
            text = text.replace(one, more)
        parts += [f"{count} {text}"] if count else []
    return f"; it is in evaluation mode, in training too: {', '.join(parts)}" if parts else ""


def scripted(module):
    """Returns (content of a TorchScript file, effects of evaluation mode). A module that torch.jit.script cannot read
    is traced by torch.fx."""
    reasons = {}
    for name, way, with_state in ways(module):
        buffer = io.BytesIO()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                warnings.simplefilter("ignore", FutureWarning)
                made = way(in_evaluation(module, with_state))
                torch.jit.save(made, buffer)
            return buffer.getvalue(), untrained_text(made.inlined_graph)
        except Exception as error:  # noqa: BLE001  torch has no class for it
            reasons.setdefault(name, f"{name} cannot read the module: {first_line(error)}")
    advice = "give example=rows, a batch of rows with which torch.export reads the module, or rewrite what is named"
    raise ScenarioError([("net", "; ".join([*reasons.values(), advice]))])
