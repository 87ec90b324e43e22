"""Products with weights that stay as they are: laid out once for this processor, as a search multiplies by them.

A matrix library lays out a matrix anew for every product. For few rows, as in a search, that is a good part of the
work. oneDNN takes matrices that were laid out before; PyTorch's own compiler uses it so when weights are frozen.
"""

import torch
from torch import Tensor


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


def has_bfloat16() -> bool:
    """Whether oneDNN has such products here: PyTorch has its own, slower ones on every processor."""
    supported: bool = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return supported
