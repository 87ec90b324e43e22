"""The cost of quality: BLEU over training operations, for rows of Table 3 that differ in them. Paper: Table 2."""

import functools
import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.claims.decisions import MIN_RUNS
from repro.figures import style
from repro.figures.style import Axes, Figure
from repro.results.curves import rows_of
from repro.results.frame import interval
from repro.results.labels import label
from repro.results.record import BASE, Record

SAME_COST = 0.02  # relative difference to the base below which a row costs the same
# directions from a point in steps of 15 degrees: right, left, then steeper; never straight above or below, where the
# other rows of the same cost are
TURNS = (0, 12, 1, 23, 11, 13, 2, 22, 10, 14, 3, 21, 9, 15, 4, 20, 8, 16)


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
    return [style.save_figure(folder, "quality_and_cost", (style.WIDTH, 4.4), paint)]


def _paint(figure: Figure, found: Sequence[Point], left_out: Sequence[Point]) -> None:
    axes = figure.subplots()
    _points(axes, found)
    axes.set(ylabel="BLEU (dev, sacreBLEU)", xscale="log")
    axes.grid(True)
    _room(axes, found)
    axes.set_xlabel(_under("training cost (FLOPs)", found, left_out))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=8, columnspacing=1.2, handletextpad=0.2)
    figure.tight_layout()
    _labels(axes, found)


def _under(cost: str, found: Sequence[Point], left_out: Sequence[Point]) -> str:
    """The axis label, the rows not shown, and the sizes here of rows that are named after the paper's sizes."""
    others = ", ".join(point.label for point in found if point.label not in ("", point.row))
    named = f"Rows bear the paper's names: {others}." if others else ""
    rows = ", ".join(point.label or point.row for point in left_out)
    same = f"Not shown, for their cost is the base's to {100 * SAME_COST:.0f} %: {rows}." if rows else ""
    bars = "" if all(map(_is_hollow, found)) else "Points are means over seeds, bars their 95 % t-intervals."
    hollow = "Hollow: fewer than three runs." if any(map(_is_hollow, found)) else ""
    lines = [line for said in (f"{bars} {hollow}".strip(), named, same) for line in textwrap.wrap(said, 110)]
    return "\n".join([cost, *([""] if lines else []), *map(style.symbols, lines)])


def _points(axes: Axes, found: Sequence[Point]) -> None:
    for i, table in enumerate(dict.fromkeys(point.table for point in found)):
        colour, is_base = style.COLOURS[i % len(style.COLOURS)], table == BASE
        look: dict[str, Any] = {"marker": style.MARKERS[i % len(style.MARKERS)], "color": colour, "lw": 0}
        look |= {"ms": 7.5 if is_base else 6.5, "zorder": 4 if is_base else 3}
        full: dict[str, Any] = {"mec": "white", "mew": 0.5}
        hollow: dict[str, Any] = {"mfc": "white", "mec": colour, "mew": 1.1}
        axes.plot([], [], **look, **full, label=table.replace("table3_", "Table 3 "))
        for point in (one for one in found if one.table == table):
            x, y, half_width = point.flops, point.mean, point.high - point.mean
            axes.plot(x, y, **look, **(hollow if _is_hollow(point) else full))
            if not _is_hollow(point):
                axes.errorbar(x, y, half_width, fmt="none", color=colour, elinewidth=0.9, capsize=2.5, zorder=2)


def _is_hollow(point: Point) -> bool:
    """Whether a point has too few runs for an interval."""
    return point.n < MIN_RUNS


def _room(axes: Axes, found: Sequence[Point]) -> None:
    """Make the axes wider than the points need, so that labels stay inside."""
    costs = [point.flops for point in found]
    spread = max(1.6, max(costs) / min(costs)) ** 0.12
    axes.set_xlim(min(costs) / spread, max(costs) * spread)
    axes.margins(y=0.08)


@dataclass(frozen=True)
class Area:
    """A rectangle on the paper, in pixels."""

    left: float
    low: float
    right: float
    high: float

    def meets(self, other: "Area") -> bool:
        return self.left < other.right and other.left < self.right and self.low < other.high and other.low < self.high

    def inside(self, other: "Area") -> bool:
        return (
            other.left <= self.left and self.right <= other.right and other.low <= self.low and self.high <= other.high
        )


