"""Figures 3 to 5 on a sentence of the model's own text, and the decoder's attention while it translated it.

At a small scale most words of the paper's sentences do not occur in training. Runs on generated text store their
attention on sentences of dev beside their records (`repro/results/inside.py`), so these pictures need no checkpoint.
The query words are chosen by rules, not by how the picture looks.

    L layers    H heads    Q queries    K keys
"""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.figures import style
from repro.figures.attention_maps import NAMES, draw_maps, heads_of, layer_shown, map_of_words, merged_to_words
from repro.figures.style import Figure
from repro.model.special_tokens import EOS, SPECIAL
from repro.results.inside import seen_sentences
from repro.results.record import Record
from repro.runs.inside import NAMES_OF_PAPER

Array = NDArray[np.float64]
ALIGNMENT = "alignment"
PRONOUNS = {"he", "she", "it", "they", "him", "her", "them", "his", "its", "their"}  # the paper asks "its"
MOST_LAYERS = 3  # side by side on a page


@dataclass(frozen=True)
class OwnSentence:
    """A sentence that a run translated, and the weights of all heads on it."""

    record: Record
    told: dict[str, Any]  # from `seen_sentences`: its origin, its words and pieces, and those of the translation
    weights: dict[str, Array]  # by kind, [L, H, Q, K]; rows sum to one


def own_sentence(records: Iterable[Record], results: Path) -> OwnSentence:
    """The first stored sentence of a run's own text, lowest seed first. Raises ValueError that says how to get one."""
    for record, sentences in seen_sentences(records, results):
        for told, weights in sentences:
            if told["about"] not in NAMES_OF_PAPER.values() and {"encoder", "cross"} <= weights.keys():
                whole = {kind: of / of.sum(-1, keepdims=True) for kind, of in weights.items()}  # a byte each: not quite
                return OwnSentence(record, told, whole)
    raise ValueError(
        "no run of committed code of the base row left a sentence of its own text (in a file .inside.gz beside its "
        "record), as runs on generated text do. Type the command of a run again, where its checkpoints still are."
    )


def draw_own(to: Path, records: Iterable[Record], results: Path) -> list[Path]:
    """Draw figures 3 to 5 for a sentence of the model's own text, and its alignment."""
    own = own_sentence(records, results)
    layer, source = layer_shown(own.record.hyper["n_layers"]), own.told["source"]
    weights = merged_to_words(own.weights["encoder"][layer - 1], source["of"])
    words = farthest(weights, source["words"]), pronoun(weights, source["words"])
    far, sharp = (map_of_words(word, source["words"], source["of"], weights) for word in words)
    for seen in (far, sharp):
        seen["sentence"] = own.told["about"]
    measured = heads_of(own.record, own.record.tokenizer["sha256"], layer, [far, sharp])
    files = draw_maps(to, measured, [f"{name}_own" for name in NAMES], (far, sharp, sharp))
    return files + _draw_alignment(to, own)


# ---- which words are the queries


def farthest(weights: Array, words: Sequence[str]) -> str:
    """The word with the farthest attention of all heads, compared with uniform attention; weights [H, Q, K]."""
    places = np.arange(len(words))
    apart = np.abs(places[:, None] - places)
    reach = (weights.mean(0) * apart).sum(-1) - apart.mean(-1)
    return words[max(_asked(words), key=lambda place: (reach[place], -place))]


def pronoun(weights: Array, words: Sequence[str]) -> str:
    """The first pronoun, as in the paper's figure 4; else the word at which some head is most focused on one word."""
    asked = _asked(words)
    found = [place for place in asked if words[place].lower() in PRONOUNS]
    return words[found[0] if found else max(asked, key=lambda place: (weights[:, place].max(), -place))]


def _asked(words: Sequence[str]) -> list[int]:
    """The words that may be queries: the first place of each, without the end symbol."""
    return [place for place, word in enumerate(words) if word != SPECIAL[EOS] and words.index(word) == place]


# ---- alignment

LEFT, RIGHT, GAP = 62.0, 6.0, 8.0  # points of 1/72 inch: room for pieces of the translation, and between layers
ABOVE, BELOW, ROW = 54.0, 62.0, 9.4  # for pieces of the source, for names of layers and the caption; a row


def layers_shown(n_layers: int) -> list[int]:
    """The layers shown side by side, counted from 1: all if there are at most three, else the first and last two."""
    return [*range(1, n_layers + 1)] if n_layers <= MOST_LAYERS else [1, n_layers - 1, n_layers]


def pieces(told: dict[str, list[Any]]) -> list[str]:
    """Pieces as labels: one that continues a word begins with a hyphen."""
    of = told["of"]
    return ["-" * (n > 0 and of[n] == of[n - 1]) + (token.strip() or "␣") for n, token in enumerate(told["tokens"])]


def alignment_height(n_rows: int) -> float:
    """The height in inches of the picture of a translation with so many pieces."""
    return (ABOVE + BELOW + ROW * n_rows) / 72


def _draw_alignment(to: Path, own: OwnSentence) -> list[Path]:
    size = style.WIDTH, alignment_height(len(own.told["target"]["tokens"]))
    return [style.save_figure(to, ALIGNMENT, size, partial(paint_alignment, own=own))]


def paint_alignment(figure: Figure, own: OwnSentence) -> None:
    """Paint the mean of the heads of each layer: a row per piece of the translation, a column per source piece."""
    weights = own.weights["cross"].mean(1)  # [L, Q, K]
    shown = layers_shown(len(weights))
    width, height = (72 * inches for inches in figure.get_size_inches())
    panel = (width - LEFT - RIGHT - GAP * (len(shown) - 1)) / len(shown)
    columns, rows = pieces(own.told["source"]), pieces(own.told["target"])
    small = min(8.0, 0.8 * ROW, 0.8 * panel / len(columns))  # so that no two pieces touch
    full = float(weights[[layer - 1 for layer in shown]].max())
    for n, layer in enumerate(shown):
        left = LEFT + n * (panel + GAP)
        box = left / width, BELOW / height, panel / width, 1 - (ABOVE + BELOW) / height
        axes = figure.add_axes(box)
        axes.imshow(weights[layer - 1], cmap="Blues", vmin=0, vmax=full, aspect="auto", interpolation="nearest")
        axes.xaxis.tick_top()
        axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=small)
        axes.set_yticks(range(len(rows)), rows if n == 0 else [""] * len(rows), fontsize=small)
        axes.tick_params(length=0, pad=2)
        axes.spines[:].set(visible=True, color=style.PALE)
        axes.set_xlabel(f"layer {layer} of {len(weights)}")
    style.note(figure, _about(own, full))


def _about(own: OwnSentence, full: float) -> str:
    record, n_heads = own.record, own.weights["cross"].shape[1]
    commit = (record.stamp["commit"] or "none")[:12]
    text = (
        f"Columns: tokens of the source, {own.told['about']}. Rows: tokens of the translation, as the run’s search "
        f"wrote it; each shows where the decoder looked when it wrote that token, mean over {n_heads} heads, darkest "
        f"at {full:.2f}. Weights of our own model, not the paper’s: scale {record.scale}, corpus "
        f"{record.corpus['name']} {record.pair}, row {record.row}, seed {record.seed}, run {record.run}, "
        f"commit {commit}."
    )
    return "\n".join(textwrap.wrap(text, 132))
