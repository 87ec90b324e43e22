"""How similar the heads of one model are, within a layer and between layers. Paper: section 3.2.2.

The data are every head's attention weights on sentences that the model translated, as finished runs stored them
(`repro/results/inside.py`). Heads with the same attention have a cosine of 1.

    L layers    H heads    Q queries    K keys
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from repro.figures import style
from repro.figures.style import Axes, Figure, save_numbers
from repro.results.frame import interval
from repro.results.inside import seen_sentences
from repro.results.record import Record

Array = NDArray[np.float64]
NAME = "head_similarity"
BELOW = 0.14  # the runs are drawn so far below their mean, as a share of the distance between kinds of attention
KINDS = {"encoder": "encoder", "decoder": "decoder, its own words", "cross": "decoder, the source"}


@dataclass(frozen=True)
class Alike:
    """The similarity of heads in one run and one kind of attention."""

    record: Record
    kind: str
    cosines: Array  # [L H, L H], heads of a layer side by side
    n_heads: int
    n_sentences: int

    @property
    def within(self) -> float | None:
        """Mean over pairs of heads of the same layer; None where a layer has only one head."""
        return self._mean(same=True)

    @property
    def between(self) -> float | None:
        """Mean over pairs of heads of different layers; None for a single layer."""
        return self._mean(same=False)

    def place(self, number: int) -> tuple[int, int]:
        """Layer and head of a row of `cosines`, each from 1."""
        return number // self.n_heads + 1, number % self.n_heads + 1

    def _mean(self, *, same: bool) -> float | None:
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


def draw_similarity(to: Path, records: Sequence[Record], results: Path) -> list[Path]:
    """Draw the encoder's heads of one run, pair by pair, and the means of all runs for each kind of attention."""
    found = alike_heads(records, results)
    if not found:
        raise ValueError(
            "no run of committed code of the base row left its attention weights (a file .inside.gz beside its "
            "record). Type the command of a run again, where its checkpoints still are."
        )

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
        _paint_heads(left, found[0])
        _paint_means(right, found)
        shown = found[0].record
        spread = " with its 95 % t-interval" if sum(one.kind == found[0].kind for one in found) > 2 else ""
        style.note(
            figure,
            f"Cosine of the weights of two heads, mean over {found[0].n_sentences} sentences; heads that look at the "
            f"same have 1. Left: scale {shown.scale}, row {shown.row}, seed {shown.seed}.\n"
            f"Right: a small mark for each run, and above them their mean{spread}.\n"
            "A decoder's first words have few others to look at, which makes its heads alike.",
        )
        figure.tight_layout(rect=(0, 0.13, 1, 1), w_pad=2)

    rows = [
        (one.record.seed, one.kind, *one.place(a), *one.place(b), float(one.cosines[a, b]))
        for one in found
        for a in range(len(one.cosines))
        for b in range(a)
    ]
    columns = ("seed", "attention", "layer", "head", "other layer", "other head", "cosine")
    return [style.save_figure(to, NAME, (style.WIDTH, 3.6), paint), save_numbers(to, NAME, columns, rows)]


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
        for shift, name, colour, marker in ((-0.22, "within", 1, "o"), (0.18, "between", 2, "s")):
            values = [value for one in runs if (value := getattr(one, name)) is not None]
            if not values:
                continue
            place = line + shift
            axes.plot(
                values, [place + BELOW] * len(values), marker, ms=3, alpha=0.5, mew=0, color=style.COLOURS[colour]
            )
            mean, half = interval(values)
            axes.errorbar(
                mean, place, xerr=half, fmt=marker, ms=5, elinewidth=1, capsize=3.5, color=style.COLOURS[colour],
                label={"within": "heads of one layer", "between": "heads of two layers"}[name] if line == 0 else None,
            )  # fmt: skip
            axes.annotate(
                f"{mean:.2f}", (max(max(values), mean + (half or 0)), place), (9, 0), textcoords="offset points",
                va="center", fontsize=8.5,
            )  # fmt: skip
    axes.set_yticks(range(len(kinds)), [KINDS[kind] for kind in kinds])
    axes.set(xlim=(0, 1.08), ylim=(len(kinds) - 0.4, -0.5), xlabel="mean cosine")
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, columnspacing=1, handletextpad=0.3)
