"""From scores to weights without softmax: a single key, or each key independently. Paper: section 3.2.1.

A hidden key always has weight 0. Shapes: B batch, H heads, Q queries, K keys.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from repro.model.attention import Mixing, softmax_of_seen


def seen_keys(scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
    """Which keys each query may see, bool [B, H, Q, K]: those whose bias is 0."""
    if bias is None:
        return torch.ones_like(scores_BHQK, dtype=torch.bool)
    return (bias == 0).expand_as(scores_BHQK)


def one_hot_of_best(scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
    """1 for the seen key with the largest score (the first among equals), 0 for all others."""
    best = (scores_BHQK if bias is None else scores_BHQK + bias).argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores_BHQK).scatter(-1, best, 1.0)


class Hard(Mixing):
    """Only the best key. No gradient reaches the scores, so W^Q and W^K keep their initial values."""

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        return one_hot_of_best(scores_BHQK, bias)


class StraightThrough(Mixing):
    """Only the best key, with the gradient of softmax (Bengio et al. 2013)."""

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        soft = softmax_of_seen(scores_BHQK, bias)
        return one_hot_of_best(scores_BHQK, bias) + (soft - soft.detach())


class Sampled(StraightThrough, nn.Module):
    """One key: drawn with the probabilities of softmax in training, the best one in evaluation.

    It is drawn by Gumbel-max: the largest p / E, with E exponential, is the largest score + Gumbel noise. The mean over
    draws is soft attention, and the gradient is that of soft attention. The update's generator is used.
    """

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        if not self.training:
            return one_hot_of_best(scores_BHQK, bias)
        soft = softmax_of_seen(scores_BHQK, bias)
        waited = -torch.rand_like(soft, dtype=torch.float32).log()
        return one_hot_of_best(soft / waited, None).to(soft.dtype) + (soft - soft.detach())


class EachByItself(Mixing, ABC):
    """Weights f(s, n) of a key's own score s and the number n of seen keys; they need not sum to one."""

    @abstractmethod
    def weight(self, scores_BHQK: Tensor, n_seen: Tensor) -> Tensor:
        """f; n_seen [B, H, Q, 1] is at least 1."""

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        seen = seen_keys(scores_BHQK, bias)
        n_seen = seen.sum(dim=-1, keepdim=True).clamp(min=1).to(scores_BHQK.dtype)
        return self.weight(scores_BHQK, n_seen).masked_fill(~seen, 0.0)


class SigmoidWeights(EachByItself):
    """sigmoid(s - ln n): about 1 / n at s = 0, as with softmax (Ramapuram et al. 2024)."""

    def weight(self, scores_BHQK: Tensor, n_seen: Tensor) -> Tensor:
        return (scores_BHQK - n_seen.log()).sigmoid()


class ReluWeights(EachByItself):
    """max(0, s) / n (Wortsman et al. 2023)."""

    def weight(self, scores_BHQK: Tensor, n_seen: Tensor) -> Tensor:
        return scores_BHQK.relu() / n_seen


class LinearWeights(EachByItself):
    """s / n: no selection at all, and weights of either sign."""

    def weight(self, scores_BHQK: Tensor, n_seen: Tensor) -> Tensor:
        return scores_BHQK / n_seen
