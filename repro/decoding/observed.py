"""The search of one sentence, observed from outside, as a tree of the hypotheses it weighed. Paper: section 6.1.

`beam_search` is given a step that records its answers and a state that records which rows live on. The tree is made
from these records alone. It is then compared with what the search did at each token and with its result; a difference
raises an error.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from repro.decoding.beam import Hypothesis, Step, beam_search
from repro.decoding.search import Search
from repro.model.special_tokens import EOS


class Fate(IntEnum):
    """What became of a candidate."""

    DROPPED = 0  # among the likeliest, but the beam was full
    LIVED = 1  # extended by the next token
    ENDED = 2  # with the end symbol; competes for the answer
    CUT = 3  # the likeliest at the limit, when none had ended


class Node(NamedTuple):
    """A candidate: a token after the hypothesis of its parent."""

    parent: int  # the parent's place in `nodes`; -1: nothing was written before
    token: int
    log_prob: float  # of all tokens so far
    score: float | None  # log_prob over the length penalty, if it competes for the answer
    fate: Fate


class Weighed(NamedTuple):
    """What a search compares after each token."""

    penalty: float  # of this length
    hope: float | None  # score of the likeliest live hypothesis if its tokens up to the limit had probability one
    best: float | None  # the best score so far


@dataclass(frozen=True)
class SearchTree:
    """All that a search weighed for one sentence."""

    nodes: list[Node]  # by length, likeliest first
    steps: list[Weighed]  # one for each length
    best: int | None  # the node that the translation ends in; None: nothing was possible
    limit: int  # tokens, the end symbol counted


@dataclass
class _Seen:
    """One step of the search, B = 1."""

    last: Tensor  # int64 [W] last tokens of the live hypotheses
    more: Tensor  # float [W, K] log-probabilities of their likeliest next tokens
    token: Tensor  # int64 [W, K]
    parents: Tensor | None = None  # int64 [W] rows that live on; None: the search was over


@dataclass(frozen=True)
class _Watched:
    """A state, and the steps that were seen."""

    inner: Any
    seen: list[_Seen]

    def reorder(self, rows: Tensor) -> Self:
        self.seen[-1].parents = rows
        return type(self)(self.inner.reorder(rows), self.seen)

    def keep(self, sentences: Tensor) -> Self:
        return type(self)(self.inner.keep(sentences), self.seen)


def observe(step: Step[Any], state: Any, limit: int, search: Search) -> tuple[Hypothesis, SearchTree]:
    """What `beam_search` finds for one sentence, and its search tree; the arguments are those of `beam_search`.

    Raises RuntimeError if the tree does not match the search: then one of the two was changed without the other.
    """
    seen: list[_Seen] = []

    def watched(last: Tensor, state: _Watched, k: int) -> tuple[Tensor, Tensor, _Watched]:
        more, token, inner = step(last, state.inner, k)
        seen.append(_Seen(last, more, token))
        return more, token, _Watched(inner, seen)

    [found] = beam_search(watched, _Watched(state, seen), torch.tensor([limit]), search)
    tree = _tree(seen, limit, search)
    _refuse_other(tree, found)
    return found, tree


def _tree(seen: list[_Seen], limit: int, search: Search) -> SearchTree:
    """The candidates of each length, as the search chose them: steps 2 to 5 of `beam_search` for one sentence."""
    tree = SearchTree([], [], None, limit)
    live, log_prob_W = [-1], seen[0].more.new_zeros(1)  # the node of each row, and its log-probability
    best, place = -math.inf, None
    for length, one in enumerate(seen, 1):
        k = one.more.shape[1]
        value_K, place_K = (log_prob_W[:, None] + one.more).flatten().sort(descending=True, stable=True)
        value_K, place_K = value_K[:k], place_K[:k]
        penalty = search.penalty(torch.full_like(value_K[:1], length))
        score_K = (value_K / penalty).tolist()
        rows, tokens = (place_K // k).tolist(), one.token.flatten()[place_K].tolist()
        lived: list[tuple[int, int, int]] = []  # node, row of its parent, rank among the candidates
        for rank, (value, row, token) in enumerate(zip(value_K.tolist(), rows, tokens, strict=True)):
            if value == -math.inf:
                continue
            fate = Fate.ENDED if token == EOS else Fate.LIVED if len(lived) < search.beam else Fate.DROPPED
            if fate is Fate.ENDED and score_K[rank] > best:
                best, place = score_K[rank], len(tree.nodes)
            elif fate is Fate.LIVED:
                lived.append((len(tree.nodes), row, rank))
            tree.nodes.append(Node(live[row], token, value, score_K[rank] if fate is Fate.ENDED else None, fate))
        if length == limit and place is None and lived:
            place, _, rank = lived[0]
            best = score_K[rank]
            tree.nodes[place] = tree.nodes[place]._replace(fate=Fate.CUT, score=best)
        hope = float(value_K[lived[0][2]] / search.penalty(torch.tensor(limit).to(value_K.dtype))) if lived else None
        tree.steps.append(Weighed(float(penalty), hope, None if best == -math.inf else best))
        if one.parents is None:
            break
        _refuse_others(one.parents, seen[length].last, lived, [tokens[rank] for *_, rank in lived], length)
        ranks = [rank for *_, rank in lived]
        log_prob_W = torch.cat([value_K[ranks], value_K.new_full((search.beam - len(ranks),), -math.inf)])
        live = [node for node, *_ in lived] + [-1] * (search.beam - len(ranks))
    return SearchTree(tree.nodes, tree.steps, place, limit)


def _refuse_others(
    parents: Tensor, last: Tensor, lived: list[tuple[int, int, int]], tokens: list[int], length: int
) -> None:
    """Raise RuntimeError if the search went on with other hypotheses than those that lived in the tree."""
    n = len(lived)
    went_on = [*zip(parents[:n].tolist(), last[:n].tolist(), strict=False)]
    if went_on != (expected := [*zip((row for _, row, _ in lived), tokens, strict=True)]):
        raise RuntimeError(f"token {length}: expected the search to go on with (row, token) {expected}, got {went_on}.")


def _refuse_other(tree: SearchTree, found: Hypothesis) -> None:
    """Raise RuntimeError if the tree leads to another translation than the search found."""
    if tree.best is None:
        if found.log_prob != -math.inf:
            raise RuntimeError(f"expected a tree that leads to {found}, got one that leads nowhere.")
        return
    end = tree.nodes[tree.best]
    ids = words_to(tree, tree.best)
    told = Hypothesis(tuple(ids), end.log_prob, end.score or 0.0, end.fate is Fate.ENDED)
    if told != found:
        raise RuntimeError(f"expected a tree that leads to {found}, got {told}.")


def words_to(tree: SearchTree, place: int) -> list[int]:
    """The tokens of the hypothesis that ends in this node, without its end symbol."""
    ids: list[int] = []
    while place >= 0:
        node = tree.nodes[place]
        ids.append(node.token)
        place = node.parent
    return [id for id in reversed(ids) if id != EOS]
