"""Rivals of the base's size: a rival has one free width, chosen as large as the base's number of parameters allows.

As in Table 3 (A), only the system changes, not the number of parameters. The embedding, equal in all, is not counted.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping

import torch
from torch import nn

from repro.model.config import Hyper
from repro.model.cost import n_parameters

MULTIPLE = 8  # widths are multiples of it, which are fast on processors
Layers = Mapping[str, nn.Module]  # all trained parts outside the embedding, by name


def widest(system: nn.Module, hyper: Hyper, layers: Callable[[int], Layers]) -> int:
    """The largest multiple of 8 with which `layers` have no more parameters than the base; adds them to `system`.

    The size of `layers` must grow with their width. Raises ValueError if even the narrowest have too many parameters.
    """
    allowed = n_parameters(hyper, vocab_size=0)
    widths = range(MULTIPLE, 16 * hyper.d_model + 1, MULTIPLE)
    n_fitting = bisect_right(widths, allowed, key=lambda width: _counted(layers, width))
    if n_fitting == 0:
        raise ValueError(
            f"{type(system).__name__}: expected a width that fits into the {allowed:,} parameters of the base outside "
            f"its embedding, but the narrowest, {MULTIPLE}, has {_counted(layers, MULTIPLE):,}. Choose a base of more "
            f"layers or a larger d_ff."
        )
    width = widths[n_fitting - 1]
    for name, layer in layers(width).items():
        system.add_module(name, layer)
    return width


def _counted(layers: Callable[[int], Layers], width: int) -> int:
    """The number of parameters of `layers` of this width, made on the meta device, which takes no memory."""
    with torch.device("meta"):
        return sum(parameter.numel() for layer in layers(width).values() for parameter in layer.parameters())
