"""What a system forgets: BLEU by the length of the source, and by the place in the translation. Paper: section 1.

A line a row, from the counts beside the records (`repro/results/parts.py`). Dots are means over seeds, bars their 95 %
t-intervals where there are three runs and more.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from repro.figures import style
from repro.figures.numbers import save_numbers
from repro.results.curves import rows_of
from repro.results.frame import interval
from repro.results.labels import command_of, label
from repro.results.parts import LENGTHS, PLACES, SPLIT, THIRDS, bleu_of_parts
from repro.results.record import BASE, Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BESIDE = 0.36  # of the way from one third to the next: as far as the points of all rows go beside each other


@dataclass(frozen=True)
class Fading:
    """BLEU of one row by its parts, in the order of `THIRDS`: a value a run."""

    row: str
    place: int  # in its table, as in the other pictures of it: what its line looks like
    parts: tuple[tuple[float, ...], ...]  # [6][runs]

    @property
    def mean(self) -> float:
        """Over all parts and runs: what lines are ordered by."""
        return statistics.fmean(value for part in self.parts for value in part)


def fading_rows(records: Sequence[Record], results: Path) -> list[Fading]:
    """Of each row whose runs all have counts of parts: the base first, then the best first."""
    found = []
    for place, runs in enumerate(rows_of(records).values()):
        parts = [bleu_of_parts(run, results) for run in runs]
        whole = [part for part in parts if part is not None]
        if len(whole) == len(parts):
            values = tuple(tuple(part[name] for part in whole) for name in THIRDS)
            found.append(Fading(label(runs[0].row, runs[0].hyper), place, values))
    return sorted(found, key=lambda row: (row.row != BASE, -row.mean))


def draw_fading(to: Path, table: str, records: Sequence[Record], results: Path) -> list[Path]:
    """Both panels of a table. Raises ValueError where no row has what it takes."""
    found = fading_rows(records, results)
    if not found:
        raise ValueError(
            f"no run has its counts by length beside its record. Run `{command_of(table, records[0].scale)}`."
        )

    def paint(figure: "Figure") -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        half = len(LENGTHS)
        for axes, begin, names, title in (
            (left, 0, LENGTHS, "by the length of the source"),
            (right, half, PLACES, "by the place in the translation"),
        ):
            for i, row in enumerate(found):
                _paint(axes, row, row.parts[begin : begin + half], i, len(found))
            axes.set_xticks(range(half), [f"{name} third" for name in names])
            axes.set(title=title, xlim=(-0.25, half - 0.75))
            axes.grid(True, axis="y")
        left.set_ylabel(f"BLEU ({SPLIT})")
        left.set_ylim(bottom=0)
        style.legend_below(figure, left, w_pad=2, handlelength=2.6)

    rows = [
        (row.row, "length" if i < len(LENGTHS) else "place", (*LENGTHS, *PLACES)[i], len(values), *interval(values))
        for row in found
        for i, values in enumerate(row.parts)
    ]
    name = f"fading_{table}"
    return [
        style.save_figure(to, name, (style.WIDTH, 3.2), paint),
        save_numbers(to, name, ("row", "by", "third", "seeds", "BLEU", "±"), rows),
    ]


def _paint(axes: "Axes", row: Fading, parts: Sequence[Sequence[float]], i: int, n_rows: int) -> None:
    shift = min(0.02, BESIDE / max(1, n_rows - 1)) * (i - (n_rows - 1) / 2)
    places = [place + shift for place in range(len(parts))]
    means, halves = zip(*map(interval, parts), strict=True)
    look = style.look(row.place)
    axes.plot(places, means, **look, label=style.symbols(row.row))
    if all(half is not None for half in halves):
        axes.errorbar(places, means, yerr=halves, fmt="none", ecolor=look["color"], elinewidth=0.9, capsize=2)
