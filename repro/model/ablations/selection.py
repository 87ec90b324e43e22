"""From scores to weights in other ways than softmax: by one key alone, or by each key for itself. Paper: section 3.2.1.

A hidden key has weight 0 under each of them. Shapes: B batch, H heads, Q queries, K keys.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from repro.model.attention import Mixing, softmax_of_seen


def seen_keys(scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
    """Which keys each query may see, bool [B, H, Q, K]: those that the bias leaves as they are."""
    if bias is None:
        return torch.ones_like(scores_BHQK, dtype=torch.bool)
    return (bias == 0).expand_as(scores_BHQK)


def one_hot_of_best(scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
    """1 for the seen key of the largest score, the first of equals; 0 for all others."""
    best = (scores_BHQK if bias is None else scores_BHQK + bias).argmax(dim=-1, keepdim=True)
    return torch.zeros_like(scores_BHQK).scatter(-1, best, 1.0)


class Hard(Mixing):
    """The best key alone. No gradient gets to the scores: W^Q and W^K stay as they were drawn."""

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        return one_hot_of_best(scores_BHQK, bias)


class StraightThrough(Mixing):
    """The best key alone, with the gradient that softmax has (Bengio et al. 2013)."""

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        soft = softmax_of_seen(scores_BHQK, bias)
        return one_hot_of_best(scores_BHQK, bias) + (soft - soft.detach())


class Sampled(StraightThrough, nn.Module):
    """One key, drawn with the probabilities of softmax while training, and the best one after.

    Drawn by Gumbel-max: the largest p / E, each E exponential, is the largest score + Gumbel noise. The mean of what
    is drawn is soft attention, and so is its gradient. It comes from the generator of the update.
    """

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        if not self.training:
            return one_hot_of_best(scores_BHQK, bias)
        soft = softmax_of_seen(scores_BHQK, bias)
        waited = -torch.rand_like(soft, dtype=torch.float32).log()
        return one_hot_of_best(soft / waited, None).to(soft.dtype) + (soft - soft.detach())


class EachByItself(Mixing, ABC):
    """Weights f(s, n) that know of the other keys only how many are seen, n: they need not sum to one."""

    @abstractmethod
    def weight(self, scores_BHQK: Tensor, n_seen: Tensor) -> Tensor:
        """f; n_seen [B, H, Q, 1] is at least 1."""

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        seen = seen_keys(scores_BHQK, bias)
        n_seen = seen.sum(dim=-1, keepdim=True).clamp(min=1).to(scores_BHQK.dtype)
        return self.weight(scores_BHQK, n_seen).masked_fill(~seen, 0.0)


class SigmoidWeights(EachByItself):
    """sigmoid(s - ln n): about 1 / n where s = 0, as softmax has it (Ramapuram et al. 2024)."""

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
