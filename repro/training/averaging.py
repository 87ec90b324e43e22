"""Averaging of checkpoints. Paper: section 6.1 (the last 5 for base, the last 20 for big)."""

from collections.abc import Iterable

import torch
from torch import Tensor


def average(states: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each weight over several models, summed in float64 and given back in its own type.

    All states need the same names and shapes. One state is held in memory at a time.
    """
    total: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    n = 0
    for n, state in enumerate(states, start=1):
        if n == 1:
            dtypes = {name: tensor.dtype for name, tensor in state.items()}
            total = {name: torch.zeros_like(tensor, dtype=torch.float64) for name, tensor in state.items()}
        if state.keys() != total.keys():
            odd = ", ".join(sorted(state.keys() ^ total.keys()))
            raise ValueError(f"Checkpoint {n} of the average has other weights than the first: {odd}.")
        for name, tensor in state.items():
            total[name] += tensor
    if n == 0:
        raise ValueError("Nothing to average: expected at least one checkpoint, got none.")
    return {name: (tensor / n).to(dtypes[name]) for name, tensor in total.items()}
