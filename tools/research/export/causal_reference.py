#!/usr/bin/env python3
"""A causal language model of torch.nn.TransformerEncoder, the reference for mneme's bert with model.causal.

    python3 tools/research/export/causal_reference.py [tests/golden/torch]

Weights, records and requirements are those of torchvision_reference.py, tokens those of bert_reference.py; made with
torch 2.11.0. All results are computed in float64. The loss is torch's cross_entropy of each token after the first one.
Does not use mneme.
"""
import torch
from torch import nn

from torchvision_reference import formula, made_values, rounded, summary, write_records

# File name: keys of mneme's model; width, blocks, heads, width of the MLP; tokens of a row and number of rows.
CASES = {"causal": ({"width": "24", "depth": "2", "heads": "3", "mlp": "40", "causal": "true"}, (24, 2, 3, 40), 9, 4)}
VOCABULARY = 31


def tokens_of(length, count):
    drawn = torch.stack([torch.from_numpy(formula(f"tokens {row}", length)).double() for row in range(count)])
    return ((drawn + 1) / 2 * VOCABULARY).long()


class Causal(nn.Module):
    """BERT's blocks with the parameters of made_values() under the names of transformers."""

    def __init__(self, width, depth, heads, mlp, length):
        super().__init__()
        self.names = {}  # (parameter, first row, last row) by name
        self.words, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.types, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
        block = nn.TransformerEncoderLayer(width, heads, mlp, dropout=0.0, activation="gelu", layer_norm_eps=1e-12,
                                           batch_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)
        self.double()
        for name, part in (("word", self.words), ("position", self.positions), ("token_type", self.types)):
            self.fill(f"bert.embeddings.{name}_embeddings", part)
        self.fill("bert.embeddings.LayerNorm", self.norm)
        for number, part in enumerate(self.blocks.layers):
            lead = f"bert.encoder.layer.{number}."
            for third, name in enumerate(("query", "key", "value")):
                rows = slice(third * width, (third + 1) * width)
                self.put(f"{lead}attention.self.{name}.weight", part.self_attn.in_proj_weight, rows)
                self.put(f"{lead}attention.self.{name}.bias", part.self_attn.in_proj_bias, rows)
            self.fill(lead + "attention.output.dense", part.self_attn.out_proj)
            self.fill(lead + "attention.output.LayerNorm", part.norm1)
            self.fill(lead + "intermediate.dense", part.linear1)
            self.fill(lead + "output.dense", part.linear2)
            self.fill(lead + "output.LayerNorm", part.norm2)
        self.fill("classifier", self.head)

    def put(self, name, parameter, rows=slice(None)):
        self.names[name] = (parameter, rows)
        with torch.no_grad():
            parameter[rows] = made_values(name, tuple(parameter[rows].shape))

    def fill(self, lead, module):
        for name, parameter in module.named_parameters():
            self.put(f"{lead}.{name}", parameter)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.words(tokens) + self.positions.weight[:length] + self.types.weight[0]
        mask = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.float64)
        return self.head(self.blocks(self.norm(x), mask=mask, is_causal=True))


def record_of(keys, sizes, length, count):
    net, tokens = Causal(*sizes, length), tokens_of(length, count)
    logits = net(tokens)
    loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    return {"model": "bert", "keys": keys, "vocabulary": VOCABULARY, "tokens": tokens.tolist(),
            "parameters": sum(one.numel() for one in net.parameters()),
            "logits": [summary("logits", row) for row in logits],
            "loss": rounded(loss.detach()), "perplexity": rounded(loss.detach().exp()),
            "correct": int((logits[:, :-1].argmax(2) == tokens[:, 1:]).sum()),
            "gradients": {name: summary(name, parameter.grad[rows]) for name, (parameter, rows) in net.names.items()}}


if __name__ == "__main__":
    write_records(__doc__, CASES, record_of, "torch")
