"""Attention of soft alignment during translation, beside the base's on the same sources. Bahdanau et al. (2015).

The weights come from files beside the records (`repro/results/inside.py`), so no checkpoint is needed. They are shown
by word: summed over the pieces of a key word, averaged over the pieces of a query word. Paper: section 3.2.3.

    L layers    H heads    Q queries: words written    K keys: words of the source
"""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from repro.decoding.heads import entropies
from repro.figures import style
from repro.figures.attention_maps import merged_to_words
from repro.figures.checkpoints import told_runs, whose
from repro.figures.style import Axes, Figure, save_numbers
from repro.results.inside import seen_sentences
from repro.results.record import Record

Array = NDArray[np.float64]
NAME = "soft_alignment"
TABLE, ROW = "ladder", "soft alignment"
COMMAND = f'python experiments/{TABLE}.py --rows base "{ROW}"'
MOST = 4  # sentences
LETTERS = 14  # longer words are cut to this length


@dataclass(frozen=True)
class Aligned:
    """The attention of one run while it translated one sentence."""

    about: str
    source: list[str]  # K words, the end symbol last
    target: list[str]  # Q words, as this run wrote them
    heads: Array  # [L, H, Q, K]; rows sum to one

    @property
    def weights(self) -> Array:
        """The mean over all heads of all layers, [Q, K]."""
        return np.asarray(self.heads.mean((0, 1)))

    @property
    def entropy(self) -> Array:
        """The entropy of each row of `weights`, [Q], in nats."""
        return entropies(self.weights)

    @property
    def own_entropy(self) -> Array:
        """The mean of the heads' own entropies, [Q], in nats; never above the entropy of their mean."""
        return np.asarray(entropies(self.heads).mean((0, 1)))


@dataclass(frozen=True)
class Compared:
    """One run of each system, on the same sentences."""

    runs: tuple[Record, Record]
    sentences: list[tuple[Aligned, Aligned]]


def aligned_sentences(records: Sequence[Record], results: Path) -> Iterator[tuple[Record, list[Aligned]]]:
    """Each finished run with the sentences stored beside its record, lowest seed first."""
    for record, sentences in seen_sentences(records, results):
        found = []
        for told, weights in sentences:
            if "cross" in weights:
                merged = merged_to_words(weights["cross"], told["target"]["of"], told["source"]["of"])
                whole = merged / merged.sum(-1, keepdims=True)  # weights were stored as bytes: sums are not quite one
                found.append(Aligned(told["about"], told["source"]["words"], told["target"]["words"], whole))
        yield record, found


def compared_alignments(rows: Sequence[Record], base: Sequence[Record], results: Path, *, command: str) -> Compared:
    """The run of soft alignment with the lowest seed, and a run of the base, of the same seed if possible.

    Raises ValueError, which names the command to run, where a run is missing.
    """
    of_row = [record for record in rows if record.row == ROW]
    first = next(aligned_sentences(of_row, results), None)
    if first is None:
        raise ValueError(
            f"no run of committed code of the row {ROW!r} of {TABLE} left its attention weights (a file .inside.gz "
            f"beside its record). Run `{command}`."
        )
    record, own = first
    others = sorted(aligned_sentences(base, results), key=lambda run: run[0].seed != record.seed)
    for other, theirs in others:
        same = {(one.about, *one.source): one for one in theirs}
        both = [(one, same[key]) for one in own if (key := (one.about, *one.source)) in same]
        if both:
            return Compared((record, other), both[:MOST])
    raise ValueError(
        f"no run of committed code of the base row left its attention weights on the sentences of {ROW}, run "
        f"{record.run}. Run `{command}`."
    )


def draw_alignments(
    to: Path, rows: Sequence[Record], base: Sequence[Record], results: Path, *, command: str
) -> list[Path]:
    """Write the picture, its weights and its entropies. Raises ValueError where a run is missing."""
    found = compared_alignments(rows, base, results, command=command)
    each = [
        (record.row, record.seed, one)
        for pair in found.sentences
        for record, one in zip(found.runs, pair, strict=True)
    ]  # fmt: skip
    weights = [
        (row, seed, one.about, q + 1, one.target[q], k + 1, one.source[k], float(one.weights[q, k]))
        for row, seed, one in each
        for q, k in np.ndindex(one.weights.shape)
    ]
    spread = [
        (row, seed, one.about, q + 1, word, float(one.entropy[q]), float(one.own_entropy[q]))
        for row, seed, one in each
        for q, word in enumerate(one.target)
    ]
    place = ("row", "seed", "sentence", "number", "written")
    height = alignments_height(found)
    return [
        style.save_figure(to, NAME, (style.WIDTH, height), partial(paint_alignments, found=found)),
        save_numbers(to, NAME, (*place, "number in source", "source", "weight"), weights),
        save_numbers(to, f"{NAME}_entropy", (*place, "entropy", "mean entropy of heads"), spread),
    ]


