"""What a system forgets: BLEU by the length of the source, and by the place in the translation. Paper: section 1.

There is one line per row, from the counts beside the records (`repro/results/parts.py`). Points are means over seeds;
bars show the same spread as the tables.
"""

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.figures import style
from repro.figures.curves import names_of
from repro.figures.style import Axes, Figure, save_numbers
from repro.results.curves import rows_of
from repro.results.frame import ends_of, half_shown, interval
from repro.results.labels import command_of, label
from repro.results.parts import LENGTHS, PLACES, SPLIT, THIRDS, bleu_of_parts
from repro.results.record import BASE, Record

TITLES = ("by length of the source", "by place in the translation")
ACROSS = ("third of the sources", "third of the translation")
BESIDE = 0.36  # width over which the points of all rows are spread, as a share of the way between two thirds


@dataclass(frozen=True)
class Fading:
    """BLEU of one row by its parts, in the order of `THIRDS`, one value per run."""

    row: str
    parts: tuple[tuple[float, ...], ...]  # [6][runs]

    @property
    def mean(self) -> float:
        """The mean over all parts and runs, by which lines are ordered."""
        return statistics.fmean(value for part in self.parts for value in part)


def fading_rows(records: Sequence[Record], results: Path) -> list[Fading]:
    """The rows whose runs all have counts of parts: the base first, then by descending mean."""
    found = []
    for runs in rows_of(records).values():
        parts = [bleu_of_parts(run, results) for run in runs]
        whole = [part for part in parts if part is not None]
        if len(whole) == len(parts):
            values = tuple(tuple(part[name] for part in whole) for name in THIRDS)
            found.append(Fading(label(runs[0].row, runs[0].hyper), values))
    return sorted(found, key=lambda row: (row.row != BASE, -row.mean))


def draw_fading(to: Path, table: str, records: Sequence[Record], results: Path) -> list[Path]:
    """Draw both panels of a table. Raises ValueError where no row has the counts."""
    found = fading_rows(records, results)
    if not found:
        raise ValueError(
            f"no run has its counts by length beside its record. Run `{command_of(table, records[0].scale)}`."
        )
    numbers = [
        (row.row, "length" if i < len(LENGTHS) else "place", (*LENGTHS, *PLACES)[i], *_numbers(values))
        for row in found
        for i, values in enumerate(row.parts)
    ]
    name, columns = f"fading_{table}", ("row", "by", "third", "seeds", "BLEU", "±", "lowest", "highest")
    files = [save_numbers(to, name, columns, numbers)]
    looks = style.looks(names_of(records), [row.row for row in found])
    title = textwrap.fill(f"{table}, scale {records[0].scale}; {_told(found)}", 105)

    def paint(figure: Figure) -> None:
        half = len(LENGTHS)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, begin, names, above, across in zip(panels, (0, half), (LENGTHS, PLACES), TITLES, ACROSS, strict=True):
            for i, row in enumerate(found):
                _paint(axes, row.parts[begin : begin + half], looks[row.row], i, len(found))
            axes.set_xticks(range(half), names)
            axes.set(xlim=(-0.25, half - 0.75), title=above, xlabel=across)
            axes.grid(True, axis="y")
            axes.locator_params(axis="y", nbins=9)
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel(f"BLEU ({SPLIT})")
        style.legend_below(figure, looks.values(), w_pad=2, handlelength=2.6, title=title)

    return [style.save_figure(to, name, (style.WIDTH, 3.2), paint), *files]


def whisker(values: Sequence[float]) -> tuple[float, float]:
    """The ends of the bar, as in the tables: those of the 95 % t-interval, or else the lowest and highest seed."""
    return ends_of(*interval(values), min(values), max(values))


def _numbers(values: Sequence[float]) -> tuple[int, float, float | None, float, float]:
    mean, half = interval(values)
    return len(values), mean, half_shown(mean, half), min(values), max(values)


def _told(found: Sequence[Fading]) -> str:
    """The explanation of the points and bars that occur."""
    every = [values for row in found for values in row.parts]
    several = [values for values in every if len(values) > 1]
    if not several:
        return "one seed a row"
    cases = {
        "of two seeds": any(len(values) == 2 for values in several),
        "where it would reach below zero": any(
            len(values) > 2 and half_shown(*interval(values)) is None for values in several
        ),
    }
    where = " and ".join(case for case, occurs in cases.items() if occurs)
    ends = f", but {where} from the lowest seed to the highest" if where else ""
    alone = "; one seed has none" if len(several) < len(every) else ""
    return f"mean over seeds, bars: its 95 % t-interval{ends}{alone}"


def _paint(axes: Axes, parts: Sequence[Sequence[float]], look: Mapping[str, Any], i: int, n_rows: int) -> None:
    shift = min(0.02, BESIDE / max(1, n_rows - 1)) * (i - (n_rows - 1) / 2)
    places = [place + shift for place in range(len(parts))]
    means = [statistics.fmean(values) for values in parts]
    axes.plot(places, means, **look)
    if len(parts[0]) > 1:
        ends = [(mean - low, high - mean) for mean, (low, high) in zip(means, map(whisker, parts), strict=True)]
        how = {"fmt": "none", "ecolor": look["color"], "elinewidth": 0.9, "capsize": 2}
        axes.errorbar(places, means, yerr=[*zip(*ends, strict=True)], **how)
