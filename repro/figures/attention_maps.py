"""Attention of our own heads on the paper's sentences, measured once and then drawn. Paper: figures 3 to 5.

The weights behind the paper's figures are not public. Ours are from a base model trained here, from the encoder's last
layer but one ("layer 5 of 6"), and each picture names the run.

    H heads    Q queries    K keys
"""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from repro.decoding.inside import by_words, entropies
from repro.figures import style
from repro.figures.style import COLOURS, Drawn, Figure
from repro.figures.trained import Probe, whose
from repro.model.transformer import Transformer
from repro.paper import FIGURE_SENTENCES
from repro.results.record import BASE, Record
from repro.runs.load import open_run

Array = NDArray[np.float64]


class Map(TypedDict):
    """One sentence with the attention of each head of the layer."""

    about: str  # the query word of figures 3 and 4
    words: list[str]
    pieces: list[int]  # number of pieces of each word
    weights: list[list[list[float]]]  # [H, Q, K]: how much word q attends to word k; over k they sum to one


# ---- measuring


def merged_to_words(weights: Array, numbers: Sequence[int], keys: Sequence[int] | None = None) -> Array:
    """[..., tokens, tokens] -> [..., words, words]: sums over the tokens of a key word, means over a query word's.

    `numbers` has for each query the number of its word; `keys` has it for the keys, if they are of another sentence.
    Rows that sum to one still do.
    """
    looks, seen = (np.eye(max(of) + 1)[list(of)] for of in (numbers, numbers if keys is None else keys))
    return np.asarray((looks / looks.sum(0)).T @ weights @ seen)


def measure(records: Sequence[Record], runs: Path, cache: Path) -> dict[str, Any]:
    """Run the model of the only run in `records` on the sentences, and keep the attention of one layer's heads."""
    [run] = records
    trained = open_run(runs / run.run)
    model, tokenizer, n_layers = trained.model, trained.tokenizer, trained.record.hyper["n_layers"]
    assert isinstance(model, Transformer), "the base row is one"
    layer = max(1, n_layers - 1)  # counted from 1: the last but one, as in the paper's figures
    maps = []
    for about, sentence in FIGURE_SENTENCES.items():
        ids = [int(id) for id in tokenizer.encode([sentence])[0]]
        source = torch.tensor([ids])
        with torch.no_grad():
            seen = model.attention_maps(source, source[:, :1])[f"encoder.{layer - 1}.self_attention"]
        told = by_words(ids, tokenizer)
        maps.append(map_of_words(about, told["words"], told["of"], seen[0].double().numpy()))
    return {**whose(run), "dirty": run.stamp["dirty"], "layer": layer, "n_layers": n_layers, "maps": maps}


def map_of_words(about: str, words: list[str], numbers: Sequence[int], weights: Array) -> Map:
    """The stored form of weights [H, tokens, tokens]; `numbers` has for each token the number of its word."""
    merged = merged_to_words(weights, numbers).round(5).tolist()
    return Map(about=about, words=words, pieces=np.bincount(numbers).tolist(), weights=merged)


# ---- which heads are shown


def sharpest(seen: Map, n: int = 2) -> list[tuple[int, float]]:
    """The n heads with the lowest entropy at the picture's query word, sharpest first, with it in nats (figure 4)."""
    word = seen["words"].index(seen["about"])
    at_word = entropies(np.array(seen["weights"]))[:, word].round(5).tolist()
    return sorted(enumerate(at_word), key=lambda of: (of[1], of[0]))[:n]


def most_different(seen: Map) -> tuple[list[int], float]:
    """The two heads whose maps differ most, and the share of weight that one puts elsewhere than the other (figure 5).

    The share is the mean over the queries; with a single head it is that one, and 0.
    """
    weights = np.array(seen["weights"])
    apart = np.abs(weights[:, None] - weights[None]).sum(-1).mean(-1) / 2  # [H, H]
    pairs = list(itertools.combinations(range(len(weights)), 2))
    heads = list(max(pairs, key=lambda pair: apart[pair], default=(0,)))
    return heads, float(apart[heads[0], heads[-1]])


# ---- on paper, in points of 1/72 inch: room for the caption, for words on end, for lines; a head's square

CAPTION, WORDS, LINES, CELL = 46.0, 58.0, 118.0, 6.2
HALVES = (0.02, 0.485), (0.525, 0.99)
OF_HEADS = (*COLOURS[1:], "#8c510a")  # black is for words


def draw_attention(measured: dict[str, Any]) -> Drawn:
    """Figures 3, 4 and 5 of a stored measurement: all heads at a word, the sharpest, the most different ones."""
    of: dict[str, Map] = {seen["about"]: seen for seen in measured["maps"]}
    figures = []
    for name, about, paint in (
        ("figure3_long_distance", "making", _paint_all_heads),
        ("figure4_sharp_heads", "its", _paint_sharpest),
        ("figure5_different_heads", "its", _paint_different),
    ):
        cells = len(of[about]["weights"]) if paint is _paint_all_heads else 0
        figures.append(style.figure(name, (_low(cells) + LINES + WORDS + (4 if cells else 22)) / 72))
        shown, full = paint(figures[-1], of[about])
        style.note(figures[-1], _caption(measured, of[about], shown, full))
    return [*figures]


ATTENTION = Probe("attention", "python experiments/table3_A.py --rows base", measure, draw_attention, ((BASE, BASE),))


def _low(cells: int) -> float:
    """Where the lines end: above the key words and their squares."""
    return CAPTION + WORDS + (CELL * cells + 10 if cells else 7)


