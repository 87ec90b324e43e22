"""Embeddings, the shared softmax matrix and positions. Paper: sections 3.4 and 3.5."""

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
