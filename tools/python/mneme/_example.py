"""Finds the shape of the rows that a torch.nn.Module takes, from its layers."""
import copy

import torch

SIDES = (32, 28, 64, 16, 224, 8, 12, 24, 48, 96, 10, 14, 20, 36, 40, 56, 60, 80, 84, 100, 112, 128, 160, 192, 256, 299)
LENGTHS = (16, 8, *range(2, 513))


def candidates(module):
    """Batches of two rows that the first layer of the module takes."""
    for part in module.modules():
        if isinstance(part, (torch.nn.Conv2d, torch.nn.BatchNorm2d, torch.nn.GroupNorm)):
            channels = getattr(part, "in_channels", None) or getattr(part, "num_features", None) or part.num_channels
            return (torch.zeros(2, channels, side, side) for side in SIDES)
        if isinstance(part, torch.nn.Embedding):
            return (torch.zeros(2, length, dtype=torch.int64) for length in LENGTHS)
        if isinstance(part, torch.nn.Linear):
            return iter([torch.zeros(2, part.in_features)])
        if isinstance(part, torch.nn.BatchNorm1d):
            return iter([torch.zeros(2, part.num_features)])
    return iter(())


def inferred_rows(module):
    """Returns (rows that forward() accepts, True if it accepts rows of another size, too); (None, False) if none of the
    usual sizes fits."""
    still = copy.deepcopy(module).eval()
    found = []
    with torch.no_grad():
        for rows in candidates(module):
            try:
                still(rows)
            except Exception:  # noqa: BLE001  of the module's own code: another size
                continue
            found.append(rows)
            if len(found) == 2:
                break
    return (found[0], len(found) > 1) if found else (None, False)
