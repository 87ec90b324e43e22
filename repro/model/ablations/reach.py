"""Attention to near positions only, or to segments first. Paper: sections 4 (restricted self-attention) and 3.2.3."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.model.ablations.selection import seen_keys
from repro.model.attention import Mixing
from repro.model.config import Hyper
from repro.model.masks import Sees, hidden_bias
from repro.model.protocol import Plain
from repro.model.transformer import Transformer


class Restricted(Plain, Transformer):  # type: ignore[misc]
    """Self-attention to r positions: the nearest in the encoder, half of them on each side; the last in the decoder.

    r is odd: with an even r the encoder would see one position more than the decoder.
    Cached keys are not in the order of the sentence, so a search reads the prefix anew.
    """

    def __init__(self, hyper: Hyper, vocab_size: int, *, r: int = 5) -> None:
        super().__init__(hyper, vocab_size)
        self.r = r

    def _sees_itself(self, source: Any) -> Sees:
        return self._near(super()._sees_itself(source), distances(source.ids).abs() <= self.r // 2)

    def _sees_past(self, read: Any) -> Sees:
        return self._near(super()._sees_past(read), distances(read.ids) > -self.r)

    def _near(self, bias: Any, near: Tensor) -> Tensor:
        return torch.minimum(bias, hidden_bias(near, self.embedding.weight.dtype))


def distances(ids: Tensor) -> Tensor:
    """j - i of each key j from each query i of sentences [B, L]: [L, L]."""
    places = torch.arange(ids.shape[1], device=ids.device)
    return places - places[:, None]


class TwoLevel(Mixing):
    """Softmax over segments of keys by their mean score, times softmax inside each (Yang et al. 2016).

    The mean of q k^T over the seen keys of a segment is q times their mean key. Segments are cut from the keys as they
    lie in memory. Cached keys are not in the order of the sentence, so in the decoder this is for `Plain` models only.
    """

    def __init__(self, *, n_heads: int, d_k: int, d_v: int, segment: int = 4) -> None:
        super().__init__(n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.segment = segment

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        n_keys = scores_BHQK.shape[-1]
        parts = [F.pad(x, (0, -n_keys % self.segment)) for x in (scores_BHQK, seen_keys(scores_BHQK, bias))]
        scores, seen = (x.unflatten(-1, (-1, self.segment)) for x in parts)
        means = (scores * seen).sum(dim=-1) / seen.sum(dim=-1).clamp(min=1)
        of_segments = (means + hidden_bias(seen.any(dim=-1), scores.dtype)).softmax(dim=-1)
        inside = (scores + hidden_bias(seen, scores.dtype)).softmax(dim=-1)
        return (of_segments.unsqueeze(-1) * inside).flatten(-2)[..., :n_keys]