# ---- on paper, in points of 1/72 inch

LABELS, STRIP, GAP, RIGHT = 57.0, 42.0, 4.0, 8.0  # room for words written; for entropies; between; at the edge
ABOVE, BELOW, TOP, ROOM, LINE = 9.0, 24.0, 18.0, 76.0, 7.8  # above words; for numbers; title; caption; a row
PANEL = (72 * style.WIDTH - 2 * (LABELS + GAP + STRIP + RIGHT)) / 2
LETTER = 0.53  # of the size of a face: how wide a letter is, and a little more


def alignments_height(found: Compared) -> float:
    """Inches of the picture."""
    return (TOP + ROOM + sum(_above(pair[0]) + BELOW + LINE * _n_rows(pair) for pair in found.sentences)) / 72


def paint_alignments(figure: Figure, found: Compared) -> None:
    """Paint both systems side by side for each sentence: target by source words, and the entropy of each row."""
    width, height = (72 * inches for inches in figure.get_size_inches())
    most = max(math.log(len(one.source)) for one, _ in found.sentences) * 1.04
    top = height - TOP
    for n, pair in enumerate(found.sentences):
        top -= _above(pair[0])
        for side, one in enumerate(pair):
            left = LABELS + side * (LABELS + PANEL + GAP + STRIP + RIGHT)
            low = top - LINE * len(one.target)
            high = (top - low) / height
            axes = figure.add_axes((left / width, low / height, PANEL / width, high))
            _paint_weights(axes, one)
            strip = figure.add_axes(((left + PANEL + GAP) / width, low / height, STRIP / width, high), sharey=axes)
            _paint_entropies(strip, one, most)
            if n == 0:
                middle = (left + (PANEL + GAP + STRIP) / 2) / width
                figure.text(middle, 1 - 4 / height, _title(found.runs[side], one), ha="center", va="top", fontsize=10.5)
        top -= LINE * _n_rows(pair) + BELOW
    style.note(figure, _about(found))


def _face(one: Aligned) -> float:
    """The font size of source words: small enough that no two touch."""
    return min(6.6, 0.82 * PANEL / len(one.source))


def _above(one: Aligned) -> float:
    return ABOVE + LETTER * _face(one) * max(len(_shown(word)) for word in one.source)


def _n_rows(pair: tuple[Aligned, Aligned]) -> int:
    return max(len(one.target) for one in pair)


def _title(record: Record, one: Aligned) -> str:
    n = math.prod(one.heads.shape[:2])
    return record.row if n == 1 else f"{record.row}, mean of its {n} heads"


def _paint_weights(axes: Axes, one: Aligned) -> None:
    axes.imshow(one.weights, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(one.source)), [_shown(word) for word in one.source], rotation=90, fontsize=_face(one))
    axes.set_yticks(range(len(one.target)), [_shown(word) for word in one.target], fontsize=0.82 * LINE)
    axes.tick_params(length=0, pad=2)
    axes.spines[:].set(visible=True, color=style.PALE)


def _shown(word: str) -> str:
    text = word if len(word) <= LETTERS else f"{word[: LETTERS - 1]}…"
    return (text or "␣").replace("$", r"\$")


def _paint_entropies(axes: Axes, one: Aligned, most: float) -> None:
    rows = np.arange(len(one.target))
    axes.barh(rows, one.entropy, height=0.62, color=style.COLOURS[1])
    if one.heads.shape[:2] != (1, 1):
        axes.plot(one.own_entropy, rows, "o", ms=2.6, mew=0, color=style.COLOURS[2])
    axes.axvline(math.log(len(one.source)), color=style.SOFT, lw=0.8, ls=style.DASHES[2])
    axes.set(xlim=(0, most), xticks=range(int(most) + 1))
    axes.tick_params(axis="x", labelsize=6.5, length=2, pad=1)
    axes.tick_params(axis="y", length=0, labelleft=False)
    axes.spines["left"].set_color(style.PALE)
    axes.set_xlabel("entropy (nats)", fontsize=6.5, labelpad=1)


def _about(found: Compared) -> str:
    sentences = ", ".join(one.about for one, _ in found.sentences)
    text = (
        f"Columns: words of the source, from above {sentences}. Rows: words as each system wrote them. White is 0, "
        "darkest blue 1. Bars: the entropy of a row as it is drawn; dotted: a look at all words alike. Orange: the "
        "mean of the heads’ own entropies; heads that look at different words are flat on average. Weights of tokens: "
        f"keys summed, queries averaged; kept in a byte each. {told_runs({'runs': [*map(whose, found.runs)]})}"
    )
    return "\n".join(textwrap.wrap(text, 132))
