"""Converts modules of torch to exported programs (torch.export.save) that contain only what a run reads."""
import copy
import io
import logging
import os
import sys
import warnings
from contextlib import contextmanager, redirect_stderr, redirect_stdout

import torch

from mneme._code import loaded
from mneme._errors import ScenarioError
from mneme._slim import slim

BATCH_MAX = 1 << 20


def first_line(error):
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def exported(module, example):
    """Content of a .pt2 file of the module in its current mode: in .train(), batch norms and dropout train.

    example: a batch of rows as forward() takes them. The file accepts any number of rows.
    """
    rows = torch.as_tensor(example)
    if rows.dim() == 0 or rows.shape[0] < 2:  # torch.export treats a size of 1 as fixed
        rows = torch.stack([rows, rows]) if rows.dim() == 0 else rows.repeat(2, *[1] * (rows.dim() - 1))
    try:
        with quiet():
            program = torch.export.export(copy.deepcopy(module).cpu(), (rows.cpu(),),
                                          dynamic_shapes=({0: torch.export.Dim("B", min=1, max=BATCH_MAX)},))
            whole = io.BytesIO()
            torch.export.save(program, whole)
    except Exception as error:  # noqa: BLE001  torch has no class for it
        raise ScenarioError([("net", f"torch.export cannot read the module: {first_line(error)}; {advice(error)}")]
                            ) from None
    return slim(whole.getvalue())


def advice(error):
    """Usual fix for the error that PyTorch reports."""
    text = str(error)
    if "data-dependent" in text or "Dynamic control flow" in text or "GuardOnDataDependent" in text:
        return "expected branches on sizes and options only: use torch.where() instead of an if on values"
    if "Constraints violated" in text or "specialized" in text:
        return "expected a forward() for any number of rows: x.flatten(1) and x.shape[0] in place of numbers"
    return "rewrite what is named"


@contextmanager
def quiet():
    """Suppresses warnings and output of torch, which prints whole graphs when it fails."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    unread = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(unread), redirect_stderr(unread):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


# -- command line -----------------------------------------------------------------------------------------------------

USAGE = "usage: python -m mneme export-net FILE.py:FUNCTION --rows 3x32x32 [--tokens] [--eval] [--out net.pt2]"


def made_by(source):
    """Returns the module made by FUNCTION of FILE.py."""
    path, _, name = source.rpartition(":")
    if not path or not os.path.exists(path):
        raise ScenarioError([("net", f"{source}: expected FILE.py:FUNCTION, a file that exists; {USAGE}")])
    make = getattr(loaded(os.path.abspath(path)), name, None)
    module = make() if callable(make) else make
    if not isinstance(module, torch.nn.Module):
        raise ScenarioError([("net", f"{source} gives {type(module).__name__}; expected a torch.nn.Module or a "
                                     "function without arguments that returns one")])
    return module


def export_net(words):
    """Implements mneme export-net. Returns the exit code."""
    import argparse
    parser = argparse.ArgumentParser(prog="python -m mneme export-net",
                                     description="Export the module that FUNCTION of FILE.py returns.")
    parser.add_argument("source", metavar="FILE.py:FUNCTION")
    parser.add_argument("--rows", required=True, help="the shape of a row: 3x32x32, or 30 of a table or of tokens")
    parser.add_argument("--tokens", action="store_true", help="rows are tokens (int64), not numbers")
    parser.add_argument("--eval", action="store_true", help="batch norms and dropout stay in evaluation mode")
    parser.add_argument("--out", default="net.pt2")
    given = parser.parse_args(words)
    try:
        shape = [int(size) for size in given.rows.split("x")]
        rows = torch.zeros(2, *shape, dtype=torch.int64 if given.tokens else torch.float32)
        content = exported(made_by(given.source).train(not given.eval), rows)
    except (ScenarioError, ValueError, RuntimeError) as error:
        print(f"mneme: {error}", file=sys.stderr)
        return 2
    with open(given.out, "wb") as file:
        file.write(content)
    return 0
