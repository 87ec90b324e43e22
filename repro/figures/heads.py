"""Pictures of the attention weights that finished runs left (`repro/results/artifacts.py`), without any checkpoint.

`soft_alignment` shows where the ladder's soft alignment looks during translation, beside the base on the same sources
(Bahdanau et al. 2015; section 3.2.3): by word, summed over the pieces of a key word, averaged over those of a query
word. `head_similarity` shows how similar the heads of one model are, within a layer and between layers (section 3.2.2);
heads with the same attention have a cosine of 1.

    L layers    H heads    Q queries: words written    K keys: words of the source
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.decoding.inside import entropies
from repro.figures import style
from repro.figures.attention_maps import merged_to_words
from repro.figures.style import Axes, Drawn, Figure
from repro.figures.trained import told_runs, whose
from repro.results.artifacts import seen_sentences
from repro.results.frame import interval
from repro.results.record import Record

Array = NDArray[np.float64]
TABLE, ROW = "ladder", "soft alignment"
ROWS = TABLE, f' --rows base "{ROW}"'  # that the picture needs
WEIGHTS = "its attention weights (a file .inside.gz beside its record)"
MOST = 4  # sentences
LETTERS = 14  # longer words are cut to this length


# ---- soft alignment beside the base


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


Both = list[tuple[Aligned, Aligned]]  # the same sentences by a run of each system


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


def compared_alignments(
    rows: Sequence[Record], base: Sequence[Record], results: Path
) -> tuple[tuple[Record, Record], Both]:
    """The run of soft alignment with the lowest seed, and a run of the base, of the same seed if possible."""
    of_row = [record for record in rows if record.row == ROW]
    first = next(aligned_sentences(of_row, results), None)
    if first is None:
        raise style.Missing(f"no run of committed code of the row {ROW!r} of {TABLE} left {WEIGHTS}", *ROWS)
    record, own = first
    for other, theirs in sorted(aligned_sentences(base, results), key=lambda run: run[0].seed != record.seed):
        same = {(one.about, *one.source): one for one in theirs}
        both = [(one, same[key]) for one in own if (key := (one.about, *one.source)) in same]
        if both:
            return (record, other), both[:MOST]
    lacks = f"no run of committed code of the base row left {WEIGHTS} on the sentences of {ROW}, run {record.run}"
    raise style.Missing(lacks, *ROWS)


# in points of 1/72 inch

LABELS, STRIP, GAP, RIGHT = 57.0, 42.0, 4.0, 8.0  # room for words written; for entropies; between; at the edge
ABOVE, BELOW, TOP, ROOM, LINE = 9.0, 24.0, 18.0, 76.0, 7.8  # above words; for numbers; title; caption; a row
PANEL = (72 * style.WIDTH - 2 * (LABELS + GAP + STRIP + RIGHT)) / 2
LETTER = 0.53  # of the size of a face: how wide a letter is, and a little more


def draw_alignments(rows: Sequence[Record], base: Sequence[Record], results: Path) -> Drawn:
    """The picture of both systems."""
    return [paint_alignments(*compared_alignments(rows, base, results))]


def paint_alignments(runs: Sequence[Record], sentences: Both) -> Figure:
    """Both systems side by side for each sentence: target by source words, and the entropy of each row."""
    width, height = (
        72 * style.WIDTH,
        TOP + ROOM + sum(_above(pair[0]) + BELOW + LINE * _n_rows(pair) for pair in sentences),
    )
    figure = style.figure("soft_alignment", height / 72)
    most = max(math.log(len(one.source)) for one, _ in sentences) * 1.04
    top = height - TOP
    for n, pair in enumerate(sentences):
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
                middle, n_heads = (left + (PANEL + GAP + STRIP) / 2) / width, math.prod(one.heads.shape[:2])
                title = runs[side].row + (f", mean of its {n_heads} heads" if n_heads > 1 else "")
                figure.text(middle, 1 - 4 / height, title, ha="center", va="top", fontsize=10.5)
        top -= LINE * _n_rows(pair) + BELOW
    style.note(figure, _about(runs, sentences))
    return figure


def _face(one: Aligned) -> float:
    """The font size of source words: small enough that no two touch."""
    return min(6.6, 0.82 * PANEL / len(one.source))


def _above(one: Aligned) -> float:
    return ABOVE + LETTER * _face(one) * max(len(_shown(word)) for word in one.source)


def _n_rows(pair: tuple[Aligned, Aligned]) -> int:
    return max(len(one.target) for one in pair)


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


def _about(runs: Sequence[Record], sentences: Both) -> str:
    places = ", ".join(one.about for one, _ in sentences)
    return (
        f"Columns: words of the source, from above {places}. Rows: words as each system wrote them. White is 0, "
        "darkest blue 1. Bars: the entropy of a row as it is drawn; dotted: a look at all words alike. Orange: the "
        "mean of the heads’ own entropies; heads that look at different words are flat on average. Weights of tokens: "
        f"keys summed, queries averaged; kept in a byte each. {told_runs([*map(whose, runs)])}"
    )


# ---- how similar heads are

RUNS_BELOW = 0.14  # the runs are drawn so far below their mean, as a share of the distance between kinds of attention
KINDS = {"encoder": "encoder", "decoder": "decoder, its own words", "cross": "decoder, the source"}


@dataclass(frozen=True)
class Alike:
    """The similarity of heads in one run and one kind of attention."""

    record: Record
    kind: str
    cosines: Array  # [L H, L H], heads of a layer side by side
    n_heads: int
    n_sentences: int

    def mean(self, *, same: bool) -> float | None:
        """Mean over pairs of heads of the same layer or of different ones; None where there is no such pair."""
        layer = np.arange(len(self.cosines)) // self.n_heads
        first, second = np.triu_indices(len(layer), 1)
        pairs = (layer[first] == layer[second]) == same
        return float(self.cosines[first, second][pairs].mean()) if pairs.any() else None


def cosines(sentences: Sequence[Array]) -> Array:
    """Weights [L, H, Q, K] of each sentence -> [L H, L H]: the cosine of every two heads, mean over the sentences."""
    total = np.zeros((1, 1))
    for weights in sentences:
        rows = weights.reshape(weights.shape[0] * weights.shape[1], -1)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        total = total + rows @ rows.T
    return np.asarray(total / len(sentences))


def alike_heads(records: Iterable[Record], results: Path) -> list[Alike]:
    """Similarities for each finished run with stored weights and each kind of attention, by `KINDS`, then by seed."""
    found = []
    for record, sentences in seen_sentences(records, results):
        for kind in KINDS:
            maps = [of[kind] for _, of in sentences if kind in of]
            if maps:
                found.append(Alike(record, kind, cosines(maps), maps[0].shape[1], len(maps)))
    return sorted(found, key=lambda one: [*KINDS].index(one.kind))


def draw_similarity(records: Sequence[Record], results: Path) -> Drawn:
    """The encoder's heads of one run, pair by pair, and the means of all runs for each kind of attention."""
    found = alike_heads(records, results)
    if not found:
        again = "Type the command of a run again, where its checkpoints still are."
        raise ValueError(f"no run of committed code of the base row left {WEIGHTS}. {again}")
    figure, shown = style.figure("head_similarity", 3.6), found[0].record
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    _paint_heads(left, found[0])
    _paint_means(right, found)
    spread = " with its 95 % t-interval" if sum(one.kind == found[0].kind for one in found) > 2 else ""
    style.note(
        figure,
        f"Cosine of the weights of two heads, mean over {found[0].n_sentences} sentences; heads that look at the "
        f"same have 1. Left: scale {shown.scale}, row {shown.row}, seed {shown.seed}.\n"
        f"Right: a small mark for each run, and above them their mean{spread}.\n"
        "A decoder's first words have few others to look at, which makes its heads alike.",
    )
    figure.tight_layout(rect=(0, 0.13, 1, 1), w_pad=2)
    return [figure]


