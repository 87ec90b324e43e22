"""Products with weights that stay as they are: laid out once for this processor, as a search multiplies by them.

A matrix library lays out a matrix anew for every product. For few rows, as in a search, that is a good part of the
work. oneDNN takes matrices that were laid out before; PyTorch's own compiler uses it so when weights are frozen.
"""

import torch
from torch import Tensor


class Product:
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


def can_lay_out(weight: Tensor) -> bool:
    """Whether this processor and this PyTorch know how."""
    kinds = (torch.float32, torch.bfloat16)
    known = hasattr(torch.ops.mkldnn, "_reorder_linear_weight") and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return weight.device.type == "cpu" and weight.dtype in kinds and torch.backends.mkldnn.is_available() and known
