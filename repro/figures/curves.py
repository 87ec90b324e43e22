"""How the rows of a table learned, from their records alone."""

import functools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from repro.figures import style
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
    step: tuple[int, ...]  # that all of them have
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
    found = []
    for row, runs in rows_of(records).items():
        curves = [dict(zip(run.curves[kind]["step"], run.curves[kind]["nll"], strict=True)) for run in runs]
        steps = tuple(sorted(set.intersection(*(set(curve) for curve in curves))))
        at = [[curve[step] for curve in curves] for step in steps]
        if steps:
            mean = tuple(map(statistics.fmean, at))
            low, high = tuple(map(min, at)), tuple(map(max, at))
            found.append(Band(label(row, runs[0].hyper), len(runs), steps, mean, low, high))
    return found


def draw_curves(folder: Path, table: str, records: Sequence[Record]) -> list[Path]:
    """The training loss of every row of a table, and that of dev."""
    train, dev = bands(records, "train"), bands(records, "dev")
    if not train and not dev:
        raise ValueError(f"{table}: no finished run of committed code, so no curve. Run experiments/{table}.py.")
    paint = functools.partial(_paint, train=train, dev=dev, title=_title(table, records[0].scale, [*train, *dev]))
    return style.save_figure(folder, f"curves_{table}", (style.WIDTH, 3.8), paint)


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
    handles, labels = right.get_legend_handles_labels()
    across = 5 if max(len(band.row) for band in dev) < 20 else 4
    lines = -(-len(labels) // across)
    foot = (0.08 + 0.2 * (lines + 1)) / figure.get_figheight()
    figure.legend(handles, labels, loc="lower center", ncols=across, handlelength=3.2, title=title, columnspacing=1.4)
    figure.tight_layout(rect=(0, foot, 1, 1), w_pad=1.5)


def _band(axes: "Axes", band: Band, i: int, *, dots: bool) -> None:
    """The mean, and what lies between the best and the worst seed."""
    colour = style.COLOURS[i % len(style.COLOURS)]
    if band.n > 1:
        axes.fill_between(band.step, band.low, band.high, color=colour, alpha=0.18, lw=0)
    axes.plot(
        band.step,
        band.mean,
        color=colour,
        ls=style.DASHES[i % len(style.DASHES)],
        marker=style.MARKERS[i % len(style.MARKERS)] if dots else None,
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