def leader(at: tuple[float, float], label: Area) -> list[Area]:
    """The line from a point to its label, as a chain of small areas that other labels keep away from."""
    end = nearest(at, label)
    n = 2 + int(math.dist(at, end) / 3)  # closer together than a line of text is high
    spots = [(at[0] + i / n * (end[0] - at[0]), at[1] + i / n * (end[1] - at[1])) for i in range(1, n + 1)]
    return [Area(x - 1, y - 1, x + 1, y + 1) for x, y in spots]


def nearest(at: tuple[float, float], label: Area) -> tuple[float, float]:
    """The place on a label that is nearest to a point."""
    return min(max(at[0], label.left), label.right), min(max(at[1], label.low), label.high)


def placed(
    at: tuple[float, float],
    size: tuple[float, float],
    marks: Sequence[Area],
    labels: Sequence[Area],
    within: Area,
    unit: float,
) -> Area:
    """The nearest free place for a label of `size` beside the point `at`.

    The label covers no marks or labels, and none lie on its line to the point. If there is no such place, the line may
    be steep, then cross others; at last any place will do. Places are tried in rings; `unit` is a step outwards.
    """
    (x, y), (width, height) = at, size
    beside = [mark for mark in marks if not mark.left < x < mark.right]  # a line leaves those of its own cost at once
    tried, free, clear = list[Area](), list[Area](), list[Area]()
    for ring in range(1, 26):
        away = unit * (0.6 + ring * 0.8)
        for turn in TURNS:
            across, up = math.cos(turn * math.pi / 12), math.sin(turn * math.pi / 12)
            left, low = x + across * (away + width / 2) - width / 2, y + up * (away + height / 2) - height / 2
            area = Area(left, low, left + width, low + height)
            tried.append(area)
            covers = any(map(area.meets, (*marks, *labels)))
            crosses = any(spot.meets(other) for spot in leader(at, area) for other in (*labels, *beside))
            end = nearest(at, area)
            steep = abs(end[1] - y) > 1.5 * abs(end[0] - x)  # it would run through the rows above or below
            if area.inside(within) and not covers:
                if not (crosses or steep):
                    return area
                (free if crosses else clear).append(area)
    return [*clear, *free, *tried][0]


def _labels(axes: Axes, found: Sequence[Point]) -> None:
    """Write the name of each row where it covers nothing, with a thin line to the point if it is not next to it."""
    figure = axes.figure
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    unit = figure.dpi / 72 * 5
    frame = axes.get_window_extent(renderer)
    within = Area(frame.x0 + 2, frame.y0 + 2, frame.x1 - 2, frame.y1 - 2)
    marks = []
    for point in found:
        low, middle, high = (axes.transData.transform((point.flops, y)) for y in (point.low, point.mean, point.high))
        x, reach = middle[0], 0.8 * unit
        marks.append(Area(x - reach, min(low[1], middle[1] - reach), x + reach, max(high[1], middle[1] + reach)))
    back, taken = axes.transData.inverted(), list[Area]()
    # the base gets the place next to it; the others follow in an order in which the lines of a column do not cross
    for point in sorted(found, key=lambda point: (point.table != BASE, point.mean)):
        at = tuple(axes.transData.transform((point.flops, point.mean)))
        text = axes.text(0, 0, style.symbols(point.row), fontsize=8.5, va="center", ha="center", zorder=6)
        drawn = text.get_window_extent(renderer)
        area = placed(at, (drawn.width + 2, drawn.height + 3), marks, taken, within, unit)
        text.set_position(tuple(back.transform(((area.left + area.right) / 2, (area.low + area.high) / 2))))
        taken.append(area)
        if math.dist(nearest(at, area), at) > 1.6 * unit:
            ends = back.transform([at, nearest(at, area)])
            axes.plot(ends[:, 0], ends[:, 1], color=style.SOFT, lw=0.5, zorder=1)
            taken += leader(at, area)
