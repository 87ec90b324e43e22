"""Which position may see which: masks made from the ids and passed to the layers. Paper: sections 3.1 and 3.2.3.

A mask is a bias on the scores: 0 where a key may be attended to, very negative where not. `Padded` makes the masks of
padded sentences; `repro/model/ragged.py` has the same interface for sentences without padding.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from repro.model.special_tokens import EOS, PAD


def hidden_bias(may_see: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask (True = may be attended to) into a bias on the scores: 0 or very negative.

    Very negative is half of the smallest finite number, not -infinity. So a query that may see nothing gets
    uniform weights instead of NaN, forward and backward, and adding a score cannot overflow.
    """
    zero = torch.zeros((), dtype=dtype, device=may_see.device)
    return torch.where(may_see, zero, torch.finfo(dtype).min / 2)


def padding_bias(ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Hide the padding of ids [B, L] from every query: [B, 1, 1, L]."""
    return hidden_bias(ids != PAD, dtype)[:, None, None, :]


def read_so_far(decoder_in: Tensor) -> Tensor:
    """Which positions of a target that was shifted right belong to its sentence, bool [B, T].

    These are the padding at position 0 and the tokens, but not the EOS of a shorter sentence or the padding after it.
    """
    first = torch.arange(decoder_in.shape[1], device=decoder_in.device) == 0
    return (decoder_in > EOS) | first


@dataclass(frozen=True)
class Padded:
    """Sentences padded at their ends to one length."""

    ids: Tensor  # int64 [B, L]

    @property
    def longest(self) -> int:
        """The length of the longest sentence in tokens."""
        return self.ids.shape[1]

    def encodings(self, positions: nn.Module) -> Tensor:
        """The positional encodings of all tokens, [L, D], the same for all sentences."""
        encodings: Tensor = positions(0, self.longest)
        return encodings

    def seen_from(self, other: "Padded", dtype: torch.dtype) -> Tensor:
        """The mask with which each token of `other` sees all tokens of its own sentence here, [B, 1, 1, L]."""
        return padding_bias(self.ids, dtype)

    def causal(self, dtype: torch.dtype) -> Tensor:
        """The mask with which each position sees itself and those before it, [L, L]; padding, being last, is hidden."""
        causal = torch.ones(self.longest, self.longest, dtype=torch.bool, device=self.ids.device).tril()
        return hidden_bias(causal, dtype)
