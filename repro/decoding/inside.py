"""What a trained model does inside: where each head looks on a few sentences, and how the search found the translation.

Each sentence is translated by the run's search, observed from outside as a tree of the hypotheses it weighed, in the
type of the weights. A run that translates in bfloat16 or by CTranslate2 may have another translation. Then the model
reads source and translation as in training, and the weights of every head are kept: by word, by entropy, one byte each.
Paper: figures 3 to 5, section 6.1.

    L layers    H heads    Q queries    K keys
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.data.tokenizer import Tokenizer
from repro.decoding.beam import Hypothesis, Step, beam_search
from repro.decoding.search import Search
from repro.decoding.translate import stepping
from repro.model.protocol import TranslationSystem
from repro.model.special_tokens import EOS, PAD, SPECIAL

KINDS = {  # kinds of attention: the names of their modules in a Transformer, to be filled in with the layer number
    "encoder": "encoder.{}.self_attention",
    "decoder": "decoder.{}.self_attention",
    "cross": "decoder.{}.cross_attention",
}
BEGIN = "(begin)"  # what the decoder reads first: padding
DIGITS = 4  # decimal places of log-probabilities and scores


class LookedAt(NamedTuple):
    """A source sentence, and where it is from."""

    about: str
    ids: Sequence[int]  # the end symbol included


class Glimpse(NamedTuple):
    """What was seen on one sentence."""

    content: dict[str, Any]  # can be written as JSON
    weights: bytes  # round(255 w), one kind after the other, each [L, H, Q, K]


@torch.inference_mode()
def look_inside(model: TranslationSystem, tokenizer: Tokenizer, sentence: LookedAt, search: Search) -> Glimpse:
    """Translate one sentence and record search tree and attention weights; a system without heads has only the tree."""
    model.eval()
    source = torch.tensor([[int(id) for id in sentence.ids]])
    step = stepping(model, model.embedding.weight.dtype)
    found, tree = observe(step, model.start(source), source.shape[1] + search.extra, search)
    written = [*found.ids, EOS] if found.finished else [*found.ids]
    maps = _maps(model, source, [PAD, *found.ids][: max(1, len(written))])
    content = {
        "about": sentence.about,
        "source": by_words(sentence.ids, tokenizer),
        "target": by_words(written, tokenizer),
        "begin": BEGIN,
        "tree": _told(tree, tokenizer, int(source[0, 0])),
        "attention": [
            {"kind": kind, "shape": [*of.shape], "entropies": entropies(of).mean(-1).round(3).tolist()}
            for kind, of in maps.items()
        ],
    }
    return Glimpse(content, b"".join(rounded_weights(of).tobytes() for of in maps.values()))


def _maps(model: TranslationSystem, source: Tensor, decoder_in: Sequence[int]) -> dict[str, NDArray[np.float64]]:
    """The weights by kind, [L, H, Q, K], leaving out kinds with values below 0 or above 1, which are no weights."""
    if not hasattr(model, "attention_maps"):
        return {}
    seen = model.attention_maps(source, torch.tensor([[*decoder_in]]))
    found = {}
    for kind, name in KINDS.items():
        layers = [seen[name.format(n)][0] for n in range(len(seen)) if name.format(n) in seen]
        if layers and len({layer.shape for layer in layers}) == 1:
            weights = torch.stack(layers).double().numpy()
            if weights.min() >= 0 and weights.max() <= 1 + 1e-6:
                found[kind] = weights
    return found


def _told(tree: "SearchTree", tokenizer: Tokenizer, before: int) -> dict[str, Any]:
    """A tree as JSON: nodes are [parent, number of the piece, log-probability, score, fate]."""
    pieces: dict[int, str] = {}
    lead = tokenizer.decode([before])
    for node in tree.nodes:
        spelled = SPECIAL[EOS] if node.token == EOS else tokenizer.decode([before, node.token])[len(lead) :]
        pieces.setdefault(node.token, spelled)
    number = {id: n for n, id in enumerate(pieces)}
    return {
        "pieces": [*pieces.values()],
        "nodes": [
            [node.parent, number[node.token], _short(node.log_prob), _short(node.score), int(node.fate)]
            for node in tree.nodes
        ],
        "steps": [[_short(step.penalty), _short(step.hope), _short(step.best)] for step in tree.steps],
        "best": tree.best,
        "limit": tree.limit,
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


# Heads


def rounded_weights(weights: NDArray[np.float64]) -> NDArray[np.uint8]:
    """A byte for each weight in [0, 1]: off by 1/510 at most."""
    return np.asarray((255 * weights).round().clip(0, 255), np.uint8)


def entropies(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The entropy of each row of weights, [..., Q, K] -> [..., Q], in nats: 0 for one key, ln K for equal weights."""
    return np.asarray(-(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(-1))


def split_words(sentence: str) -> list[tuple[str, int]]:
    """Words and marks, each with the place where it ends: [("Law", 3), (",", 4)] for "Law,"."""
    return [(found[0], found.end()) for found in re.finditer(r"\w+|[^\w\s]", sentence)]


def by_words(ids: Sequence[int], tokenizer: Tokenizer) -> dict[str, list[Any]]:
    """The tokens as text, the words that they make up, and for each token the number of its word.

    If a token spans several words, as a model may write, they count as one word.
    """
    text = [tokenizer.decode(ids[:n]) for n in range(len(ids) + 1)]
    ends = [end for _, end in split_words(text[-1])] or [len(text[-1])]
    tokens: list[str] = []
    marks: list[int] = []
    for n, id in enumerate(ids, 1):
        ended = id == EOS
        tokens.append(SPECIAL[EOS] if ended else text[n][len(text[n - 1]) :])
        word = len(ends) if ended else min(int(np.searchsorted(ends, len(text[n].rstrip()))), len(ends) - 1)
        marks.append(max(word, marks[-1] if marks else 0))
    numbers = {mark: n for n, mark in enumerate(dict.fromkeys(marks))}
    of = [numbers[mark] for mark in marks]
    words = [
        "".join(token for token, n in zip(tokens, of, strict=True) if n == word).strip() for word in numbers.values()
    ]
    return {"tokens": tokens, "words": words, "of": of}


# The search tree
#
# `beam_search` is given a step that records its answers. The tree is made from these records alone; a test compares it
# with what the search did at each token and with its result.


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


_Seen = tuple[Tensor, Tensor]  # of a step, B = 1: log-probabilities float [W, K] of the likeliest tokens, and their ids


def observe(step: Step[Any], state: Any, limit: int, search: Search) -> tuple[Hypothesis, SearchTree]:
    """What `beam_search` finds for one sentence, and its search tree; the arguments are those of `beam_search`."""
    seen: list[_Seen] = []

    def watched(last: Tensor, state: Any, k: int) -> tuple[Tensor, Tensor, Any]:
        more, token, state = step(last, state, k)
        seen.append((more, token))
        return more, token, state

    [found] = beam_search(watched, state, torch.tensor([limit]), search)
    return found, _tree(seen, limit, search)


def _tree(seen: list[_Seen], limit: int, search: Search) -> SearchTree:
    """The candidates of each length, as the search chose them: steps 2 to 5 of `beam_search` for one sentence."""
    tree = SearchTree([], [], None, limit)
    live, log_prob_W = [-1], seen[0][0].new_zeros(1)  # the node of each row, and its log-probability
    best, place = -math.inf, None
    for length, (more, token_WK) in enumerate(seen, 1):
        k = more.shape[1]
        value_K, place_K = (log_prob_W[:, None] + more).flatten().sort(descending=True, stable=True)
        value_K, place_K = value_K[:k], place_K[:k]
        penalty = search.penalty(torch.full_like(value_K[:1], length))
        score_K = (value_K / penalty).tolist()
        rows, tokens = (place_K // k).tolist(), token_WK.flatten()[place_K].tolist()
        lived: list[tuple[int, int]] = []  # node, rank among the candidates
        for rank, (value, row, token) in enumerate(zip(value_K.tolist(), rows, tokens, strict=True)):
            if value == -math.inf:
                continue
            fate = Fate.ENDED if token == EOS else Fate.LIVED if len(lived) < search.beam else Fate.DROPPED
            if fate is Fate.ENDED and score_K[rank] > best:
                best, place = score_K[rank], len(tree.nodes)
            elif fate is Fate.LIVED:
                lived.append((len(tree.nodes), rank))
            tree.nodes.append(Node(live[row], token, value, score_K[rank] if fate is Fate.ENDED else None, fate))
        if length == limit and place is None and lived:
            place, rank = lived[0]
            best = score_K[rank]
            tree.nodes[place] = tree.nodes[place]._replace(fate=Fate.CUT, score=best)
        hope = float(value_K[lived[0][1]] / search.penalty(torch.tensor(limit).to(value_K.dtype))) if lived else None
        tree.steps.append(Weighed(float(penalty), hope, None if best == -math.inf else best))
        ranks = [rank for _, rank in lived]
        log_prob_W = torch.cat([value_K[ranks], value_K.new_full((search.beam - len(ranks),), -math.inf)])
        live = [node for node, _ in lived] + [-1] * (search.beam - len(ranks))
    return SearchTree(tree.nodes, tree.steps, place, limit)
