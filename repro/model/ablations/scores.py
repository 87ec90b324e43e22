"""Scores other than q k^T / sqrt(d_k) of a key for a query. Paper: section 3.2.1 compares two.

Shapes: B batch, H heads, Q queries, K keys, E = d_k.
"""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from repro.model.attention import Mixing, scaled_scores

KEPT = 2**21  # up to this size the hidden layer of additive scores is kept for the backward pass
AT_ONCE = 2  # heads whose hidden layer is computed together if it is not kept


class UnscaledDot(Mixing):
    """q k^T, unscaled: its standard deviation grows with sqrt(d_k). Paper: section 3.2.1, footnote 4."""

    def scores(self, q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
        return q_BHQE @ k_BHKE.transpose(-2, -1)


class AdditiveScores(Mixing, nn.Module):
    """v^T tanh(q + k), v in R^d_k learned for each head: a network of one hidden layer (Bahdanau et al. 2015)."""

    def __init__(self, *, n_heads: int, d_k: int, d_v: int) -> None:
        super().__init__(n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.v = nn.Parameter(torch.empty(n_heads, d_k, 1))
        for h in range(n_heads):
            nn.init.xavier_uniform_(self.v[h])

    def scores(self, q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
        b, h, n_queries, e = q_BHQE.shape
        if b * h * n_queries * k_BHKE.shape[2] * e <= KEPT:
            return _additive(q_BHQE, k_BHKE, self.v)
        # else compute it for a few heads at a time, and again in the backward pass
        groups = zip(q_BHQE.split(AT_ONCE, 1), k_BHKE.split(AT_ONCE, 1), self.v.split(AT_ONCE), strict=True)
        made = [checkpoint(_additive, *heads, use_reentrant=False, preserve_rng_state=False) for heads in groups]
        return torch.cat(made, dim=1)


def _additive(q_BHQE: Tensor, k_BHKE: Tensor, v_HE1: Tensor) -> Tensor:
    hidden_BHQKE = (q_BHQE.unsqueeze(-2) + k_BHKE.unsqueeze(-3)).tanh_()
    return (hidden_BHQKE.flatten(2, 3) @ v_HE1).view(hidden_BHQKE.shape[:-1])


class BilinearScores(Mixing, nn.Module):
    """q^T W k / sqrt(d_k), W learned for each head: no more expressive than W^Q alone, as q^T W = (W^T q)^T."""

    def __init__(self, *, n_heads: int, d_k: int, d_v: int) -> None:
        super().__init__(n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.between = nn.Parameter(torch.empty(n_heads, d_k, d_k))
        for h in range(n_heads):
            nn.init.xavier_uniform_(self.between[h])

    def scores(self, q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
        return scaled_scores(q_BHQE @ self.between, k_BHKE)


class GaussianKernel(Mixing):
    """-|q - k|^2 / 2 b^2: with these scores attention is the Nadaraya-Watson smoother (1964) of bandwidth b."""

    def __init__(self, *, n_heads: int, d_k: int, d_v: int, bandwidth: float = 1.0) -> None:
        super().__init__(n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.bandwidth = bandwidth

    def scores(self, q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
        squares = (q_BHQE.unsqueeze(-2) - k_BHKE.unsqueeze(-3)).square().sum(dim=-1)
        return squares / (-2 * self.bandwidth**2)
