"""Attention of our own heads on the paper's sentences, measured once and then drawn. Paper: figures 3 to 5.

The weights behind the paper's figures are not public. Ours are from a base model trained here, from the encoder's last
layer but one ("layer 5 of 6"), and each picture names the run.
"""

import functools
import itertools
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from repro.decoding.heads import entropies, split_words
from repro.figures import style
from repro.figures.checkpoints import Whose, whose
from repro.figures.style import Axes, Figure
from repro.model.special_tokens import EOS, SPECIAL
from repro.paper import FIGURE_SENTENCES
from repro.results.record import Record
from repro.runs.load import open_run

MEASURED = "attention.json"
COMMAND = "python experiments/table3_A.py --rows base"  # trains the model whose heads are shown


class Map(TypedDict):
    """One sentence with the attention of each head of the layer."""

    about: str  # the query word of figures 3 and 4
    words: list[str]
    pieces: list[int]  # number of pieces of each word
    weights: list[list[list[float]]]  # [H, Q, K]: how much word q attends to word k; over k they sum to one
    entropies: list[list[float]]  # [H, Q], nats
    distances: list[list[float]]  # [H, H]: half the sum of |difference|, mean over the queries, in [0, 1]


class MeasuredHeads(Whose):
    """The content of attention.json."""

    dirty: bool
    tokenizer: str  # SHA-256
    layer: int  # counted from 1
    n_layers: int
    maps: list[Map]


# ---- words


def word_of_token(sentence: str, ids: Sequence[int], decode: Any) -> tuple[list[str], list[int]]:
    """The words of a sentence, the end symbol last, and for each token the number of its word.

    `decode` gives the text of the first tokens, so it shows where each token ends.
    """
    words = split_words(sentence)
    ends = [end for _, end in words]
    numbers = []
    for n in range(1, len(ids) + 1):
        if ids[n - 1] == EOS:
            numbers.append(len(words))
        else:
            numbers.append(int(np.searchsorted(ends, len(decode(ids[:n])))))
    if sorted(set(numbers)) != list(range(len(words) + 1)) or numbers != sorted(numbers):
        raise ValueError(f"{sentence!r}: expected tokens of each word in turn, got tokens of {numbers}. Train again.")
    return [*(word for word, _ in words), SPECIAL[EOS]], numbers


