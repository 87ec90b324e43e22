"""Scores of rows: how far each is from the base, by the size of its text too, and what quality costs. Paper: Table 3.

A difference is positive where the row is better. It is the same as for the verdicts (`repro/claims/judge.py`): same
runs, same interval over seeds. In BLEU it also has an interval over sentences, if the translations are kept; the wider
of the two shows whether there were too few seeds or too few sentences.
"""

import statistics
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.claims.catalogue import BLEU, LOG_PPL, Endpoint
from repro.claims.decisions import MIN_RUNS
from repro.claims.evidence import Evidence
from repro.claims.judge import ToBase, to_base
from repro.figures import style
from repro.figures.style import Axes, Drawn, Figure, Numbers
from repro.pages.tables import TABLE_2_NAME
from repro.results.details import on_texts, over_sentences, rows_of
from repro.results.frame import interval, whole
from repro.results.labels import label
from repro.results.record import BASE, Record
from repro.results.sentences import read_counts

ENDPOINTS = (LOG_PPL, BLEU)
COLUMNS = (  # of the numbers beside the picture
    *("row", "endpoint", "n", "n of base", "row less base", "low", "high"),
    *("low over sentences", "high over sentences", "paper"),
)
NO_INTERVAL = "ours, no runs that count, or too few"
AXES = {LOG_PPL: "log PPL (dev): base − row", BLEU: "BLEU (dev): row − base"}
BETTER = "the row is better →"
ABOUT = {  # what the rows of a table have in common
    "table3_A": "(A) heads",
    "table3_B": "(B) width of the keys",
    "table3_C": "(C) depth and width",
    "table3_D": "(D) dropout, label smoothing",
    "table3_E": "(E) positions",
    "table3_big": "the big model",
}
OURS, SENTENCES, PAPER = "#0072b2", "#56b4e9", "#d55e00"  # of Okabe and Ito's colours
LINE, HEAD, APART = 0.225, 0.30, 0.058  # inches: height of a row and of a group's name; between marks of a row
ABOVE, BELOW = 0.45, 0.75  # inches: for the legend, for the axes


@dataclass(frozen=True)
class Difference:
    """A row minus the base by one score; more is better."""

    value: float
    n: tuple[int, int]  # number of runs of the row and of the base behind the value
    over_seeds: tuple[float, float] | None  # 95 %, as for the verdicts; None: they have none
    over_sentences: tuple[float, float] | None  # 95 %; None: no translations, or not a score of sentences
    paper: float | None


@dataclass(frozen=True)
class ComparedRow:
    """One row of the picture."""

    table: str
    name: str  # with its value at this scale
    row: str  # without
    is_printed: bool  # whether the paper prints a number for it
    found: dict[Endpoint, Difference]

    @property
    def n(self) -> int:
        """The number of runs behind the row's differences, for the score that has most."""
        return max(one.n[0] for one in self.found.values())


def differences_to_base(records: Iterable[Record], evidence: Evidence, results: Path) -> list[ComparedRow]:
    """Every row that has a finished run, first those in the paper, in its order; none without the base.

    `evidence` is of all records of the scale. The translations are beside the records under `results`.
    """
    clean = [record for record in records if record.status == "finished" and not record.stamp["dirty"]]
    ordered = sorted(clean, key=lambda one: (not _is_printed(one), one.table, one.position, one.seed))
    base = next((record for record in ordered if record.table == BASE), None)
    if base is None:
        return []
    firsts = {(one.table, one.row): one for one in reversed(ordered) if one.table != BASE}
    lines = []
    for first in reversed(firsts.values()):
        found = {one: to_base(evidence, f"{first.table}/{first.row}", one) for one in ENDPOINTS}
        differences = {one: _difference(one, of, first, base, results) for one, of in found.items() if of}
        if len(differences) == len(ENDPOINTS):
            name = label(first.row, first.hyper)
            lines.append(ComparedRow(first.table, name, first.row, _is_printed(first), differences))
    return lines


def _is_printed(record: Record) -> bool:
    return any(number is not None for number in record.paper.values())


def _difference(endpoint: Endpoint, found: ToBase, row: Record, base: Record, results: Path) -> Difference:
    """One difference; `row` and `base` are one record of each, which hold the paper's numbers."""
    ours, others = found.runs
    kept = [[read_counts(results, run) for run in of] for of in found.runs] if endpoint is BLEU else [[None]]
    counts = [whole(runs) for runs in kept]
    drawn = over_sentences(counts[0], counts[1]) if all(counts) else None
    # Table 2 prints scores of test, and this is dev
    printed = [None if row.table == TABLE_2_NAME else endpoint.printed(run.paper) for run in (row, base)]
    paper = printed[0] - printed[1] if printed[0] is not None and printed[1] is not None else None
    return Difference(found.value, (len(ours), len(others)), found.over_seeds, drawn and drawn[1:3], paper)


