"""Pretrained weights from the Hugging Face hub, and low-rank adapters merged into the layers that they belong to."""
import importlib
import os
from typing import Any

import torch

PARTS = {"query": 0, "key": 1, "value": 2}  # rows of attn.qkv, in thirds
DOWN, UP = ".lora_A.weight", ".lora_B.weight"


def weights(name: str, file: str = "model.safetensors", revision: str | None = None) -> str:
    """Returns the path of a file of pretrained weights, for `model.weights`.

    A path of an existing file is returned as it is. Any other name is a repository of the Hugging Face hub, such as
    "timm/vit_tiny_patch16_224.augreg_in21k" or "google/vit-base-patch16-224"; its file is downloaded through
    huggingface_hub, which must be installed, and kept in that library's cache. Give a `revision` (a commit) if a run
    has to be repeated exactly: the scenario digest contains the file's content, not its name.

    Raises ImportError without huggingface_hub, FileNotFoundError for an unknown repository, file or revision, and
    ConnectionError if the file is neither in the cache nor reachable.
    """
    if os.path.isfile(name):
        return os.path.abspath(name)
    if name.count("/") != 1 or name.startswith(("/", ".")) or name.endswith((".safetensors", "/")):
        raise FileNotFoundError(f"mneme.weights({name!r}): there is no such file, and it is no repository of the hub; "
                                "expected a path, or OWNER/NAME as in 'timm/vit_tiny_patch16_224.augreg_in21k'")
    if not file.endswith(".safetensors"):
        raise ValueError(f"mneme.weights({name!r}, file={file!r}): expected a .safetensors file")
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError as absent:
        raise ImportError(f"mneme.weights({name!r}) downloads through huggingface_hub, which is not installed; "
                          "expected `pip install huggingface_hub`, or the path of a downloaded file") from absent
    try:
        return str(hub.hf_hub_download(repo_id=name, filename=file, revision=revision))
    except Exception as error:
        raise _explained(f"mneme.weights({name!r}, file={file!r}, revision={revision!r})", error) from error


def _explained(call, error):
    """The error of a failed download, with what was expected. Errors are distinguished by name, because their module
    has moved.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    text = str(error).strip().split("\n")[0]
    if names & {"GatedRepoError"}:
        return PermissionError(f"{call}: the repository wants an agreement ({text}); expected `hf auth login` with an "
                               "account that has agreed")
    if names & {"LocalEntryNotFoundError", "OfflineModeIsEnabled", "ConnectionError", "ConnectError", "Timeout",
                "TimeoutException"}:
        return ConnectionError(f"{call}: the file is not in the cache and the hub cannot be reached ({text}); expected "
                               "a machine with network, or the path of a file that you have copied here")
    if names & {"RepositoryNotFoundError", "EntryNotFoundError", "RemoteEntryNotFoundError", "RevisionNotFoundError",
                "HFValidationError"}:
        return FileNotFoundError(f"{call}: the hub has no such repository, file or revision ({text}); expected a name "
                                 "as on huggingface.co, of a repository with a safetensors file")
    return RuntimeError(f"{call}: {type(error).__name__}: {text}")


def merged(tensors: dict[str, torch.Tensor], scale: float) -> dict[str, torch.Tensor]:
    """Adds scale B A of every low-rank adapter to the matrix of its layer, and removes the adapters."""
    result = {name: tensor for name, tensor in tensors.items() if not name.endswith((DOWN, UP))}
    for name in sorted(tensors):
        if not name.endswith(DOWN):
            continue
        layer = name[:-len(DOWN)]
        change = scale * (tensors[layer + UP].double() @ tensors[name].double())
        block, _, part = layer.rpartition(".")
        if layer + ".weight" in result:
            target, rows = layer + ".weight", slice(None)
        else:  # the rows of one matrix within the joint matrix of query, key and value
            target = f"{block}.qkv.weight"
            height = change.shape[0]
            rows = slice(PARTS[part] * height, (PARTS[part] + 1) * height)
        result[target] = result[target].double().clone()
        result[target][rows] += change
    return {name: tensor.to(tensors[name].dtype) for name, tensor in result.items()}