def _paint_heads(axes: Axes, one: Alike) -> None:
    size, n_heads = len(one.cosines), one.n_heads
    image = axes.imshow(one.cosines, cmap="Blues", vmin=0, vmax=1)
    for edge in range(n_heads, size, n_heads):
        axes.axhline(edge - 0.5, color="white", lw=1.5)
        axes.axvline(edge - 0.5, color="white", lw=1.5)
    middles = np.arange(n_heads / 2 - 0.5, size, n_heads)
    names = [f"layer {n + 1}" for n in range(len(middles))]
    axes.set_xticks(middles, names)
    axes.set_yticks(middles, names, rotation=90, va="center")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(f"{n_heads} heads a layer, encoder")
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    bar.outline.set_visible(False)


def _paint_means(axes: Axes, found: Sequence[Alike]) -> None:
    kinds = [kind for kind in KINDS if any(one.kind == kind for one in found)]
    for line, kind in enumerate(kinds):
        runs = [one for one in found if one.kind == kind]
        for shift, same, name, colour, marker in (
            (-0.22, True, "heads of one layer", style.COLOURS[1], "o"),
            (0.18, False, "heads of two layers", style.COLOURS[2], "s"),
        ):
            values = [value for one in runs if (value := one.mean(same=same)) is not None]
            if not values:
                continue
            place, (mean, half) = line + shift, interval(values)
            axes.plot(values, [place + RUNS_BELOW] * len(values), marker, ms=3, alpha=0.5, mew=0, color=colour)
            look: dict[str, Any] = {"fmt": marker, "ms": 5, "elinewidth": 1, "capsize": 3.5, "color": colour}
            axes.errorbar(mean, place, xerr=half, label=None if line else name, **look)
            end = max(max(values), mean + (half or 0)), place
            axes.annotate(f"{mean:.2f}", end, (9, 0), textcoords="offset points", va="center", fontsize=8.5)
    axes.set_yticks(range(len(kinds)), [KINDS[kind] for kind in kinds])
    axes.set(xlim=(0, 1.08), ylim=(len(kinds) - 0.4, -0.5), xlabel="mean cosine")
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, columnspacing=1, handletextpad=0.3)