def draw_differences(records: Sequence[Record], evidence: Evidence, results: Path) -> Drawn:
    """Log PPL and BLEU, a line per row, and the numbers."""
    if not (lines := differences_to_base(records, evidence, results)):
        raise style.Missing("no finished runs of committed code of the base and of another row")
    nothing = (None, None)
    numbers = [
        (
            *(f"{line.table}/{line.row}", endpoint.name, *one.n, one.value),
            *(*(one.over_seeds or nothing), *(one.over_sentences or nothing), one.paper),
        )
        for line in lines
        for endpoint, one in line.found.items()
    ]
    places, heads, bottom = _places(lines)
    height = LINE * len(lines) + HEAD * len(heads) + ABOVE + BELOW
    figure = style.figure("differences", height)
    left, right = figure.subplots(1, 2, sharey=True)
    figure.subplots_adjust(left=0.30, right=0.985, wspace=0.10, top=1 - ABOVE / height, bottom=BELOW / height)
    for axes, endpoint in ((left, LOG_PPL), (right, BLEU)):
        for place, line in zip(places, lines, strict=True):
            _mark(axes, place, line.found[endpoint])
        axes.axvline(0, color=style.INK, lw=0.8, zorder=1)
        axes.grid(True, axis="x")
        axes.set(xlabel=f"{AXES[endpoint]}\n{BETTER}", ylim=(bottom, 0))
        axes.tick_params(axis="y", length=0, labelleft=False)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.06)
        # a pale background behind every other group
        tops = [place + 0.6 * HEAD for place in heads.values()]
        for top, low in [*zip(tops, [*tops[1:], bottom], strict=True)][::2]:
            axes.axhspan(low, top, color="#f5f5f5", lw=0, zorder=0)
    for place, line in zip(places, lines, strict=True):
        at = {"transform": left.get_yaxis_transform(), "va": "center", "fontsize": 9}
        left.text(-0.19, place, style.symbols(line.name), ha="right", **at)
        left.text(-0.035, place, f"n = {line.n}", ha="right", color=style.SOFT, **at)
    for table, place in heads.items():
        text = ABOUT.get(table, table)
        left.text(-0.86, place, text, transform=left.get_yaxis_transform(), va="center", fontsize=9, fontweight="bold")
    _legend(figure, lines)
    return [figure, Numbers("differences", COLUMNS, numbers)]


def _places(lines: Sequence[ComparedRow]) -> tuple[list[float], dict[str, float], float]:
    """The places of each line and of each group's name, in inches below the upper edge, and the lower edge."""
    at, places, heads = 0.0, list[float](), dict[str, float]()
    for line in lines:
        if line.table not in heads:
            heads[line.table] = -(at + 0.6 * HEAD)
            at += HEAD
        places.append(-(at + LINE / 2))
        at += LINE
    return places, heads, -(at + 0.06)


def _mark(axes: Axes, place: float, found: Difference) -> None:
    """Draw our value and interval on the line, that over sentences below, the paper's above as an open diamond."""
    if found.over_sentences:
        axes.plot(found.over_sentences, [place - APART] * 2, color=SENTENCES, lw=1.4, solid_capstyle="butt", zorder=2)
    if found.over_seeds:
        axes.plot(found.over_seeds, [place] * 2, color=OURS, lw=2.6, solid_capstyle="butt", zorder=3)
    face = OURS if found.over_seeds else "white"
    axes.plot([found.value], [place], "o", color=OURS, mfc=face, ms=5, zorder=4)
    if found.paper is not None:
        axes.plot([found.paper], [place + APART], "D", color=PAPER, mfc="none", mew=1.1, ms=4.2, zorder=5)


def _legend(figure: Figure, lines: Sequence[ComparedRow]) -> None:
    """Draw a legend of the marks that occur."""
    from matplotlib.lines import Line2D

    shown = [difference for line in lines for difference in line.found.values()]
    handles = []
    if any(one.over_seeds for one in shown):
        text = "ours, 95 % interval over seeds"
        handles.append(Line2D([], [], color=OURS, lw=2.6, marker="o", ms=5, label=text))
    if any(not one.over_seeds for one in shown):
        handles.append(Line2D([], [], color=OURS, lw=0, marker="o", mfc="white", ms=5, label=NO_INTERVAL))
    if any(one.over_sentences for one in shown):
        handles.append(Line2D([], [], color=SENTENCES, lw=1.3, label="95 % interval over sentences"))
    if any(one.paper is not None for one in shown):
        handles.append(Line2D([], [], color=PAPER, lw=0, marker="D", mfc="none", mew=1.1, ms=4.2, label="paper"))
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), columnspacing=1.8, handlelength=1.6)


