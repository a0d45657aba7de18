"""Reads and writes the safetensors format: a JSON header followed by tensors."""
import json
import struct

import torch

TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
         "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
NAMES = {kind: name for name, kind in TYPES.items()}


def read(path):
    """Reads {name: tensor} from a file."""
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
            flat = torch.frombuffer(body, dtype=kind, count=count, offset=first)
            tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors


def as_bytes(tensors, metadata=None):
    """File content for {name: tensor}, in name order; lists of strings in `metadata` are stored with them."""
    header, blobs, at = {}, [], 0
    if metadata:
        header["__metadata__"] = {name: json.dumps(value) for name, value in metadata.items()}
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        blob = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(blobs)
