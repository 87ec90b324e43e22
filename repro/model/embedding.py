"""Embeddings, the shared softmax matrix, positions, and dropout. Paper: sections 3.4, 3.5 and 5.4."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.config import LEARNED_POSITIONS
from repro.model.special_tokens import PAD


class TiedEmbedding(nn.Module):
    """One matrix for source tokens, target tokens and the softmax, scaled by sqrt(d_model) at look-up.

    Paper: section 3.4. Weights are drawn from N(0, 1 / d_model), so a scaled embedding has unit variance. The padding
    token embeds as the zero vector (its row is used by the softmax only). The softmax has no bias.
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.scale = d_model**0.5
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """int64 [B, L] -> [B, L, d_model]."""
        scale = (ids != PAD).unsqueeze(-1) * self.scale
        return F.embedding(ids, self.weight) * scale.to(self.weight.dtype)

    def logits(self, hidden: Tensor) -> Tensor:
        """[..., d_model] -> [..., vocab_size]."""
        return F.linear(hidden, self.weight)


def sinusoids(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same); float32 [length, d_model].

    Paper: section 3.5, as printed: sines and cosines interleaved; d_model must be even. Computed in float64.
    """
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    angle = position / 10_000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


class SinusoidalPositions(nn.Module):
    """The fixed positional encoding, for any length. Paper: section 3.5."""

    table: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(256, d_model), persistent=False)
        self._longer = self.table  # no buffer, as it grows: DDP copies the first process's buffers to the others

    def forward(self, start: int, stop: int) -> Tensor:
        """The encodings of positions start to stop - 1, [stop - start, d_model]."""
        if stop <= len(self.table):
            return self.table[start:stop]
        with torch.inference_mode(False):  # the table is kept, and training cannot use inference tensors
            if stop > len(self._longer):
                self._longer = sinusoids(2 * stop, self.table.shape[1])
            self._longer = self._longer.to(self.table)
        return self._longer[start:stop]


class LearnedPositions(nn.Module):
    """A learned vector for each position. Paper: section 3.5 and row E of Table 3."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(LEARNED_POSITIONS, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, start: int, stop: int) -> Tensor:
        """The vectors of positions start to stop - 1, [stop - start, d_model]."""
        if stop > len(self.weight):
            raise ValueError(
                f"Learned positions end at {len(self.weight)}, but position {stop} was asked for. "
                "Use sinusoidal positions or shorter sentences."
            )
        return self.weight[start:stop]


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
