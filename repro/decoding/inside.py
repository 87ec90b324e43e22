"""What a trained model does inside: where each head looks on a few sentences, and how the search found the translation.

Each sentence is translated by the run's search, observed (`observed.py`), in the type of the weights. A run that
translates in bfloat16 or by CTranslate2 may have another translation. Then the model reads source and translation as
in training, and the weights of every head are kept. Paper: figures 3 to 5, section 6.1.

    L layers    H heads    Q queries    K keys
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from repro.data.tokenizer import Tokenizer
from repro.decoding.heads import by_words, entropies, rounded_weights
from repro.decoding.observed import SearchTree, observe
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


def _told(tree: SearchTree, tokenizer: Tokenizer, before: int) -> dict[str, Any]:
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
