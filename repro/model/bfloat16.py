"""Products of bfloat16 matrices on a processor that has no instructions for them.

There PyTorch uses loops of its own, which take ten times as long as float32; for an LSTM it raises an error. The
product of two bfloat16 numbers has at most 16 bits, and float32 keeps 24. So a sum of products computed in float32 and
rounded once equals the result of the instructions, except for the order of summation.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_map_only

_ATEN = torch.ops.aten
PRODUCTS = {
    _ATEN.mm.default, _ATEN.addmm.default, _ATEN.bmm.default, _ATEN.baddbmm.default,
    _ATEN.convolution.default, _ATEN.convolution_backward.default,
    _ATEN.mkldnn_rnn_layer.default, _ATEN.mkldnn_rnn_layer_backward.default,  # an LSTM, its states in float32
}  # fmt: skip


def has_bfloat16() -> bool:
    """Whether oneDNN supports bfloat16 products on this processor."""
    supported: bool = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return supported


@contextmanager
def bfloat16_products(device: torch.device, *, wanted: bool = True) -> Iterator[None]:
    """A context in which bfloat16 products are fast on a CPU, forward and backward, if they are `wanted`.

    Do not use it together with PyTorch's inference mode: `without_gradients` takes the place of that.
    """
    if wanted and device.type == "cpu" and not has_bfloat16():
        with ThroughFloat32():  # type: ignore[no-untyped-call]  # PyTorch's constructor
            yield
    else:
        yield


@contextmanager
def without_gradients() -> Iterator[None]:
    """PyTorch's inference mode, or `no_grad` if products go through float32.

    In inference mode a dispatch mode sees a whole linear map or LSTM, not the products inside.
    """
    goes_through = any(isinstance(mode, ThroughFloat32) for mode in _get_current_dispatch_mode_stack())
    with torch.no_grad() if goes_through else torch.inference_mode():
        yield


class ThroughFloat32(TorchDispatchMode):
    """Converts the inputs of bfloat16 products to float32 and rounds the results; changes nothing else."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is _ATEN.mm.out and _is_narrow(args[0]):
            return kwargs["out"].copy_(torch.mm(*(matrix.float() for matrix in args)))
        if func in PRODUCTS and _is_narrow(args[0]):
            made = func(*(_widened(value) for value in args), **kwargs)
            return tree_map_only(Tensor, _rounded, made)
        return func(*args, **kwargs)


def _is_narrow(value: Tensor) -> bool:
    return value.dtype is torch.bfloat16 and value.device.type == "cpu"


def _widened(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype is torch.bfloat16 else value


def _rounded(made: Tensor) -> Tensor:
    return made.bfloat16() if made.dtype is torch.float32 else made  # an LSTM has a workspace of bytes
