"""mneme.net: converts a torch.nn.Module to layers that mneme computes natively, with its weights."""
import copy
import hashlib
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from mneme import _engine, _safetensors
from mneme._data import FOLDER, write_whole
from mneme._errors import MnemeWarning, ScenarioError
from mneme._example import inferred_rows
from mneme._exported import exported
from mneme._types import Path


class HasModel(Protocol):
    """Object that has model(), like a Run."""

    def model(self) -> dict[str, torch.Tensor]: ...


class Net:
    """Keys of [model] for a net of torch. `layers`: the layers as texts; None: the net is a module in a file, which
    runs unfused."""

    def __init__(self, layers: Sequence[str] | None, tensors: Mapping[str, torch.Tensor] | None = None,
                 module: bytes = b"", folder: Path = FOLDER, names: Mapping[str, str] | None = None,
                 frozen: Sequence[str] = ()) -> None:
        self.layers, self.tensors, self.module, self.folder = layers, tensors, module, folder
        self.names = names or {}  # renamed parameters: {name in the module: name in mneme}
        self.frozen = list(frozen)  # model.frozen; the file of a module contains requires_grad itself

    def _file(self, content, ending):
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(os.path.abspath(self.folder), hashlib.sha256(content).hexdigest()[:32] + ending)
        if not os.path.exists(path):
            write_whole(path, content)
        return path

    def state_dict(self, run: HasModel) -> dict[str, torch.Tensor]:
        """Returns the final net of a Run with the module's names: module.load_state_dict(net.state_dict(run),
        strict=False)."""
        theirs = {ours: name for name, ours in self.names.items()}
        return {theirs.get(name, name): tensor for name, tensor in run.model().items()}

    def model(self) -> dict[str, Any]:
        """Returns the keys of [model] as a dict: {"model": net.model(), ...}. Writes the weights file."""
        if self.layers is None:
            return {"module": self._file(self.module, ".pt2"), "module_output": "scores"}
        keys = {"name": "layers", "layers": self.layers}
        if self.frozen:
            keys["frozen"] = self.frozen
        if self.tensors:
            keys["seed_weights"] = self._file(_safetensors.as_bytes(self.tensors), ".safetensors")
        return keys


def layers_of(content):
    """Translates an exported program. Returns (layers, {name in the file: name in mneme}, frozen, reason why there are
    no layers)."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.pt2")
        with open(path, "wb") as file:
            file.write(content)
        errors, layers, names, frozen, unfused = _engine._layers_of(path)
    if errors:
        raise ScenarioError([("net", text) for _, text in errors])
    return layers, dict(names), frozen, unfused


def net(module: torch.nn.Module, *, weights: bool = True, strict: bool = False, example: Any = None,
        folder: Path = FOLDER) -> Net:
    """Converts a torch.nn.Module, exported by torch.export, to a net of mneme: {"model": mneme.net(module).model()}.

    The last layer must be a Linear with a bias, the head, with a row per class. `weights`: the run starts with the
    module's weights. `example`: a batch of rows as forward() takes them; without it, the shape is inferred from the
    first layer.

    If a part of the module has no layer in mneme, the module is written to a file (.pt2) and runs client by client; it
    must return a score per class. A warning names these parts, or a ScenarioError if `strict` is set. Batch norms and
    dropout train as in PyTorch. Parameters with requires_grad = False keep their values. A normalization in evaluation
    mode within a net in training mode keeps its running statistics.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"mneme.net({type(module).__name__}): expected a torch.nn.Module")
    rows, is_any_size = (example, False) if example is not None else inferred_rows(module)
    if rows is None:
        raise ScenarioError([("net", "the shape of the rows cannot be inferred; expected example=rows, a batch of rows "
                                     "as forward() takes them")])
    trained = module if module.training else copy.deepcopy(module).train()
    content = exported(trained, rows)
    layers, names, frozen, unfused = layers_of(content)
    if layers:
        tensors = {names[key]: value.detach().float().contiguous() for key, value in module.state_dict().items()
                   if key in names}
        return Net(layers, tensors if weights else None, folder=folder, frozen=frozen,
                   names={theirs: ours for theirs, ours in names.items() if theirs != ours})
    if strict:
        raise ScenarioError([("net", unfused)])
    if not weights:
        raise ScenarioError([("net", "weights = False: the module becomes a file, which begins with the weights that "
                                     f"it holds; expected weights = True, or new values in the module. {unfused}")])
    if is_any_size:
        raise ScenarioError([("net", f"{unfused}. forward() takes rows of several sizes; expected example=rows, a "
                                     "batch of rows of the size of the run's data")])
    warnings.warn(f"{unfused}: several times slower for small nets", MnemeWarning, stacklevel=2)
    return Net(None, module=content if module.training else exported(module, rows), folder=folder)
