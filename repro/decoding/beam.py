"""Beam search: width 4, length penalty 0.6, at most input + 50 tokens, early stop. Paper: section 6.1.

The search knows no model. It is given a step function, which reads the last token of every hypothesis and
returns the likeliest next ones; what that function remembers is passed along as a `State`.

    N sentences to translate    B sentences not yet done    W hypotheses of each    R = B W rows of the model
    K candidates of a row, and then of a sentence    T tokens so far, the end symbol counted
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from repro.decoding.search import Search
from repro.model.special_tokens import EOS, PAD


class State(Protocol):
    """What the step function remembers. Rows are grouped by sentence, equally many for each."""

    def reorder(self, rows: Tensor) -> Self:
        """Keep these rows (int64 [R']), in this order; a row may occur several times or not at all."""
        ...

    def keep(self, sentences: Tensor) -> Self:
        """Keep these sentences (int64 [B'], on the host) with all their rows, in this order; the others are done.

        Most sentences keep their place: at most as many move as are done.
        """
        ...


S = TypeVar("S", bound=State)
# (last tokens int64 [R], state, K) -> (log-probabilities float [R, K], tokens int64 [R, K], state): for each row the K
# likeliest next tokens except padding, likeliest first, the lower id first among equals; -inf if there are fewer than K
Step = Callable[[Tensor, S, int], tuple[Tensor, Tensor, S]]


@dataclass(frozen=True)
class Hypothesis:
    """A translation and its score."""

    ids: tuple[int, ...]  # without the end symbol
    log_prob: float  # of all tokens, the end symbol included; -inf: nothing was possible
    score: float  # log_prob divided by the length penalty
    finished: bool  # False: cut at the limit, as no hypothesis of its sentence had ended by then


def beam_search(step: Step[S], state: S, limits: Tensor, search: Search) -> list[Hypothesis]:
    """The best hypothesis found for each sentence, in order. `state` starts with one row per sentence.

    `limits`, int64 [N], is the maximal length of each translation in tokens, the end symbol counted. Ties go to
    the earlier end, then the better hypothesis, then the likelier token, so other sentences have no influence.
    """
    if len(limits) == 0:
        return []
    shortest, longest = (int(limit) for limit in limits.aminmax())
    if shortest < 1:
        raise ValueError(f"every sentence needs room for its end symbol: limits start at 1, got {shortest}.")

    width, n_candidates = search.beam, _n_candidates(search.beam)
    best = _Best.none(limits, longest)
    live = _Live.start(limits)
    last_R = limits.new_full((len(limits),), PAD)
    for length in range(1, longest + 1):
        n_rows = live.log_prob.shape[1]  # for each sentence: 1 at first, then W

        # 1. Extend every live hypothesis by its likeliest tokens. The best candidates of a sentence are among them.
        more_RK, token_RK, state = step(last_R, state, n_candidates)
        total_BWK = live.log_prob[:, :, None] + more_RK.reshape(*live.log_prob.shape, n_candidates)

        # 2. The best candidates of each sentence, best first.
        value_BK, place_BK = _best_first(total_BWK.flatten(1), n_candidates)
        parent_BK, token_BK = place_BK // n_candidates, token_RK.reshape(len(place_BK), -1).gather(1, place_BK)
        ids_BKT = torch.cat([_pick(live.ids, parent_BK), token_BK[:, :, None]], dim=2)

        # 3. Candidates that end compete for the answer. They are equally long, so the likeliest scores best.
        ends_BK = token_BK == EOS
        ended_B1, choice_B1 = _best_first(value_BK.masked_fill(~ends_BK, -math.inf), 1)
        best.offer(live.sentence, _pick(ids_BKT, choice_B1)[:, 0], ended_B1[:, 0], search, finished=True)

        # 4. The best W of the others stay live.
        log_prob_BW, choice_BW = _best_first(value_BK.masked_fill(ends_BK, -math.inf), width)
        ids_BWT, parent_BW = _pick(ids_BKT, choice_BW), parent_BK.gather(1, choice_BW)

        # 5. At its limit a sentence is done; it takes a live hypothesis if none has ended. It is done earlier if no
        #    live hypothesis can win. Log-probabilities only fall and the penalty only grows, so their best possible
        #    score is that of the likeliest one if its remaining tokens up to the limit had probability one.
        at_limit_B = live.limit == length
        cut_B = at_limit_B & ~best.finished[live.sentence]
        cut_log_prob_B = log_prob_BW[:, 0].masked_fill(~cut_B, -math.inf)
        best.offer(live.sentence, ids_BWT[:, 0], cut_log_prob_B, search, finished=False)
        hope_B = log_prob_BW[:, 0] / search.penalty(live.limit.to(log_prob_BW.dtype))
        done_B = at_limit_B | (best.score[live.sentence] >= hope_B)

        # 6. Drop the sentences that are done, then reorder the model's rows to match the live hypotheses.
        done_B, broken_B = torch.stack([done_B, value_BK[:, 0].isnan()]).cpu()  # the only wait for the device
        _refuse_nan(broken_B, length)
        if done_B.all():
            break
        stay = _stay(done_B)
        state = state.keep(stay) if len(stay) < len(done_B) else state
        going = _sent(stay, limits.device)
        live = _Live(live.sentence[going], live.limit[going], ids_BWT[going], log_prob_BW[going])
        first_row_B1 = n_rows * torch.arange(len(going), device=limits.device)[:, None]
        state = state.reorder((first_row_B1 + parent_BW[going]).flatten())
        last_R = live.ids[:, :, -1].flatten()
    return best.hypotheses()


def _n_candidates(width: int) -> int:
    """The number of candidates: 2W as in the first public code, since up to W of them end.

    Width 1 is greedy search with one candidate: an end symbol in second place does not count.
    """
    return 2 * width if width > 1 else 1


def _refuse_nan(broken_B: Tensor, length: int) -> None:
    if broken_B.any():
        raise ValueError(
            f"expected log-probabilities, got NaN from the step function at token {length}. "
            "The model has probably diverged: decode an earlier checkpoint."
        )


@dataclass
class _Live:
    """The hypotheses that have not ended, best first; an empty place has log-probability -inf."""

    sentence: Tensor  # int64 [B]  index among the N
    limit: Tensor  # int64 [B]
    ids: Tensor  # int64 [B, W, T]
    log_prob: Tensor  # float [B, W]

    @classmethod
    def start(cls, limits: Tensor) -> Self:
        """One empty hypothesis for each sentence."""
        n = len(limits)
        empty, certain = limits.new_zeros(n, 1, 0), torch.zeros(n, 1, device=limits.device)
        return cls(torch.arange(n, device=limits.device), limits, empty, certain)


@dataclass
class _Best:
    """The best hypothesis of each of the N sentences so far. Precision follows the step function's."""

    ids: Tensor  # int64 [N, longest limit]
    length: Tensor  # int64 [N]  tokens in use, the end symbol counted; 0: none so far
    log_prob: Tensor  # float [N]
    score: Tensor  # float [N]
    finished: Tensor  # bool [N]

    @classmethod
    def none(cls, limits: Tensor, longest: int) -> Self:
        nothing = torch.full(limits.shape, -math.inf, device=limits.device)
        ids, length = limits.new_full((len(limits), longest), PAD), torch.zeros_like(limits)
        return cls(ids, length, nothing, nothing, torch.zeros_like(limits, dtype=torch.bool))

    def offer(self, sentence: Tensor, ids_BT: Tensor, log_prob_B: Tensor, search: Search, *, finished: bool) -> None:
        """Offer each of these sentences a hypothesis; it replaces the best one so far if it scores higher."""
        length = ids_BT.shape[1]
        score_B = log_prob_B / search.penalty(torch.full_like(log_prob_B, length))
        better_B = score_B > self.score[sentence]

        def put(held: Tensor, offered: Tensor) -> Tensor:
            better = better_B.view(-1, *[1] * (held.dim() - 1))
            return held.to(offered.dtype).index_copy(0, sentence, offered.where(better, held[sentence]))

        self.ids[:, :length] = put(self.ids[:, :length], ids_BT)
        self.length = put(self.length, torch.full_like(sentence, length))
        self.log_prob = put(self.log_prob, log_prob_B)
        self.score = put(self.score, score_B)
        self.finished = put(self.finished, torch.full_like(better_B, finished))

    def hypotheses(self) -> list[Hypothesis]:
        """The best hypotheses of all sentences, copied to the host."""
        columns = (self.ids, self.length, self.log_prob, self.score, self.finished)
        return [
            Hypothesis(tuple(ids[: length - finished]), log_prob, score, finished)
            for ids, length, log_prob, score, finished in zip(*(c.tolist() for c in columns), strict=True)
        ]


def _best_first(x_BN: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row and their indices, largest first; among equals the lower index first."""
    value_BN, place_BN = x_BN.sort(dim=1, descending=True, stable=True)
    return value_BN[:, :k], place_BN[:, :k]


def _stay(done_B: Tensor) -> Tensor:
    """The sentences that are not done, int64 [B'] on the host; the last ones take the places of those that are done."""
    going = (~done_B).nonzero()[:, 0]
    n = len(going)
    place = torch.arange(n)
    place[done_B[:n]] = going[going >= n]
    return place


def _sent(x: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor to the device without waiting for the device."""
    return x.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else x.to(device)


def _pick(x_BNT: Tensor, index_BK: Tensor) -> Tensor:
    """The entries of each sentence at these indices, [B, K, T]."""
    return x_BNT.gather(1, index_BK[:, :, None].expand(-1, -1, x_BNT.shape[2]))
