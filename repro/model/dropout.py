"""Dropout, of outputs of sub-layers and of sums of embeddings and positions. Paper: section 5.4."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each number with probability `p`, scale the rest. Paper: section 5.4 (residual dropout).

    On a CPU, PyTorch draws the random numbers one by one on one thread. Here 64 random bits give four 16-bit
    numbers, which are compared with a threshold. That is more than twice as fast, and rounds p to a multiple of 1/65536
    (deviation: p = 0.1 becomes 0.100006; the scale uses the rounded p, so the mean is kept).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.dropped = round(p * 2**16)  # of 65,536 equally likely values
        if not 0 <= self.dropped < 2**16:
            raise ValueError(f"dropout: expected a probability below {1 - 2**-17:.6f}, got {p}: nothing would be kept.")

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.dropped == 0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        numbers = bits.view(torch.int16)[: x.numel()].view(x.shape).to(torch.float32)
        kept = numbers.ge_(self.dropped - 2**15)  # 1 or 0 as floats, since multiplying by booleans is slow
        return x * kept.mul_(2**16 / (2**16 - self.dropped)).to(x.dtype)
