"""The cost of quality: BLEU over training operations, for rows of Table 3 that differ in them. Paper: Table 2."""

import functools
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.claims.decisions import MIN_RUNS
from repro.figures import style
from repro.figures.style import Figure
from repro.results.details import rows_of
from repro.results.frame import interval
from repro.results.labels import label
from repro.results.record import BASE, Record

SAME_COST = 0.02  # relative difference to the base below which a row costs the same


@dataclass(frozen=True)
class Point:
    """One row in the picture."""

    table: str
    row: str
    n: int
    flops: float  # of one training, mean over seeds
    mean: float
    low: float  # end of the 95 % t-interval for three or more seeds, else the mean
    high: float
    label: str = ""  # the name with its value at this scale, too long for the picture itself

    @property
    def is_hollow(self) -> bool:
        """Whether it has too few runs for an interval."""
        return self.n < MIN_RUNS


def points(records: Iterable[Record], score: str) -> list[Point]:
    """The rows of all tables that have finished runs, base first."""
    tables: dict[str, list[Record]] = {}
    for record in records:
        tables.setdefault(record.table, []).append(record)
    found = []
    for table in sorted(tables, key=lambda name: (name != BASE, name)):
        for row, runs in rows_of(tables[table]).items():
            values = [value for run in runs if (value := run.score("dev", score)) is not None]  # as finished runs have
            mean, half_width = interval(values)
            low, high = mean - (half_width or 0.0), mean + (half_width or 0.0)
            flops = statistics.fmean(run.cost["flops"] for run in runs)
            found.append(Point(table, row, len(runs), flops, mean, low, high, label(row, runs[0].hyper)))
    return found


def of_other_cost(found: Sequence[Point]) -> list[Point]:
    """The base, and the rows that cost more or less than it; for the others there is no cost to compare."""
    base = [point.flops for point in found if point.table == BASE]
    return [point for point in found if point.table == BASE or not base or abs(point.flops / base[0] - 1) > SAME_COST]


def draw_quality(folder: Path, records: Sequence[Record], *, command: str) -> list[Path]:
    """Draw dev BLEU against training FLOPs, a point for each row that differs in them from the base.

    Raises ValueError, which names the command to run, where no row does.
    """
    every = points(records, "bleu")
    found = of_other_cost(every)
    if len(found) < 2:
        there = f", only of {found[0].row}" if found else ""
        raise ValueError(f"no finished runs of committed code of two rows that differ in cost{there}. Run `{command}`.")
    paint = functools.partial(_paint, found=found, left_out=[point for point in every if point not in found])
    return style.save_figure(folder, "quality_and_cost", (style.WIDTH, 4.4), paint)


def _paint(figure: Figure, found: Sequence[Point], left_out: Sequence[Point]) -> None:
    axes = figure.subplots()
    for i, point in enumerate(found):
        look: dict[str, Any] = style.look(i) | {"ls": "none", "ms": 6.5, "label": style.symbols(point.row)}
        look |= {"mfc": "white" if point.is_hollow else None, "elinewidth": 0.9, "capsize": 2.5}
        axes.errorbar(point.flops, point.mean, None if point.is_hollow else point.high - point.mean, **look)
    axes.set(ylabel="BLEU (dev, sacreBLEU)", xscale="log")
    axes.set_xlabel(_under("training cost (FLOPs)", found, left_out))
    axes.margins(0.08)
    axes.grid(True)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()


def _under(cost: str, found: Sequence[Point], left_out: Sequence[Point]) -> str:
    """The axis label, the rows not shown, and the sizes here of rows that are named after the paper's sizes."""
    others = ", ".join(point.label for point in found if point.label not in ("", point.row))
    named = f"Rows bear the paper's names: {others}." if others else ""
    rows = ", ".join(point.label or point.row for point in left_out)
    same = f"Not shown, for their cost is the base's to {100 * SAME_COST:.0f} %: {rows}." if rows else ""
    hollow = [point.is_hollow for point in found]
    bars = ["Points are means over seeds, bars their 95 % t-intervals."] * (not all(hollow))
    bars += ["Hollow: fewer than three runs."] * any(hollow)
    lines = [line for said in (" ".join(bars), named, same) for line in textwrap.wrap(said, 95)]
    return "\n".join([cost, *([""] if lines else []), *map(style.symbols, lines)])
