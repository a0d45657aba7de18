"""Methods in Python: a client half that yields jobs, and a server half that folds uploads."""
import copy
import difflib
import inspect
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, overload

import torch

from mneme import _deprecated, _engine, _state
from mneme._scenarios import flattened
from mneme._source import digest_of_source

Value = TypeVar("Value", bool, int, float, str, list[bool], list[int], list[float], list[str])
Result = TypeVar("Result")
Jobs = _engine.Job | tuple[_engine.Job, ...]
# Type of client_round(). Round[Outcome] yields single jobs and receives their outcomes; Round[tuple[Outcome, Outcome]]
# yields pairs of jobs.
Round = Generator[Jobs, Result, _engine.Upload]


class key(Generic[Value]):
    """Declares a key of the method in [strategy] with default, range and meaning. On an instance, it is the key's
    value."""

    def __init__(self, default: Value, low: float | None = None, high: float | None = None,
                 choices: Sequence[str] | None = None, help: str = "") -> None:
        if not isinstance(default, (bool, int, float, str, list)):
            raise TypeError(f"mneme.key({default!r}): expected a bool, int, float, str or a list of one kind of them")
        if isinstance(default, list) and not default:
            raise TypeError("mneme.key([]): expected a list with an element, which defines the type of all")
        if not help:
            raise TypeError(f"mneme.key({default!r}): help= is missing, one sentence for `mneme help`")
        self.default: Any = default
        self.low, self.high, self.choices, self.help = low, high, choices, help
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "key[Value]": ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.get(self.name, self.default)


def cross_entropy() -> _engine.Loss:
    """Softmax cross-entropy over the classes of the loss, averaged over the rows of a step."""
    return _engine._cross_entropy


_python_losses: dict[int, tuple[Any, _engine.Loss]] = {}  # keys: ids of functions, which this dict keeps alive
_known_names: set[str] = set()


def loss(function: Callable[..., torch.Tensor]) -> _engine.Loss:
    """Creates an objective from a Python function, also as a decorator. torch's autograd computes gradients.

    The names of the function's arguments select what it receives; all are passed by name:

    logits [R, C], labels [R] int64, from 0, the first class of the loss; features [R, D], the head's input;
    teacher_logits [R, T] of the job's teacher for the classes `taught`; row_weight [R] float32, weights of the rows in
    the mean; side, a dict of the job's tensors. It returns the loss of each row [R].

    view_logits [R, C] and view_features [R, D] are the outputs for the second view of the same rows, in a job with
    views=2. The other arguments are then those of the first view.

    A function of `weights` is a penalty: weights [n] are a contiguous part of the trained weights, start [n] the same
    part at the start of the job, and side the job's tensors, of which those of one axis [P] are cut to that part. It
    returns one number for each part, and these are added up. mneme.quadratic() is faster where it fits.

    A function of two arguments with other names receives (logits, labels). Native losses are computed for all clients
    of a batch together. A Python loss is computed with the GIL held, which is reported once on stderr: by one call of
    torch.func.vmap where it has the same bits as one call for each client, otherwise client by client.
    """
    if isinstance(function, _engine.Loss) or not callable(function):
        raise TypeError(f"mneme.loss({function!r}): expected a function of (logits, labels) or of other arguments of: "
                        f"{', '.join(OF_ROWS + OF_WEIGHTS)}")
    if id(function) in _python_losses:
        return _python_losses[id(function)][1]
    name = getattr(function, "__name__", type(function).__name__)
    arguments = _arguments_of(function, name)
    if name not in _known_names:
        _known_names.add(name)
        print(f"mneme: the loss '{name}' is a Python function, so it is computed with Python's lock held",
              file=sys.stderr)
    batched = _batched(function, arguments)
    if "<locals>" in getattr(function, "__qualname__", "<locals>"):  # such functions may be created in each round
        return _engine._python_loss(function, batched, name, digest_of_source(function), arguments)
    made = _engine._python_loss(function, batched, name, f"at {id(function)}", arguments)
    _python_losses[id(function)] = function, made
    return made


OF_ROWS = ("logits", "labels", "features", "view_logits", "view_features", "teacher_logits", "row_weight", "side")
OF_WEIGHTS = ("weights", "start", "side")
HAVE_GRADIENTS = {"logits", "features", "view_logits", "view_features"}