# ---- dropout, smoothing and attention if a text is seen once, and if often: sections 5.4 and 6.2

TEXT_SIZES_TABLE = "lab_text"
PANELS = {"nll": (AXES[LOG_PPL], -1), "bleu": (AXES[BLEU], 1)}  # up is better in both
TEXT_SIZES_COLUMNS = (
    *("row", "weights", "pairs", "n", "log PPL, row less base", "half width", "BLEU, row less base", "half width"),
)
WEIGHTS = {"found": ("the paper's weights", "-"), "of_mean": ("mean of the last checkpoints", "--")}


def draw_text_sizes(records: Iterable[Record]) -> Drawn:
    """Each row that was trained on several texts, minus the base on each, and the numbers.

    Raises ValueError where no row was.
    """
    found = {row: of for row, of in on_texts(records).items() if len(of) > 1}
    if not found:
        raise ValueError(
            "expected a row and the base, both trained on the same two texts, found none. Run "
            f"`python experiments/{TEXT_SIZES_TABLE}.py`."
        )
    cells = [
        (row, said, one.pairs, worth.n, *worth.nll, *worth.bleu)
        for row, ones in found.items()
        for one in ones
        for name, (said, _) in WEIGHTS.items()
        if (worth := getattr(one, name))
    ]
    figure = style.figure("text_sizes", 3.7)
    panels = figure.subplots(1, 2)
    sizes = sorted({one.pairs for of in found.values() for one in of})
    for axes, (score, (title, sign)) in zip(panels, PANELS.items(), strict=True):
        axes.axhline(0, color=style.SOFT, lw=1)
        for i, (row, ones) in enumerate(found.items()):
            for name, (said, dashes) in WEIGHTS.items():
                of = [(one.pairs, *getattr(worth, score)) for one in ones if (worth := getattr(one, name))]
                if of:
                    x, y, half = zip(*of, strict=True)
                    look = style.look(i) | {"ls": dashes, "label": style.symbols(f"{row}, {said}")}
                    axes.errorbar(x, [sign * one for one in y], [one or 0.0 for one in half], capsize=2.5, **look)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        axes.set(xlabel="pairs of training text, equal updates", ylabel=title)
        axes.grid(True, axis="y")
    lines, names = panels[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="upper center", ncols=2)
    figure.tight_layout(rect=(0, 0, 1, 0.86), w_pad=1.5)
    return [figure, Numbers("text_sizes", TEXT_SIZES_COLUMNS, cells)]


# ---- the cost of quality: BLEU over training operations, for rows of Table 3 that differ in them

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


def points(records: Iterable[Record]) -> list[Point]:
    """The rows of all tables that have finished runs, base first."""
    tables: dict[str, list[Record]] = {}
    for record in records:
        tables.setdefault(record.table, []).append(record)
    found = []
    for table in sorted(tables, key=lambda name: (name != BASE, name)):
        for row, runs in rows_of(tables[table]).items():
            values = [value for run in runs if (value := run.score("dev", "bleu")) is not None]  # as finished runs have
            mean, half_width = interval(values)
            low, high = mean - (half_width or 0.0), mean + (half_width or 0.0)
            flops = statistics.fmean(run.cost["flops"] for run in runs)
            found.append(Point(table, row, len(runs), flops, mean, low, high, label(row, runs[0].hyper)))
    return found


def of_other_cost(found: Sequence[Point]) -> list[Point]:
    """The base, and the rows that cost more or less than it; for the others there is no cost to compare."""
    base = [point.flops for point in found if point.table == BASE]
    return [point for point in found if point.table == BASE or not base or abs(point.flops / base[0] - 1) > SAME_COST]


def draw_quality(records: Sequence[Record]) -> Drawn:
    """Dev BLEU against training FLOPs, a point for each row that differs in them from the base."""
    every = points(records)
    found = of_other_cost(every)
    if len(found) < 2:
        there = f", only of {found[0].row}" if found else ""
        raise style.Missing(f"no finished runs of committed code of two rows that differ in cost{there}")
    figure = style.figure("quality_and_cost", 4.4)
    axes = figure.subplots()
    for i, point in enumerate(found):
        look: dict[str, Any] = style.look(i) | {"ls": "none", "ms": 6.5, "label": style.symbols(point.row)}
        look |= {"mfc": "white" if point.is_hollow else None, "elinewidth": 0.9, "capsize": 2.5}
        axes.errorbar(point.flops, point.mean, None if point.is_hollow else point.high - point.mean, **look)
    axes.set(ylabel="BLEU (dev, sacreBLEU)", xscale="log")
    axes.set_xlabel(_under("training cost (FLOPs)", found, [point for point in every if point not in found]))
    axes.margins(0.08)
    axes.grid(True)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    return [figure]


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
