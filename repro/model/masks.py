"""Who may see whom, made from ids at the door of the model: layers receive it ready. Paper: sections 3.1 and 3.2.3.

A mask is a bias on the scores: 0 where a key may be attended to, very negative where not. `Padded` makes those of
sentences of which the shorter end in padding; `repro/model/ragged.py` offers the same of sentences without padding.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from repro.model.special_tokens import EOS, PAD


def hidden_bias(may_see: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask (True = may be attended to) into a bias on the scores: 0 or very negative.

    Half of the smallest finite number, not -infinity: a query that may see nothing then gets uniform
    weights instead of NaN, forward and backward, and adding a score cannot overflow.
    """
    zero = torch.zeros((), dtype=dtype, device=may_see.device)
    return torch.where(may_see, zero, torch.finfo(dtype).min / 2)


def padding_bias(ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Hide the padding of ids [B, L] from every query: [B, 1, 1, L]."""
    return hidden_bias(ids != PAD, dtype)[:, None, None, :]


def read_so_far(decoder_in: Tensor) -> Tensor:
    """Which places of a target that was shifted right belong to its sentence, bool [B, T].

    The padding that stands for a beginning, and tokens; not the end of a shorter sentence, after which nothing comes.
    """
    first = torch.arange(decoder_in.shape[1], device=decoder_in.device) == 0
    return (decoder_in > EOS) | first


@dataclass(frozen=True)
class Padded:
    """Sentences of one length, padding at their ends."""

    ids: Tensor  # int64 [B, L]

    @property
    def longest(self) -> int:
        """Tokens of a sentence, at most."""
        return self.ids.shape[1]

    def encodings(self, positions: nn.Module) -> Tensor:
        """What `positions` gives for each token: [L, D], for all sentences alike."""
        encodings: Tensor = positions(0, self.longest)
        return encodings

    def seen_from(self, other: "Padded", dtype: torch.dtype) -> Tensor:
        """All tokens of a sentence, as those of the same sentence in `other` see them."""
        return padding_bias(self.ids, dtype)

    def causal(self, dtype: torch.dtype) -> Tensor:
        """Each position sees those before it and itself, [L, L]; padding is at the end, so nothing else is hidden."""
        causal = torch.ones(self.longest, self.longest, dtype=torch.bool, device=self.ids.device).tril()
        return hidden_bias(causal, dtype)
