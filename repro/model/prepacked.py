"""Products with constant weights, whose memory layout is prepared once for the processor, for use in a search.

A matrix library rearranges a matrix in memory for every product. With few rows, as in a search, that is a good part of
the work. oneDNN accepts matrices rearranged beforehand; PyTorch's compiler uses this for frozen weights.

This is not in the paper. In the context `prepacked`, the methods that multiply by weights are replaced by others that
give the same results.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from repro.model.attention import ALL, MultiHeadAttention, SelfAttention
from repro.model.bfloat16 import has_bfloat16
from repro.model.layers import FeedForward

Cover = tuple[nn.Module, str, Callable[..., Tensor]]  # (module, its method, the function that replaces the method)


class PackedLinear:
    """x W^T + b, with a W whose layout was prepared once."""

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
    """Whether this processor and this PyTorch support it for products in `dtype`."""
    known = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    if weight.device.type != "cpu" or not (torch.backends.mkldnn.is_available() and known):
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and has_bfloat16())


@contextmanager
def prepacked(decoder: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """A context in which the weights of `decoder` must not change and are laid out for a search, in `dtype`.

    It has no effect if the processor does not support it, or on parts that override the multiplication.
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
    """Whether the part has this method from `kind`, not overridden by a subclass."""
    return getattr(type(part), method) is getattr(kind, method)


def _product(part: MultiHeadAttention, dtype: torch.dtype) -> Callable[[slice, Tensor], Tensor]:
    """A packed `product` for what a search projects token by token; keys and values of the source are made once."""
    searched, plain = ALL if isinstance(part, SelfAttention) else part.of_queries, part.product
    packed = PackedLinear(part.weight[searched], part.bias[searched], dtype)

    def product(rows: slice, x: Tensor) -> Tensor:
        return packed(x) if rows == searched else plain(rows, x)

    return product


def _feed_forward(part: FeedForward, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    linears: list[Any] = [part[0], part[2]]
    up, down = (PackedLinear(linear.weight, linear.bias, dtype) for linear in linears)
    return lambda x: down(up(x).relu_())
