"""Runs research code written for CUDA devices, from a checkout, on one CPU thread.

An adapter (lander.py, fed_cil.py, ...) derives from Adapter, names repository and commit, and imports the checkout's
classes; no code is copied. This file replaces the parts that prevent the classes from running: devices, worker
processes of loaders, and packages that only plot or log. One process runs one official program, because all of them
have modules called `utils`.
"""
import contextlib
import dataclasses
import importlib.abc
import importlib.machinery
import io
import json
import math
import os
import random
import sys
import time
import types

import numpy
import torch

from checkout import Refused, check_commit

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "export"))
from torchvision_reference import formula, rounded, summary  # noqa: E402, F401


# -- CPU instead of a device ------------------------------------------------------------------------------------------

def on_host(value):
    """Replaces a device argument that names a CUDA device, or the number of one, with the CPU."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return "cpu" if isinstance(value, str) and value.split(":")[0] in ("cuda", "gpu") else value


def moved_to_host(function):
    """Returns `function` with arguments that name a CUDA device replaced by the CPU."""
    def call(*given, **named):
        return function(*[on_host(value) for value in given], **{name: on_host(value) for name, value in named.items()})
    return call


FACTORIES = ("arange", "as_tensor", "empty", "eye", "full", "linspace", "normal", "ones", "ones_like", "rand",
             "randint", "randn", "randn_like", "randperm", "tensor", "zeros", "zeros_like")


def patch_devices():
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.nn.Module.cuda = lambda self, *_, **__: self
    torch.Tensor.to = moved_to_host(torch.Tensor.to)
    torch.nn.Module.to = moved_to_host(torch.nn.Module.to)
    for name in FACTORIES:
        setattr(torch, name, moved_to_host(getattr(torch, name)))
    torch.load = moved_to_host(torch.load)
    torch.cuda.is_available = lambda: False
    torch.cuda.device_count = lambda: 0
    for name in ("empty_cache", "set_device", "synchronize", "manual_seed", "manual_seed_all"):
        setattr(torch.cuda, name, lambda *_, **__: None)
    # Pickled tensors of a device are loaded into host memory.
    torch.storage._load_from_bytes = lambda data: torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)


def patch_loaders():
    """Removes worker processes from loaders: rows are read by the calling thread."""
    class HostLoader(torch.utils.data.DataLoader):
        def __init__(self, *given, **named):
            for name in ("num_workers", "persistent_workers", "pin_memory", "multiprocessing_context",
                         "prefetch_factor"):
                named.pop(name, None)
            super().__init__(*given, **named)
    torch.utils.data.DataLoader = HostLoader


# -- Missing packages -------------------------------------------------------------------------------------------------

class Nothing:
    """Replaces any object of a stubbed package: calls, attributes and contexts return itself."""

    def __call__(self, *_, **__):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self):
        return iter(())


class Bar(Nothing):
    """Replaces tqdm: returns the given rows and prints nothing."""

    def __init__(self, rows=(), *_, **__):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)


class Stub(types.ModuleType):
    __path__ = ()  # makes it a package, so that its submodules are stubs, too

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self.packages = frozenset(packages)

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Stub(spec.name)

    def exec_module(self, module):
        pass


def module_of(name, **members):
    """Registers a module with these members. It replaces a package of which the code calls few functions."""
    module = Stub(name)
    vars(module).update(members)
    sys.modules[name] = module
    return module


LOGGERS = ("wandb", "tensorboard", "matplotlib", "seaborn", "tkinter", "cv2", "pandas")


def prepare(checkout, stubs=(), threads=1):
    """Applies all patches. Must be called before the first import from the checkout, which becomes the working
    directory.

    @param stubs names of other packages that the code imports and whose results are not compared.
    """
    torch.set_num_threads(threads)
    patch_devices()
    patch_loaders()
    module_of("tqdm", tqdm=Bar, trange=lambda count, **_: Bar(range(count)))
    module_of("torch.utils.tensorboard", SummaryWriter=Nothing())
    sys.meta_path.insert(0, StubFinder({*LOGGERS, *stubs}))
    sys.path.insert(0, os.path.abspath(checkout))
    sys.dont_write_bytecode = True
    os.chdir(checkout)


def in_double():
    """Makes all later computations float64, FloatTensor included: golden numbers are then exact in float32."""
    torch.set_default_dtype(torch.float64)
    torch.FloatTensor = torch.DoubleTensor


def seed_all(seed):
    random.seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seed)


@contextlib.contextmanager
def quiet():
    """Suppresses the output of official code, which prints every step."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


