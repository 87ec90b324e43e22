"""Relative positions: keys and values depend on their distance from the query (Shaw et al. 2018)."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from repro.model.ablations.codes import NoPositions
from repro.model.attention import Mixing, ScaledDotProduct, scaled_scores
from repro.model.config import Hyper
from repro.model.protocol import Plain
from repro.model.transformer import Transformer


class Relative(Mixing, nn.Module):
    """Keys k_j + a^K_c and values v_j + a^V_c, c = j - i clipped to -clip .. clip; a is the same for all heads."""

    def __init__(self, *, n_heads: int, d_k: int, d_v: int, clip: int = 8) -> None:
        super().__init__(n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.clip = clip
        self.keys = nn.Parameter(torch.empty(2 * clip + 1, d_k))
        self.values = nn.Parameter(torch.empty(2 * clip + 1, d_v))
        nn.init.xavier_uniform_(self.keys)
        nn.init.xavier_uniform_(self.values)

    def scores(self, q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
        a_QKE = self.keys[self._distances(q_BHQE, k_BHKE)]
        return scaled_scores(q_BHQE, k_BHKE) + torch.einsum("bhqe,qke->bhqk", q_BHQE * self.d_k**-0.5, a_QKE)

    def __call__(
        self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias: Tensor | None, dropout: nn.Module | None = None, /
    ) -> Tensor:
        weights_BHQK = self.weights(q_BHQE, k_BHKE, bias)
        weights_BHQK = weights_BHQK if dropout is None else dropout(weights_BHQK)
        a_QKE = self.values[self._distances(q_BHQE, k_BHKE)]
        return weights_BHQK @ v_BHKE + torch.einsum("bhqk,qke->bhqe", weights_BHQK, a_QKE)

    def _distances(self, q: Tensor, k: Tensor) -> Tensor:
        """Row of the tables for each query and key, int64 [Q, K]."""
        assert q.shape[-2] == k.shape[-2], "distances are of a sequence to itself, in its order"
        places = torch.arange(k.shape[-2], device=k.device)
        return (places - places[:, None]).clamp(-self.clip, self.clip) + self.clip


class RelativePositions(Plain, Transformer):  # type: ignore[misc]
    """Relative positions in self-attention; absolute `positions` only if they are given.

    Cached keys are not in the order of the sentence, so a search reads the prefix anew.
    """

    def __init__(
        self,
        hyper: Hyper,
        vocab_size: int,
        *,
        clip: int = 8,
        positions: Callable[[int], nn.Module] = NoPositions,
    ) -> None:
        mix = partial(Relative, clip=clip)
        super().__init__(hyper, vocab_size, mix=mix, mix_source=ScaledDotProduct, positions=positions)
