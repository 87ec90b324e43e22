"""As large as the base: a rival has one free width, and it is as wide as the base's parameters allow.

So is Table 3 (A) made: what changes is the system, not how much it may learn. Outside the embedding, which all share.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping

import torch
from torch import nn

from repro.model.config import Hyper
from repro.model.cost import n_parameters

MULTIPLE = 8  # of which a width is one: as processors like it
Layers = Mapping[str, nn.Module]  # all that is learned outside the embedding, by name


def widest(system: nn.Module, hyper: Hyper, layers: Callable[[int], Layers]) -> int:
    """The widest multiple of 8 of which `layers` have no more parameters than the base's; `system` becomes theirs.

    `layers` grow with their width. Raises ValueError where the narrowest are too many already.
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
    """Where tensors have shapes and no numbers."""
    with torch.device("meta"):
        return sum(parameter.numel() for layer in layers(width).values() for parameter in layer.parameters())
