"""How the rows of a table learned, from their records alone."""

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from repro.figures import style
from repro.figures.numbers import save_numbers
from repro.results.curves import Band, bands, compared, over_operations, rows_of
from repro.results.labels import command_of
from repro.results.record import BASE, Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TICKS = {  # by how many times the highest loss of an axis is its lowest: what of each decade has a tick
    3.0: (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
    8.0: (1, 1.5, 2, 2.5, 3, 4, 5, 7),
    math.inf: (1, 1.5, 2, 3, 5, 7),
}


def draw_curves(folder: Path, table: str, records: Sequence[Record]) -> list[Path]:
    """The training loss of every row of a table, and that of dev."""
    train, dev = bands(records, "train"), bands(records, "dev")
    if not train and not dev:
        raise ValueError(
            f"no finished run of committed code, so no curve. Run `{command_of(table, records[0].scale)}`."
        )
    paint = functools.partial(_paint, train=train, dev=dev, title=_title(table, records[0].scale, [*train, *dev]))
    return [style.save_figure(folder, f"curves_{table}", (style.WIDTH, 3.2), paint)]


def draw_over_operations(folder: Path, table: str, records: Sequence[Record]) -> list[Path]:
    """The dev loss of all rows over updates and over operations, and where they cross the Transformer's."""
    updates, operations = bands(records, "dev"), over_operations(records)
    if len(updates) < 2 or updates[0].row != BASE:
        raise ValueError(
            f"no base beside another row, so nothing to compare. Run `{command_of(table, records[0].scale)}`."
        )
    found = [one for of in compared([*rows_of(records).values()]).values() for one in of]
    said = [(one.row, one.beside, one.over, one.places(), one.gap) for one in found]
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
        style.save_figure(folder, name, (style.WIDTH, 3.6), paint),
        save_numbers(folder, name, columns, rows),
        save_numbers(
            folder, f"crossings_{table}", ("row", "beside", "over", "cross at", "difference at the end"), said
        ),
    ]


def _paint_operations(figure: "Figure", updates: Sequence[Band], operations: Sequence[Band], title: str) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, found, name in ((left, updates, "update"), (right, operations, "FLOPs of training")):
        for i, band in enumerate(found):
            _band(axes, band, i, dots=True)
        axes.set(xlabel=name, yscale="log")
        _plain_ticks(axes)
        axes.grid(True)
    left.set_ylabel("dev loss (nats per word-piece, unsmoothed; log scale)")
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
        axes.set(xlabel="update", title=name, yscale="log")
        _plain_ticks(axes)
        axes.grid(True)
    left.set_ylabel("loss (nats per word-piece, unsmoothed; log scale)")
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
    """1, 1.5, 2 as they are written, not as powers of ten, and as many as the axis has room for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axes.get_ylim()
    steps = next(steps for reach, steps in TICKS.items() if high / low <= reach)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.locator_params(axis="x", nbins=5)
