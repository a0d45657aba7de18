"""The format of models on disk: a header in JSON, then tensors one after the other."""
import json
import struct

import torch

TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
         "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
NAMES = {kind: name for name, kind in TYPES.items()}


def read(path):
    """{name: tensor} of a file."""
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    body = bytearray(content[8 + length:])
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        kind = TYPES[entry["dtype"]]
        if first == last:
            tensors[name] = torch.empty(entry["shape"], dtype=kind)
        else:
            count = (last - first) // kind.itemsize
            tensors[name] = torch.frombuffer(body, dtype=kind, count=count, offset=first).reshape(entry["shape"]).clone()
    return tensors


def write(path, tensors):
    """Writes {name: tensor}, in name order."""
    header, blobs, at = {}, [], 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        blob = tensor.view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(blobs)