def _batched(function, arguments):
    """torch.func.vmap of the function, with positional arguments; None for functions of `side` or `weights`."""
    if not arguments:
        return torch.func.vmap(function)
    if {"side", "weights"} & set(arguments):
        return None
    return torch.func.vmap(lambda *given: function(**dict(zip(arguments, given))))


def _arguments_of(function, name):
    """Names of the arguments to pass by name; empty: logits and labels are passed by position."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a compiled function without a signature
        return []
    parts = [part.name for part in parameters if part.kind not in (part.VAR_POSITIONAL, part.VAR_KEYWORD)]
    needed = [part.name for part in parameters if part.name in parts and part.default is part.empty]
    known = [part for part in parts if part in OF_ROWS + OF_WEIGHTS]
    positional = [part for part in parameters if part.kind in (part.POSITIONAL_ONLY, part.POSITIONAL_OR_KEYWORD)]
    unknown = [part for part in needed if part not in known]
    if unknown and set(known) <= {"logits", "labels"} and len(needed) == 2 == len(
            [part for part in positional if part.name in needed]):
        return []
    if unknown or not known or any(part.kind is part.POSITIONAL_ONLY for part in parameters):
        close = difflib.get_close_matches(unknown[0] if unknown else "", OF_ROWS + OF_WEIGHTS, 1)
        what = f"the argument '{unknown[0]}'" if unknown else f"the arguments {parts}"
        raise TypeError(f"mneme.loss({name}): {what} cannot be passed by name; expected some of "
                        f"{', '.join(dict.fromkeys(OF_ROWS + OF_WEIGHTS))}" +
                        (f"; did you mean '{close[0]}'?" if close else ""))
    of_rows = [part for part in known if part not in OF_WEIGHTS]
    if "weights" in known and of_rows or "start" in known and "weights" not in known:
        raise TypeError(f"mneme.loss({name}): a penalty is a function of weights, and start and side if needed, and "
                        f"not of {', '.join(of_rows) or 'start alone'}; expected two functions and the sum of their "
                        "losses, as in mneme.loss(rows) + mneme.loss(penalty)")
    if "weights" not in known and not HAVE_GRADIENTS & set(known):
        raise TypeError(f"mneme.loss({name}): the arguments {known} have no gradient; expected logits, features or "
                        "weights among them")
    return known


class Server:
    """Server half of a method. Its functions are called one at a time, in order of virtual time.

    weights: [P] float32, the start of the next round. place: position in the run. method: the method's object with its
    keys and `setup`. ctx: in close_round(), creates the jobs to yield. sends_weights: False: a broadcast has only the
    tensors of open_round(), and only these count as traffic; clients then have no `broadcast.weights`.
    """

    method: Any  # instance of the user's class, whose attributes are keys
    place: _engine.RoundInfo
    ctx: _engine.ServerContext
    weights: torch.Tensor
    sends_weights: bool = True

    def __init__(self, method: "Method") -> None:
        self.method = method
        self.weights = method.setup.initial.clone()

    def open_round(self) -> Mapping[str, torch.Tensor] | None:
        """Returns tensors to send in addition to `self.weights`, by name, or None."""

    def fold(self, upload: _engine.Delivery) -> None:
        """Receives an upload. Add it to sums rather than to a list, so that memory does not grow with the cohort."""
        raise NotImplementedError("fold(self, upload) is missing; mneme.AveragingServer has one")

    def close_round(self) -> Generator[Jobs, Any, None] | None:
        """The server step, after a round in which uploads were folded. May be a generator that yields jobs."""
        raise NotImplementedError("close_round(self) is missing; mneme.AveragingServer has one")

    def predict(self) -> torch.Tensor:
        """Returns the weights [P] to evaluate and save. With a parameter `client: int | None = None`, it also returns
        the model for one client, such as that of its cluster: the start of fine-tuning in evaluation.personal."""
        return self.weights

    def summary_metrics(self) -> Mapping[str, Any]:
        """Returns the method's metrics for summary.json, by name."""
        if type(self).figures is Server.figures:
            return {}
        _deprecated.warn(f"{type(self).__name__}.figures", "summary_metrics")
        return self.figures()

    def figures(self) -> Mapping[str, Any]:
        """Deprecated: the old name of summary_metrics()."""
        return {}

    def state(self) -> dict[str, Any]:
        """Returns the state for a checkpoint; default: all attributes. It may contain tensors, numbers, strings, lists,
        tuples and dicts."""
        return {name: value for name, value in vars(self).items() if name not in ("method", "place", "ctx", "_host")}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores the result of state()."""
        for name, value in state.items():
            setattr(self, name, value)

    @classmethod
    def _written(cls, name):
        """Class of the user that defines the function; None if only the package defines it."""
        owner = next(base for base in cls.__mro__ if name in vars(base))
        return owner.__module__ != __name__

    def _overrides(self, name):
        return self._written(name)

    def _predicts_clients(self):
        predict = inspect.getattr_static(type(self), "predict")
        return inspect.isfunction(predict) and "client" in inspect.signature(predict).parameters

    def _packed(self):
        return _state.packed(self.state())

    def _unpack(self, text, tensors):
        self.restore(_state.unpacked(text, tensors))


class AveragingServer(Server):
    """Averages uploads with the weights of `strategy.weighting`, in float64 and in order of arrival; in asynchronous
    runs with FedBuff or FedAsync. Functions that are not overridden run natively."""

    velocity: Any = 0.0  # momentum of methods that use it; becomes a tensor in the first step

    _host: Any  # set by the engine before the first call

    def __init__(self, method: "Method") -> None:
        self.method = method

    @property  # type: ignore[override]
    def weights(self) -> torch.Tensor:
        """Weights [P] float32, read-only. Assign a new tensor to change them."""
        return self._host.weights

    @weights.setter
    def weights(self, value: torch.Tensor) -> None:
        self._host.weights = value

    @overload
    def mean(self) -> torch.Tensor: ...

    @overload
    def mean(self, name: str) -> torch.Tensor | None: ...

    def mean(self, name: str = "weights") -> Any:
        """Mean of the tensors with this name that were folded since the last step ([P] for weights). For other names,
        None if no upload had such a tensor. May be called once per step."""
        return self._host.mean(name)

    def fold(self, upload: _engine.Delivery) -> None:
        self._host.fold(upload)

    def close_round(self) -> Generator[Jobs, Any, None] | None:
        self.weights = self.mean()
        return None


class Method:
    """Base class of methods. Subclasses set a name, declare keys, and define client_round() and optionally a `Server`.

    round_barrier: the server needs the uploads of one broadcast together. single_training_job: a client's round is one
    training whose upload has the size of the broadcast's weights, so that results are computed while others are folded.
    hide_task_from_clients: the task is hidden from clients. central_data: the server trains on training rows. defaults:
    keys of other sections, as a dict. presets: {name: (meaning, dict of keys)}.

    The source of a method is the class and everything that it refers to (docs/python.md): functions, classes, module
    values, closures.
    """

    setup: _engine.Setup
    name: str = ""
    summary: str = ""
    round_barrier: bool = False
    single_training_job: bool = False
    hide_task_from_clients: bool = False
    one_job = _deprecated.OldName("single_training_job")
    blind_clients = _deprecated.OldName("hide_task_from_clients")
    central_data: bool = False
    defaults: Mapping[str, Any] = {}
    presets: Mapping[str, tuple[str, Mapping[str, Any]]] = {}
    Server: type[Server] = AveragingServer
    _allows_source_change = False  # True: may resume runs that were started with another source

    def prepare(self) -> None:
        """Called once before the run, after `self.setup` is set. From then on the object is shared and must not
        change."""

    def check(self) -> Sequence[tuple[str, str]]:
        """Returns errors in keys and setup, as (key, text)."""
        return []

    def client_round(self, ctx: _engine.ClientContext,
                     broadcast: _engine.Broadcast) -> Round[Any]:
        """Runs one round of one client: a pure function that yields jobs and returns an Upload. With the annotation
        `-> mneme.Round[mneme.Outcome]`, type checkers know the type of `yield ctx.train(...)`."""
        trained = yield ctx.train(start=broadcast.weights, loss=cross_entropy())
        return _engine.Upload(trained.weights, rows=trained.rows)

    def unflatten(self, weights: torch.Tensor) -> dict[str, torch.Tensor]:
        """Splits flat weights [P] into {name: tensor}, with the names and shapes of PyTorch's state_dict."""
        return self.setup.unflatten(weights)

    def flatten(self, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Joins {name: tensor} to flat weights [P]; the inverse of unflatten(). Missing names become zeros."""
        return self.setup.flatten(tensors)

    # Functions that the engine calls.

    @classmethod
    def _keys(cls):
        found = {}
        for base in reversed(cls.__mro__):
            found.update({name: value for name, value in vars(base).items() if isinstance(value, key)})
        return [(k.name, k.default, k.low, k.high, k.choices, k.help) for k in found.values()]

    @classmethod
    def _single_training_job(cls):
        return _deprecated.flag(cls, "single_training_job", "one_job")

    @classmethod
    def _hide_task_from_clients(cls):
        return _deprecated.flag(cls, "hide_task_from_clients", "blind_clients")

    @classmethod
    def _source_digest(cls):
        return digest_of_source(cls)

    @classmethod
    def _defaults_toml(cls):
        return toml_of(cls.defaults)

    @classmethod
    def _presets_toml(cls):
        return [(name, meaning, toml_of(keys)) for name, (meaning, keys) in cls.presets.items()]

    @classmethod
    def _made(cls, values):
        made = cls.__new__(cls)
        vars(made).update(copy.deepcopy(values))
        if cls.__init__ is not object.__init__:
            made.__init__()
        return made

    def _made_server(self, host):
        made = self.Server.__new__(self.Server)
        vars(made)["_host"] = host
        made.__init__(self)
        return made

    def _averages(self):
        return issubclass(self.Server, AveragingServer)

    @classmethod
    def _folds_natively(cls):
        """True if the server averages all uploads by itself, as [uploads] noise and [aggregation] rules require."""
        return issubclass(cls.Server, AveragingServer) and cls.Server.fold is AveragingServer.fold

    def _freeze(self):
        vars(self)["_frozen"] = True

    def __setattr__(self, name, value):
        if "_frozen" in vars(self):
            raise AttributeError(f"self.{name} cannot be set in a round: all clients share one object, and their "
                                 "halves are pure; a client remembers by Upload(memory=...), the server by its own "
                                 "attributes")
        super().__setattr__(name, value)


def toml_of(keys):
    """Formats nested keys as TOML, which the engine reads as a layer."""
    return "".join(f"{name} = {value}\n" for name, value in flattened(keys))


def host(methods):
    """Registers method classes for scenarios of this process."""
    if inspect.isclass(methods) or not isinstance(methods, Iterable):
        raise TypeError(f"methods: {methods!r} is not a list; expected classes that derive from mneme.Method, as in "
                        "methods=[MyMethod]")
    names: dict[str, Any] = {}
    for method in methods:
        expect_method(method)
        if names.setdefault(method.name, method) is not method:
            raise TypeError(f"methods: {names[method.name]!r} and {method!r} have the same name '{method.name}'")
        method._source_digest()  # rejects methods without a digest and invalid defaults before the run starts
        method._defaults_toml()
        method._presets_toml()
        method._single_training_job()
        method._hide_task_from_clients()
        _engine._host(method)


def expect_method(method):
    """Raises TypeError unless it is a Method class with a name; sets a default summary."""
    if not (inspect.isclass(method) and issubclass(method, Method)):
        raise TypeError(f"methods: {method!r} is not a class that derives from mneme.Method")
    if not method.name or not isinstance(method.name, str):
        raise TypeError(f"{method.__name__}.name is missing; expected the value of strategy.name")
    if not (inspect.isclass(method.Server) and issubclass(method.Server, Server)):
        raise TypeError(f"{method.__name__}.Server is {method.Server!r}; expected a class that derives from "
                        "mneme.AveragingServer or mneme.Server")
    if not method.summary:
        method.summary = (inspect.getdoc(method) or "").split("\n")[0] if method.__doc__ else "A method in Python."
    server = method.Server
    if server._written("figures") and server._written("summary_metrics"):
        raise TypeError(f"{server.__name__}: figures is the old name of summary_metrics; expected only one of them")
    if any(k[0] in ("name", "preset", "weighting", "oracle", "source") for k in method._keys()):
        raise TypeError(f"{method.__name__}: name, preset, weighting, oracle and source are keys of every method")
