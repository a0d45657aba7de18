"""Converts the state of a server half to text and tensors for a checkpoint."""
import json

import torch


def packed(value):
    """Converts a value to (text, {name: tensor}), from which unpacked() restores an equal value."""
    tensors = {}

    def walk(part, path):
        if part is None or isinstance(part, (bool, int, str)):
            return part
        if isinstance(part, float):
            return {"float": part.hex()}
        if isinstance(part, torch.Tensor) or hasattr(part, "__array__"):
            name = f"t{len(tensors)}"
            tensors[name] = torch.as_tensor(part)
            return {"tensor": name, "numpy": not isinstance(part, torch.Tensor)}
        if isinstance(part, (list, tuple)):
            return {type(part).__name__: [walk(item, f"{path}[{i}]") for i, item in enumerate(part)]}
        if isinstance(part, dict):
            return {"dict": [[walk(key, path), walk(item, f"{path}[{key!r}]")] for key, item in part.items()]}
        raise TypeError(f"state(): {path} is a {type(part).__name__}; expected tensors, numbers, texts, lists, tuples "
                        "and dicts, or a state() and restore() of your own")

    return json.dumps(walk(value, "state")), tensors


def unpacked(text, tensors):
    """Restores the value of packed()."""
    def walk(part):
        if not isinstance(part, dict):
            return part
        if "float" in part:
            return float.fromhex(part["float"])
        if "tensor" in part:
            tensor = tensors[part["tensor"]].clone()
            return tensor.numpy() if part["numpy"] else tensor
        if "dict" in part:
            return {hashable(walk(key)): walk(item) for key, item in part["dict"]}
        kind, items = next(iter(part.items()))
        return (tuple if kind == "tuple" else list)(walk(item) for item in items)

    def hashable(value):
        return value

    return walk(json.loads(text))