class _Rails:
    """The words of a sentence twice, as queries above and as keys below, over a share of the figure's width."""

    def __init__(self, figure: Figure, seen: Map, span: tuple[float, float], *, cells: int = 0, bold: int = -1) -> None:
        self.axes, self.weights, self.low = style.canvas(figure), seen["weights"], _low(cells)
        width, n = 72 * figure.get_figwidth(), len(seen["words"])
        self.xs = [width * (span[0] + (span[1] - span[0]) * (i + 0.5) / n) for i in range(n)]
        small = 9.0 if span[1] - span[0] > 0.6 else 7.8
        for i, (x, word) in enumerate(zip(self.xs, seen["words"], strict=True)):
            how: dict[str, Any] = {"rotation": 90, "ha": "center", "fontsize": small}
            how["weight"] = "bold" if i == bold else "normal"
            self.axes.text(x, self.low + LINES + 4, word, va="bottom", **how)
            self.axes.text(x, CAPTION + WORDS + 1, word, va="top", **how)

    def draw(self, head: int, queries: Iterable[int], full: float, beside: float = 0.0) -> None:
        """Draw lines from queries to the keys of one head, as opaque as the weight; `full` is drawn solid."""
        alike = 1 / len(self.xs)  # the weight of uniform attention; lines below it would only be a haze
        shown = [(q, k, weight) for q in queries for k, weight in enumerate(self.weights[head][q]) if weight > alike]
        lines = [((self.xs[q], self.low + LINES), (self.xs[k] + beside, self.low)) for q, k, _ in shown]
        colours = [_colour(head, weight / full) for *_, weight in shown]
        self.axes.add_collection(LineCollection(lines, colors=colours, linewidths=1.1))


def _colour(head: int, opacity: float) -> tuple[str, float]:
    return OF_HEADS[head % len(OF_HEADS)], min(1.0, opacity)


def _paint_all_heads(figure: Figure, seen: Map) -> tuple[str, float]:
    """Paint lines from one word to all, each head in its colour; under each word a column of squares, one per head."""
    word, heads = seen["words"].index(seen["about"]), range(len(seen["weights"]))
    full = max(max(seen["weights"][head][word]) for head in heads)
    rails = _Rails(figure, seen, (0.04, 0.985), cells=len(heads), bold=word)
    frame: dict[str, Any] = {"linewidth": 0.3, "edgecolor": style.PALE}
    for head in heads:
        # shifted, so that the lines of all heads do not coincide
        rails.draw(head, [word], full, beside=1.5 * (head - (len(heads) - 1) / 2))
        low = rails.low - 5 - CELL * (head + 1)
        for x, weight in zip(rails.xs, seen["weights"][head][word], strict=True):
            face = _colour(head, weight / full)
            rails.axes.add_patch(Rectangle((x - CELL / 2, low), CELL, CELL, facecolor=face, **frame))
        at: dict[str, Any] = {"fontsize": 7, "ha": "right", "va": "center", "color": style.SOFT}
        rails.axes.text(rails.xs[0] - 8, low + CELL / 2, f"{head + 1}", **at)
    return f"All {len(heads)} heads, query word “{seen['about']}”.", full


def _paint_sharpest(figure: Figure, seen: Map) -> tuple[str, float]:
    """Paint the whole map of the sharpest head, then both sharpest heads from the query word."""
    word, sharp = seen["words"].index(seen["about"]), sharpest(seen)
    heads = [head for head, _ in sharp]
    full = max(max(map(max, seen["weights"][heads[0]])), *(max(seen["weights"][head][word]) for head in heads))
    _Rails(figure, seen, HALVES[0]).draw(heads[0], range(len(seen["words"])), full)
    rails = _Rails(figure, seen, HALVES[1], bold=word)
    for n, head in enumerate(heads):
        rails.draw(head, [word], full, beside=1.5 * n)
    named = " and ".join(f"{head + 1}" for head in heads)
    _titles(figure, f"head {heads[0] + 1}, all words", f"“{seen['about']}”: heads {named}")
    nats = ", ".join(f"{head + 1} ({abs(entropy):.2f} nats)" for head, entropy in sharp)
    even = f"all words alike would be {np.log(len(seen['words'])):.2f}."
    return f"The heads with the lowest entropy at “{seen['about']}”: {nats}; {even}", full


def _paint_different(figure: Figure, seen: Map) -> tuple[str, float]:
    """Paint the whole maps of the two heads that differ most."""
    heads, apart = most_different(seen)
    full = max(max(map(max, seen["weights"][head])) for head in heads)
    for head, span in zip(heads, HALVES, strict=False):
        _Rails(figure, seen, span).draw(head, range(len(seen["words"])), full)
    _titles(figure, *(f"head {head + 1}, all words" for head in heads))
    return f"The two heads whose maps differ most: {apart:.0%} of their weight lies on other words.", full


def _titles(figure: Figure, *titles: str) -> None:
    for title, span in zip(titles, HALVES, strict=False):
        figure.text(sum(span) / 2, 1 - 6 / 72 / figure.get_figheight(), title, ha="center", va="top", fontsize=10.5)


def _caption(measured: dict[str, Any], seen: Map, shown: str, full: float) -> str:
    """What is shown, and from which run; `full` is the weight that is drawn solid."""
    commit, n_words = measured["commit"][:12] + ", with changes" * measured["dirty"], len(seen["words"])
    return (
        f"Encoder layer {measured['layer']} of {measured['n_layers']}. {shown} Weights of our own model, not "
        f"the paper’s: scale {measured['scale']}, corpus {measured['corpus']} {measured['pair']}, row "
        f"{measured['row']}, seed {measured['seed']}, run {measured['run']}, commit {commit}. {n_words} words in "
        f"{sum(seen['pieces'])} tokens, merged: keys summed, queries averaged. Lines: weights above 1/{n_words}, "
        f"solid at {full:.2f}."
    )
