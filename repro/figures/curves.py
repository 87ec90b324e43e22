"""Lines of the rows of a table, from their records alone: how they learned, and what they forget.

`curves_<table>` has the loss over updates. `operations_<table>` has dev loss over updates and over operations, for
systems whose updates cost different amounts. `fading_<table>` has BLEU by thirds of the length of the source and of the
place in the translation, from the counts beside the records (`repro/results/details.py`): points are means over seeds,
bars the same spread as in the tables. Paper: section 1.
"""

import math
import statistics
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from repro.figures import style
from repro.figures.style import Axes, Drawn, Figure
from repro.results.details import LENGTHS, PLACES, SPLIT, THIRDS, Band, bands, bleu_of_parts, rows_of
from repro.results.frame import ends_of, half_shown, interval
from repro.results.labels import label
from repro.results.record import BASE, Record

TICKS = {  # ratio of the highest to the lowest loss of an axis -> the ticks in each decade
    3.0: (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
    8.0: (1, 1.5, 2, 2.5, 3, 4, 5, 7),
    math.inf: (1, 1.5, 2, 3, 5, 7),
}
APART = 0.12  # distance between the markers of a line of many points, as a share of its panel's diagonal
LOSS = "loss (nats per word-piece, unsmoothed; log scale)"
MOST = 16  # lines of one picture that can be told apart
BESIDE = 0.36  # width over which the points of all rows are spread, as a share of the way between two thirds

Parts = tuple[tuple[float, ...], ...]  # BLEU of a row by its parts, in the order of `THIRDS`, one value per run
# title, x axis, lines, and distance between their markers; None: each point has one
Panel = tuple[str, str, Sequence[Band], float | None]


def looks_of(records: Sequence[Record], drawn: Collection[str]) -> dict[str, dict[str, Any]]:
    """The look of each of the `drawn` rows, with its label: the same in all pictures of the table of these records.

    Raises ValueError if the table has more rows than a reader can tell apart.
    """
    rows = [label(runs[0].row, runs[0].hyper) for runs in rows_of(records).values()]
    if len(rows) > MOST:
        raise ValueError(
            f"its {len(rows)} rows cannot be told apart in one picture, which has {MOST} lines at most. The report for "
            "the browser shows them: `python -m repro report --html`."
        )
    return {row: style.look(rows.index(row)) | {"label": style.symbols(row)} for row in drawn}


def _legend_below(figure: Figure, looks: Iterable[Mapping[str, Any]], *, w_pad: float, **how: Any) -> None:
    """Add a legend under all panels, in as many columns as there is room for; the figure grows by its height."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **look) for look in looks]
    for across in range(5, 0, -1):
        legend = figure.legend(handles=handles, loc="lower center", ncols=across, **how)
        box = legend.get_window_extent()
        if box.width <= figure.bbox.width:
            break
        if across > 1:
            legend.remove()
    legend.get_title().set_multialignment("center")
    figure.tight_layout(w_pad=w_pad, h_pad=0.4)
    height, place = figure.get_figheight(), figure.subplotpars
    foot = box.y1 / figure.dpi  # inches
    figure.set_figheight(height + foot)
    figure.subplots_adjust(
        bottom=(place.bottom * height + foot) / (height + foot), top=(place.top * height + foot) / (height + foot)
    )


# ---- loss


def draw_curves(table: str, records: Sequence[Record]) -> Drawn:
    """The training loss and the dev loss of every row of a table."""
    train, dev = bands(records, "train"), bands(records, "dev")
    if not train and not dev:
        raise style.Missing("no finished run of committed code, so no curve", table)
    figure = style.figure(f"curves_{table}", 3.2)
    return _losses(figure, table, records, ("training text", "update", train, APART), ("dev", "update", dev, None))


def draw_over_operations(table: str, records: Sequence[Record]) -> Drawn:
    """The dev loss of all rows over updates and over operations."""
    updates, operations = bands(records, "dev"), bands(records, "dev", "FLOPs")
    if len(updates) < 2 or updates[0].row != BASE:
        raise style.Missing("no finished runs of the base and of another row to compare", table)
    over = ("over updates", "update", updates, None), ("over FLOPs", "FLOPs of training", operations, None)
    return _losses(style.figure(f"operations_{table}", 3.6), table, records, *over, dev=True)


def _losses(figure: Figure, table: str, records: Sequence[Record], *panels: Panel, dev: bool = False) -> Drawn:
    """Two panels; with `dev` both have the same axis, of dev loss."""
    every = [band for _, _, of, _ in panels for band in of]
    most = max(band.n for band in every)
    spread = f"; mean of up to {most} seeds, band from the lowest to the highest" if most > 1 else "; one seed a row"
    looks = looks_of(records, dict.fromkeys(band.row for band in every))
    both = figure.subplots(1, 2, sharey=dev)
    for axes, (name, over, shown, apart) in zip(both, panels, strict=True):
        axes.set(yscale="log", title=name, xlabel=over)
        for band in shown:
            if band.n > 1:  # between the best and the worst seed
                axes.fill_between(band.step, band.low, band.high, color=looks[band.row]["color"], alpha=0.18, lw=0)
            how = {"ms": 3.6, "lw": 2 if band.row == BASE else 1.3, "markevery": apart}
            axes.plot(band.step, band.mean, **looks[band.row], **how)
        axes.grid(True)
    for axes in both:
        _plain_ticks(axes)  # by the limits, which the other panel may have widened
    both[0].set_ylabel(f"dev {LOSS}" if dev else LOSS)
    title = f"{table}, scale {records[0].scale}{spread}"
    _legend_below(figure, looks.values(), w_pad=1.5, title=title, handlelength=3.2, columnspacing=1.4)
    return [figure]


def _plain_ticks(axes: Axes) -> None:
    """Label ticks as 1, 1.5, 2 instead of powers of ten, and only as many as the axis has room for."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axes.get_ylim()
    steps = next(steps for reach, steps in TICKS.items() if high / low <= reach)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.locator_params(axis="x", nbins=5)


# ---- BLEU by thirds


def fading_rows(records: Sequence[Record], results: Path) -> dict[str, Parts]:
    """The rows whose runs all have counts of parts: the base first, then by descending mean over all parts and runs."""
    found: dict[str, Parts] = {}
    for runs in rows_of(records).values():
        parts = [part for run in runs if (part := bleu_of_parts(run, results)) is not None]
        if len(parts) == len(runs):
            found[label(runs[0].row, runs[0].hyper)] = tuple(tuple(part[name] for part in parts) for name in THIRDS)
    means = {row: statistics.fmean(value for part in parts for value in part) for row, parts in found.items()}
    return {row: found[row] for row in sorted(found, key=lambda row: (row != BASE, -means[row]))}


def draw_fading(table: str, records: Sequence[Record], results: Path) -> Drawn:
    """Both panels of a table."""
    found = fading_rows(records, results)
    if not found:
        raise style.Missing("no run has its counts by length beside its record", table)
    looks, figure = looks_of(records, found), style.figure(f"fading_{table}", 3.2)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, begin, names, by, across in (
        (left, 0, LENGTHS, "by length of the source", "third of the sources"),
        (right, 3, PLACES, "by place in the translation", "third of the translation"),
    ):
        for i, (row, parts) in enumerate(found.items()):
            _paint_parts(axes, parts[begin : begin + 3], looks[row], i, len(found))
        axes.set_xticks(range(3), names)
        axes.set(xlim=(-0.25, 2.25), title=by, xlabel=across)
        axes.grid(True, axis="y")
        axes.locator_params(axis="y", nbins=9)
    left.set_ylim(bottom=0)
    left.set_ylabel(f"BLEU ({SPLIT})")
    title = textwrap.fill(f"{table}, scale {records[0].scale}; {_told(found.values())}", 105)
    _legend_below(figure, looks.values(), w_pad=2, handlelength=2.6, title=title)
    return [figure]


def whisker(values: Sequence[float]) -> tuple[float, float]:
    """The ends of the bar, as in the tables: those of the 95 % t-interval, or else the lowest and highest seed."""
    return ends_of(*interval(values), min(values), max(values))


def _told(found: Iterable[Parts]) -> str:
    """The explanation of the points and bars that occur."""
    every = [values for parts in found for values in parts]
    several = [values for values in every if len(values) > 1]
    if not several:
        return "one seed a row"
    below = [values for values in several if len(values) > 2 and half_shown(*interval(values)) is None]
    cases = {"of two seeds": min(map(len, several)) == 2, "where it would reach below zero": below}
    where = " and ".join(case for case, occurs in cases.items() if occurs)
    ends = f", but {where} from the lowest seed to the highest" if where else ""
    alone = "; one seed has none" if len(several) < len(every) else ""
    return f"mean over seeds, bars: its 95 % t-interval{ends}{alone}"


def _paint_parts(axes: Axes, parts: Parts, look: Mapping[str, Any], i: int, n_rows: int) -> None:
    shift = min(0.02, BESIDE / max(1, n_rows - 1)) * (i - (n_rows - 1) / 2)
    places = [place + shift for place in range(len(parts))]
    means = [statistics.fmean(values) for values in parts]
    axes.plot(places, means, **look)
    if len(parts[0]) > 1:
        ends = [(mean - low, high - mean) for mean, (low, high) in zip(means, map(whisker, parts), strict=True)]
        how = {"fmt": "none", "ecolor": look["color"], "elinewidth": 0.9, "capsize": 2}
        axes.errorbar(places, means, yerr=[*zip(*ends, strict=True)], **how)
