#!/usr/bin/env python3
"""BERT of the library transformers, the reference for mneme's model "bert".

    python3 tools/research/export/bert_reference.py [tests/golden/transformers]

Made with Python 3.11, torch 2.11.0, transformers 5.23.0 and numpy 2.4. Weights are computed from their names as in
torchvision_reference.py; tokens are stored. All results are computed in float64, in evaluation mode, with the attention
mask that hides padding. Does not use mneme.
"""

import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from torchvision_reference import formula, rounded, set_weights, summary, write_records

# File name: keys of mneme's model, the library's configuration, and number of tokens without padding in each row.
CASES = {
    "bert": ({"width": "24", "depth": "2", "heads": "3", "mlp": "40", "positions": "12", "padding": "0"},
             {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 40,
              "max_position_embeddings": 12}, 9, (9, 4, 1, 7)),
    "bert_tiny": ({"width": "128", "depth": "2", "heads": "2", "padding": "0"},
                  {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512,
                   "max_position_embeddings": 16}, 16, (16, 11, 3)),
    "bert_whole_rows": ({"width": "20", "depth": "3", "heads": "4"},
                        {"hidden_size": 20, "num_hidden_layers": 3, "num_attention_heads": 4,
                         "intermediate_size": 80, "max_position_embeddings": 7, "pad_token_id": None}, 7, (7, 7, 7)),
}
VOCABULARY, CLASSES = 31, 5


def tokens_of(length, known):
    """Rows of tokens from 1 on, padded with 0."""
    rows = torch.zeros(len(known), length, dtype=torch.long)
    for row, count in enumerate(known):
        drawn = torch.from_numpy(formula(f"tokens {row}", count)).double()
        rows[row, :count] = 1 + ((drawn + 1) / 2 * (VOCABULARY - 1)).long()
    return rows


def record_of(keys, sizes, length, known):
    config = BertConfig(vocab_size=VOCABULARY, num_labels=CLASSES, attn_implementation="eager", **sizes)
    net = BertForSequenceClassification(config).double().eval()
    set_weights(net)
    tokens = tokens_of(length, known)
    mask = (torch.arange(length).unsqueeze(0) < torch.tensor(known).unsqueeze(1)).long()
    seen = {}
    net.classifier.register_forward_hook(lambda _, given, made: seen.update(features=given[0]))
    logits = net(input_ids=tokens, attention_mask=mask).logits
    nn.functional.cross_entropy(logits, torch.arange(len(known)) * 7 % CLASSES).backward()
    return {"model": "bert", "keys": keys, "vocabulary": VOCABULARY, "classes": CLASSES, "tokens": tokens.tolist(),
            "parameters": sum(one.numel() for one in net.parameters()),
            "logits": [[rounded(value) for value in row] for row in logits.detach()],
            "features": [summary("features", row) for row in seen["features"]],
            "gradients": {name: summary(name, one.grad) for name, one in net.named_parameters()}}


if __name__ == "__main__":
    write_records(__doc__, CASES, record_of, "transformers")
