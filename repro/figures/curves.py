"""How the rows of a table learned, from their records alone."""

import functools
import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from repro.figures import style
from repro.figures.numbers import save_numbers
from repro.results.labels import label
from repro.results.record import BASE, Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["train", "dev"]


@dataclass(frozen=True)
class Band:
    """The loss of one row over its seeds, in nats per word-piece, unsmoothed."""

    row: str
    n: int  # finished runs
    step: tuple[float, ...]  # that all of them have
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def rows_of(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Finished runs by row: base first, then the paper's order. Uncommitted code is in no figure, as in no table."""
    rows: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: (record.table != BASE, record.position, record.row, record.seed)):
        if record.status == "finished" and not record.stamp["dirty"]:
            rows.setdefault(record.row, []).append(record)
    return rows


def bands(records: Iterable[Record], kind: Kind) -> list[Band]:
    """One band for each row."""
    found = (_band_of(runs, kind) for runs in rows_of(records).values())
    return [band for band in found if band.step]


def _band_of(runs: Sequence[Record], kind: Kind) -> Band:
    """That of one row; without a step where its runs share none."""
    curves = [dict(zip(run.curves[kind]["step"], run.curves[kind]["nll"], strict=True)) for run in runs]
    steps = tuple(sorted(set.intersection(*(set(curve) for curve in curves))))
    at = [[curve[step] for curve in curves] for step in steps]
    mean, low, high = tuple(map(statistics.fmean, at)), tuple(map(min, at)), tuple(map(max, at))
    return Band(label(runs[0].row, runs[0].hyper), len(runs), steps, mean, low, high)


def draw_curves(folder: Path, table: str, records: Sequence[Record]) -> list[Path]:
    """The training loss of every row of a table, and that of dev."""
    train, dev = bands(records, "train"), bands(records, "dev")
    if not train and not dev:
        raise ValueError(f"{table}: no finished run of committed code, so no curve. Run experiments/{table}.py.")
    paint = functools.partial(_paint, train=train, dev=dev, title=_title(table, records[0].scale, [*train, *dev]))
    return style.save_figure(folder, f"curves_{table}", (style.WIDTH, 3.2), paint)


def over_operations(records: Iterable[Record]) -> list[Band]:
    """The dev loss of each row over the operations of training so far, in FLOPs, as its runs counted them."""
    found = []
    for runs in rows_of(records).values():
        of_update = statistics.fmean(run.cost["flops"] / run.cost["steps"] for run in runs)
        band = _band_of(runs, "dev")
        found.append(replace(band, step=tuple(step * of_update for step in band.step)))
    return [band for band in found if band.step]


def crossings(one: Band, other: Band) -> list[float]:
    """Where the means of two rows cross, on straight lines between what was measured, as far as both go."""
    begin, end = max(one.step[0], other.step[0]), min(one.step[-1], other.step[-1])
    at = sorted({x for x in (*one.step, *other.step) if begin <= x <= end})
    gaps = [_between(one, x) - _between(other, x) for x in at]
    return [
        x + (x_next - x) * gap / (gap - gap_next)
        for (x, gap), (x_next, gap_next) in itertools.pairwise(zip(at, gaps, strict=True))
        if gap * gap_next < 0
    ]


def _between(band: Band, x: float) -> float:
    import numpy as np

    return float(np.interp(x, band.step, band.mean))


def draw_over_operations(folder: Path, table: str, records: Sequence[Record]) -> list[Path]:
    """The dev loss of all rows over updates and over operations, and where they cross the base."""
    updates, operations = bands(records, "dev"), over_operations(records)
    if len(updates) < 2 or updates[0].row != BASE:
        raise ValueError(f"{table}: no base beside another row, so nothing to compare. Run experiments/{table}.py.")
    said = [_crossing(updates[0], one, "updates", ",.0f") for one in updates[1:]]
    said += [_crossing(operations[0], one, "FLOPs", ".2g") for one in operations[1:]]
    columns = ("row", "seeds", "update", "FLOPs", "dev loss", "lowest", "highest")
    rows = [
        (band.row, band.n, step, flops, *of)
        for band, other in zip(updates, operations, strict=True)
        for step, flops, *of in zip(band.step, other.step, band.mean, band.low, band.high, strict=True)
    ]
    name = f"operations_{table}"
    title = _title(table, records[0].scale, updates)
    paint = functools.partial(_paint_operations, updates=updates, operations=operations, title=title)
    return [
        *style.save_figure(folder, name, (style.WIDTH, 3.6), paint),
        save_numbers(folder, name, columns, rows),
        save_numbers(folder, f"crossings_{table}", ("row", "over", "crosses the base at"), said),
    ]


def _crossing(base: Band, other: Band, over: str, form: str) -> tuple[str, str, str]:
    places = ", ".join(format(x, form) for x in crossings(base, other))
    return other.row, over, places or "nowhere"


def _paint_operations(figure: "Figure", updates: Sequence[Band], operations: Sequence[Band], title: str) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, found, name in ((left, updates, "optimizer step"), (right, operations, "FLOPs of training")):
        for i, band in enumerate(found):
            _band(axes, band, i, dots=True)
        axes.set(xlabel=name, yscale="log")
        _plain_ticks(axes)
        axes.grid(True)
    left.set_ylabel("dev loss (nats per word-piece, unsmoothed)")
    _legend(figure, left, title)


def _title(table: str, scale: str, found: Sequence[Band]) -> str:
    most = max(band.n for band in found)
    spread = f"; mean of up to {most} seeds, band from the lowest to the highest" if most > 1 else "; one seed a row"
    return f"{table}, scale {scale}{spread}"


def _paint(figure: "Figure", train: Sequence[Band], dev: Sequence[Band], title: str) -> None:
    left, right = figure.subplots(1, 2)
    for axes, found, name in ((left, train, "training text"), (right, dev, "dev")):
        for i, band in enumerate(found):
            _band(axes, band, i, dots=name == "dev")
        axes.set(xlabel="optimizer step", title=name, yscale="log")
        _plain_ticks(axes)
        axes.grid(True)
    left.set_ylabel("loss (nats per word-piece, unsmoothed)")
    _legend(figure, right, title)


def _legend(figure: "Figure", axes: "Axes", title: str) -> None:
    style.legend_below(figure, axes, w_pad=1.5, title=title, handlelength=3.2, columnspacing=1.4)


def _band(axes: "Axes", band: Band, i: int, *, dots: bool) -> None:
    """The mean, and what lies between the best and the worst seed."""
    look = style.look(i)
    if band.n > 1:
        axes.fill_between(band.step, band.low, band.high, color=look["color"], alpha=0.18, lw=0)
    axes.plot(
        band.step,
        band.mean,
        **(look if dots else look | {"marker": None}),
        ms=3.6,
        lw=2 if band.row == BASE else 1.3,
        label=style.symbols(band.row),
    )


def _plain_ticks(axes: "Axes") -> None:
    """1, 1.5, 2 as they are written, not as powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.locator_params(axis="x", nbins=5)
