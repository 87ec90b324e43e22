"""How the rows of a table learned, from their records alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.figures import style
from repro.figures.style import Axes, Figure, save_numbers
from repro.results.curves import Band, bands, compared, rows_of
from repro.results.labels import command_of, label
from repro.results.record import BASE, Record

TICKS = {  # ratio of the highest to the lowest loss of an axis -> the ticks in each decade
    3.0: (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
    8.0: (1, 1.5, 2, 2.5, 3, 4, 5, 7),
    math.inf: (1, 1.5, 2, 3, 5, 7),
}
APART = 0.12  # distance between the markers of a line of many points, as a share of its panel's diagonal
LOSS = "loss (nats per word-piece, unsmoothed; log scale)"


@dataclass(frozen=True)
class _Kind:
    """The left or the right panel of a pair."""

    title: str
    over: str
    bands: Sequence[Band]
    apart: float | None = None  # distance between markers; None: each point has one


def draw_curves(folder: Path, table: str, records: Sequence[Record]) -> list[Path]:
    """Draw the training loss and the dev loss of every row of a table."""
    train, dev = bands(records, "train"), bands(records, "dev")
    if not train and not dev:
        raise ValueError(
            f"no finished run of committed code, so no curve. Run `{command_of(table, records[0].scale)}`."
        )
    kinds = _Kind("training text", "update", train, APART), _Kind("dev", "update", dev)
    paint = _painter(table, records, kinds, LOSS)
    return [style.save_figure(folder, f"curves_{table}", (style.WIDTH, 3.2), paint)]


def draw_over_operations(folder: Path, table: str, records: Sequence[Record]) -> list[Path]:
    """Draw the dev loss of all rows over updates and over operations, and where they cross the Transformer's."""
    updates, operations = bands(records, "dev"), bands(records, "dev", "FLOPs")
    if len(updates) < 2 or updates[0].row != BASE:
        raise ValueError(
            f"no finished runs of the base and of another row to compare. Run `{command_of(table, records[0].scale)}`."
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
    files = [
        save_numbers(folder, name, columns, rows),
        save_numbers(
            folder, f"crossings_{table}", ("row", "beside", "over", "cross at", "difference at the end"), said
        ),
    ]
    kinds = _Kind("over updates", "update", updates), _Kind("over FLOPs", "FLOPs of training", operations)
    paint = _painter(table, records, kinds, f"dev {LOSS}", share=True)
    return [style.save_figure(folder, name, (style.WIDTH, 3.6), paint), *files]


def names_of(records: Sequence[Record]) -> list[str]:
    """All rows of a table in its order, as its pictures name them."""
    return [label(runs[0].row, runs[0].hyper) for runs in rows_of(records).values()]


def _painter(
    table: str, records: Sequence[Record], kinds: tuple[_Kind, _Kind], loss: str, *, share: bool = False
) -> style.Paint:
    every = [band for kind in kinds for band in kind.bands]
    most = max(band.n for band in every)
    spread = f"; mean of up to {most} seeds, band from the lowest to the highest" if most > 1 else "; one seed a row"
    looks = style.looks(names_of(records), dict.fromkeys(band.row for band in every))

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, 2, sharey=share)
        for axes, kind in zip(panels, kinds, strict=True):
            axes.set(yscale="log", title=kind.title, xlabel=kind.over)
            for band in kind.bands:
                _band(axes, band, looks[band.row], kind.apart)
            axes.grid(True)
        for axes in panels:
            _plain_ticks(axes)  # by the limits, which the other panel may have widened
        panels[0].set_ylabel(loss)
        title = f"{table}, scale {records[0].scale}{spread}"
        style.legend_below(figure, looks.values(), w_pad=1.5, title=title, handlelength=3.2, columnspacing=1.4)

    return paint


def _band(axes: Axes, band: Band, look: Mapping[str, Any], apart: float | None) -> None:
    """Draw the mean, and the band between the best and the worst seed."""
    if band.n > 1:
        axes.fill_between(band.step, band.low, band.high, color=look["color"], alpha=0.18, lw=0)
    width = 2 if band.row == BASE else 1.3
    axes.plot(band.step, band.mean, **look, ms=3.6, lw=width, markevery=apart)


def _plain_ticks(axes: Axes) -> None:
    """Label ticks as 1, 1.5, 2 instead of powers of ten, and only as many as the axis has room for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axes.get_ylim()
    steps = next(steps for reach, steps in TICKS.items() if high / low <= reach)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.locator_params(axis="x", nbins=5)