def merged_to_words(
    weights: NDArray[np.float64], numbers: Sequence[int], keys: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """[..., tokens, tokens] -> [..., words, words]: sums over the tokens of a key word, means over a query word's.

    `numbers` has for each query the number of its word; `keys` has it for the keys, if they are of another sentence.
    Rows that sum to one still do.
    """
    looks, seen = (np.eye(max(of) + 1)[list(of)] for of in (numbers, numbers if keys is None else keys))
    return np.asarray((looks / looks.sum(0)).T @ weights @ seen)


def distances(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """[H, Q, K] -> [H, H]: the share of weight that one head puts elsewhere than another, mean over the queries."""
    return np.asarray(np.abs(weights[:, None] - weights[None]).sum(-1).mean(-1) / 2)


# ---- measuring


def measure(records: Sequence[Record], runs: Path, cache: Path) -> MeasuredHeads:
    """Run the model of the only run in `records` on the sentences, and keep the attention of one layer's heads."""
    import torch

    from repro.model.transformer import Transformer

    [run] = records
    trained = open_run(runs / run.run, cache)
    model, tokenizer, n_layers = trained.model, trained.tokenizer, trained.record.hyper["n_layers"]
    assert isinstance(model, Transformer), "the base row is one"
    layer = max(1, n_layers - 1)  # counted from 1: the last but one, as in the paper's figures
    maps = []
    for about, sentence in FIGURE_SENTENCES.items():
        ids = [int(id) for id in tokenizer.encode([sentence])[0]]
        source = torch.tensor([ids])
        with torch.no_grad():
            seen = model.attention_maps(source, source[:, :1])[f"encoder.{layer - 1}.self_attention"]
        words, numbers = word_of_token(sentence, ids, tokenizer.decode)
        maps.append(map_of_words(about, words, numbers, merged_to_words(seen[0].double().numpy(), numbers)))
    dirty = run.stamp["dirty"]
    facts = {"dirty": dirty, "tokenizer": tokenizer.sha256, "layer": layer, "n_layers": n_layers, "maps": maps}
    return {**whose(run), **facts}  # type: ignore[typeddict-item]


def map_of_words(about: str, words: list[str], numbers: Sequence[int], weights: NDArray[np.float64]) -> Map:
    """The stored form of weights [H, words, words]; `numbers` has for each token the number of its word."""
    return Map(
        about=about,
        words=words,
        pieces=np.bincount(numbers).tolist(),
        weights=weights.round(5).tolist(),
        entropies=entropies(weights).round(5).tolist(),
        distances=distances(weights).round(5).tolist(),
    )


# ---- which heads are shown


def sharpest(seen: Map, n: int = 2) -> list[int]:
    """The n heads with the lowest entropy at the picture's query word, sharpest first (figure 4)."""
    word = seen["words"].index(seen["about"])
    return sorted(range(len(seen["weights"])), key=lambda head: (seen["entropies"][head][word], head))[:n]


def most_different(seen: Map) -> list[int]:
    """The two heads whose maps differ most (figure 5); with a single head, that one."""
    pairs = list(itertools.combinations(range(len(seen["weights"])), 2))
    return list(max(pairs, key=lambda pair: seen["distances"][pair[0]][pair[1]], default=(0,)))


# ---- on paper


def caption(measured: MeasuredHeads, seen: Map, shown: str, full: float) -> str:
    """The caption: what is shown, and from which run; `full` is the weight that is drawn solid."""
    commit = (measured["commit"] or "none")[:12] + ", with changes" * measured["dirty"]
    n_words = len(seen["words"])
    text = (
        f"Encoder layer {measured['layer']} of {measured['n_layers']}. {shown} Weights of our own model, not "
        f"the paper’s: scale {measured['scale']}, corpus {measured['corpus']} {measured['pair']}, row "
        f"{measured['row']}, seed {measured['seed']}, run {measured['run']}, commit {commit}. {n_words} words in "
        f"{sum(seen['pieces'])} tokens, merged: keys summed, queries averaged. Lines: weights above 1/{n_words}, "
        f"solid at {full:.2f}."
    )
    return "\n".join(textwrap.wrap(text, 132))


def draw_attention(folder: Path, measured: MeasuredHeads) -> list[Path]:
    """Draw figures 3, 4 and 5 from a stored measurement: all heads at a word, the sharpest, the most different ones."""
    of = {seen["about"]: seen for seen in measured["maps"]}
    files = []
    for name, about, painter in (
        ("figure3_long_distance", "making", _paint_all_heads),
        ("figure4_sharp_heads", "its", _paint_sharpest),
        ("figure5_different_heads", "its", _paint_different),
    ):
        cells = len(of[about]["weights"]) if painter is _paint_all_heads else 0
        paint = functools.partial(painter, measured=measured, seen=of[about])
        height = _low(cells) + LINES + WORDS + (4 if cells else 22)
        files.append(style.save_figure(folder, name, (style.WIDTH, height / 72), paint))
    return files


# in points of 1/72 inch: room for the caption, for words on end, for the lines between them; a head's square
CAPTION, WORDS, LINES, CELL = 46.0, 58.0, 118.0, 6.2
HALVES = (0.02, 0.485), (0.525, 0.99)


def _low(cells: int) -> float:
    """Where the lines end: above the key words and their squares."""
    return CAPTION + WORDS + (CELL * cells + 10 if cells else 7)


def _paint_all_heads(figure: Figure, measured: MeasuredHeads, seen: Map) -> None:
    """Paint lines from one word to all, each head in its colour; under each word a column of squares, one per head."""
    word, heads = seen["words"].index(seen["about"]), range(len(seen["weights"]))
    full = max(max(seen["weights"][head][word]) for head in heads)
    axes, xs = _rails(figure, seen, (0.04, 0.985), cells=len(heads), bold=word)
    top = _low(len(heads)) - 5
    for head in heads:
        beside = 1.5 * (head - (len(heads) - 1) / 2)  # shifted, so that the lines of all heads do not coincide
        _lines(axes, seen, head, xs, [word], full, low=_low(len(heads)), beside=beside)
        for x, weight in zip(xs, seen["weights"][head][word], strict=True):
            _cell(axes, x, top - CELL * head, head, weight / full)
        middle = top - CELL * (head + 0.5)
        axes.text(xs[0] - 8, middle, f"{head + 1}", fontsize=7, ha="right", va="center", color=style.SOFT)
    shown = f"All {len(heads)} heads, query word “{seen['about']}”."
    style.note(figure, caption(measured, seen, shown, full))


def _paint_sharpest(figure: Figure, measured: MeasuredHeads, seen: Map) -> None:
    """Paint the whole map of the sharpest head, then both sharpest heads from the query word."""
    word, heads = seen["words"].index(seen["about"]), sharpest(seen)
    full = max(max(map(max, seen["weights"][heads[0]])), *(max(seen["weights"][head][word]) for head in heads))
    axes, xs = _rails(figure, seen, HALVES[0])
    _lines(axes, seen, heads[0], xs, range(len(xs)), full)
    axes, xs = _rails(figure, seen, HALVES[1], bold=word)
    for n, head in enumerate(heads):
        _lines(axes, seen, head, xs, [word], full, beside=1.5 * n)
    named = " and ".join(f"{head + 1}" for head in heads)
    _titles(figure, f"head {heads[0] + 1}, all words", f"“{seen['about']}”: heads {named}")
    nats = ", ".join(f"{head + 1} ({abs(seen['entropies'][head][word]):.2f} nats)" for head in heads)
    shown = f"The heads with the lowest entropy at “{seen['about']}”: {nats}; all words alike would be "
    shown += f"{np.log(len(seen['words'])):.2f}."
    style.note(figure, caption(measured, seen, shown, full))


def _paint_different(figure: Figure, measured: MeasuredHeads, seen: Map) -> None:
    """Paint the whole maps of the two heads that differ most."""
    heads = most_different(seen)
    full = max(max(map(max, seen["weights"][head])) for head in heads)
    for head, span in zip(heads, HALVES, strict=False):
        axes, xs = _rails(figure, seen, span)
        _lines(axes, seen, head, xs, range(len(xs)), full)
    _titles(figure, *(f"head {head + 1}, all words" for head in heads))
    apart = seen["distances"][heads[0]][heads[-1]]
    shown = f"The two heads whose maps differ most: {apart:.0%} of their weight lies on other words."
    style.note(figure, caption(measured, seen, shown, full))


def _rails(
    figure: Figure, seen: Map, span: tuple[float, float], *, cells: int = 0, bold: int = -1
) -> tuple[Axes, list[float]]:
    """Write the words twice, as queries above and as keys below; returns their places."""
    axes = style.canvas(figure)
    width, n = 72 * figure.get_figwidth(), len(seen["words"])
    xs = [width * (span[0] + (span[1] - span[0]) * (i + 0.5) / n) for i in range(n)]
    small = 9.0 if span[1] - span[0] > 0.6 else 7.8
    for i, (x, word) in enumerate(zip(xs, seen["words"], strict=True)):
        how: dict[str, Any] = {"rotation": 90, "ha": "center", "fontsize": small}
        how["weight"] = "bold" if i == bold else "normal"
        axes.text(x, _low(cells) + LINES + 4, word, va="bottom", **how)
        axes.text(x, CAPTION + WORDS + 1, word, va="top", **how)
    return axes, xs


def _lines(
    axes: Axes,
    seen: Map,
    head: int,
    xs: Sequence[float],
    queries: Sequence[int],
    full: float,
    low: float | None = None,
    beside: float = 0.0,
) -> None:
    """Draw lines from each query to the keys of one head, as opaque as the weight; `full` is drawn solid."""
    from matplotlib.collections import LineCollection

    alike = 1 / len(xs)  # the weight of uniform attention; lines below it would only be a haze
    end = _low(0) if low is None else low
    begin = end + LINES
    parts = [
        (((xs[query], begin), (xs[key] + beside, end)), weight / full)
        for query in queries
        for key, weight in enumerate(seen["weights"][head][query])
        if weight > alike
    ]
    colour = style.HEADS[head % len(style.HEADS)]
    axes.add_collection(
        LineCollection(
            [line for line, _ in parts],
            colors=[(colour, min(1.0, opacity)) for _, opacity in parts],
            linewidths=1.1,
        )
    )


def _cell(axes: Axes, x: float, top: float, head: int, opacity: float) -> None:
    """Draw a square as opaque as the weight, in a pale frame."""
    from matplotlib.patches import Rectangle

    face = style.HEADS[head % len(style.HEADS)], min(1.0, opacity)
    frame: dict[str, Any] = {"linewidth": 0.3, "edgecolor": style.PALE}
    axes.add_patch(Rectangle((x - CELL / 2, top - CELL), CELL, CELL, facecolor=face, **frame))


def _titles(figure: Figure, *titles: str) -> None:
    for title, span in zip(titles, HALVES, strict=False):
        figure.text(sum(span) / 2, 1 - 6 / 72 / figure.get_figheight(), title, ha="center", va="top", fontsize=10.5)