@contextlib.contextmanager
def replaced(members):
    """Replaces members of modules or classes within a block. @param members {(owner, name): value}"""
    before = {(owner, name): getattr(owner, name) for owner, name in members}
    for (owner, name), value in members.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for (owner, name), value in before.items():
            setattr(owner, name, value)


def kept_by(kept, name, function):
    """Returns `function` extended to append (name, result) to the list `kept`, for loss terms by step."""
    def call(*given, **named):
        value = function(*given, **named)
        kept.append((name, value.detach()))
        return value
    return call


# -- Shared parts of adapters -----------------------------------------------------------------------------------------

@dataclasses.dataclass
class Split:
    """Rows and start for both sides. Labels are positions in the class order."""

    images: numpy.ndarray       # [N, C, H, W] uint8
    labels: numpy.ndarray       # [N] int64
    test_images: numpy.ndarray  # [n, C, H, W] uint8
    test_labels: numpy.ndarray  # [n] int64
    rows: list                  # [task][client] indices of training rows
    task_classes: list          # [task] (first, last + 1)


class Adapter:
    """One official program. Each method uses the state of official objects. Few adapters implement all methods."""

    NAME = ""  # name of the method in mneme
    REPOSITORY = ""
    COMMIT = ""
    STUBS = ()       # imported packages that are not needed

    def load(self, checkout):
        """Imports the checkout's classes. Raises Refused for another commit."""
        check_commit(checkout, self.REPOSITORY, self.COMMIT)
        prepare(checkout, self.STUBS)

    def make(self, split, initial):
        """Creates its objects. @param initial {tensor name: tensor} of the common start, or None."""
        raise NotImplementedError

    def step(self, batch):
        """One step of training on a fixed batch. @return {term: value}"""
        raise NotImplementedError

    def round(self):
        """One round of the federation. @return loss"""
        raise NotImplementedError

    def evaluate(self):
        """@return accuracy in percent of each task so far."""
        raise NotImplementedError

    def state(self):
        """@return {tensor name: tensor} of all trained tensors."""
        raise NotImplementedError


def made_values(name, shape):
    """A parameter or running statistic in float32, computed from its name like in tests/support/golden.hpp."""
    values = formula(name, math.prod(shape))
    if len(shape) > 1:
        values = numpy.float32(math.sqrt(6.0 * shape[0] / math.prod(shape))) * values
    elif name.endswith((".weight", ".running_var")):
        values = numpy.float32(1.0) + numpy.float32(0.25) * values
    else:
        values = numpy.float32(0.125) * values
    return torch.from_numpy(values).reshape(shape)


def values_of(name, shape):
    """Values in [-1, 1), float32."""
    return torch.from_numpy(formula(name, math.prod(shape))).reshape(shape)


def listed(tensor):
    """Formats numbers for a golden file; nine digits represent a float32 exactly."""
    return [rounded(value) for value in tensor.detach().double().flatten()]


class Clock:
    """CPU seconds of this process without imports."""

    def __init__(self):
        self.since = time.process_time()

    def seconds(self):
        return time.process_time() - self.since


def write_golden(path, adapter, record):
    """Writes a golden file: origin of its numbers, then the numbers."""
    source = {"repository": adapter.REPOSITORY, "commit": adapter.COMMIT,
              "made_by": f"tools/research/official/{os.path.basename(sys.modules[type(adapter).__module__].__file__)}",
              "torch": torch.__version__.split("+")[0]}
    text = json.dumps({**source, **record}, indent=0, separators=(",", ":"))
    lines = text.replace("\n", "").replace('],"', '],\n"').replace('},"', '},\n"').replace("},{", "},\n{")
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(lines + "\n")
    os.replace(path + ".part", path)
    print(f"{path}: {len(lines):,} bytes")


def main(adapter, steps, describe):
    """Implements `ADAPTER.py CHECKOUT [tests/golden]`, which writes the steps. @param steps (adapter) -> {file name:
    record}"""
    words = sys.argv[1:]
    if len(words) not in (1, 2) or words[0].startswith("-"):
        print(describe.strip(), file=sys.stderr)
        return 2
    into = os.path.abspath(words[1] if len(words) > 1 else os.path.join("tests", "golden"))
    try:
        adapter.load(os.path.abspath(words[0]))
        for name, record in steps(adapter).items():
            write_golden(os.path.join(into, name + ".json"), adapter, record)
    except Refused as why:
        print(why, file=sys.stderr)
        return 2
    return 0
