"""Products with weights that stay as they are: laid out once for this processor, as a search multiplies by them.

A matrix library lays out a matrix anew for every product. For few rows, as in a search, that is a good part of the
work. oneDNN takes matrices that were laid out before; PyTorch's own compiler uses it so when weights are frozen.

The paper's pages know nothing of it: while `prepacked` lasts, the methods that multiply by weights are covered by
others that give the same.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from repro.model.attention import ALL, MultiHeadAttention, SelfAttention
from repro.model.bfloat16 import has_bfloat16
from repro.model.layers import FeedForward

Cover = tuple[nn.Module, str, Callable[..., Tensor]]  # of this module this method is covered by this function


class PackedLinear:
    """x W^T + b, by a W that was laid out once."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        """weight [out, in], bias [out]; products are made in `dtype`."""
        self.dtype = dtype
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().to(dtype).contiguous(), None)
        self.bias = None if bias is None else bias.detach().to(dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        made: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(self.dtype), self.weight, self.bias, "none", [], "")
        return made


def can_prepack(weight: Tensor, dtype: torch.dtype) -> bool:
    """Whether this processor and this PyTorch know how, for products in `dtype`."""
    known = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    if weight.device.type != "cpu" or not (torch.backends.mkldnn.is_available() and known):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and has_bfloat16())


@contextmanager
def prepacked(decoder: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """While it lasts the weights of `decoder` stay as they are, and lie as a search multiplies by them, in `dtype`.

    Nothing changes where the processor does not know how, nor for parts that multiply in their own way.
    """
    weight = next(decoder.parameters(), None)
    covers = list(_covers(decoder.modules(), dtype)) if weight is not None and can_prepack(weight, dtype) else []
    try:
        for part, method, function in covers:
            part.__dict__[method] = function
        yield
    finally:
        for part, method, _ in covers:
            del part.__dict__[method]


def _covers(parts: Iterable[nn.Module], dtype: torch.dtype) -> Iterator[Cover]:
    for part in parts:
        if isinstance(part, MultiHeadAttention) and _has(part, MultiHeadAttention, "product"):
            yield part, "product", _product(part, dtype)
            yield part.output, "forward", PackedLinear(part.output.weight, part.output.bias, dtype)
        elif isinstance(part, FeedForward) and _has(part, nn.Sequential, "forward"):
            yield part, "forward", _feed_forward(part, dtype)


def _has(part: nn.Module, kind: type[nn.Module], method: str) -> bool:
    """Whether the part does it as its class does, and no subclass in another way."""
    return getattr(type(part), method) is getattr(kind, method)


def _product(part: MultiHeadAttention, dtype: torch.dtype) -> Callable[[slice, Tensor], Tensor]:
    """What a search projects token by token: keys and values of the source are made once, as ever."""
    searched, plain = ALL if isinstance(part, SelfAttention) else part.of_queries, part.product
    packed = PackedLinear(part.weight[searched], part.bias[searched], dtype)

    def product(rows: slice, x: Tensor) -> Tensor:
        return packed(x) if rows == searched else plain(rows, x)

    return product


def _feed_forward(part: FeedForward, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    linears: list[Any] = [part[0], part[2]]
    up, down = (PackedLinear(linear.weight, linear.bias, dtype) for linear in linears)
    return lambda x: down(up(x).relu_())
