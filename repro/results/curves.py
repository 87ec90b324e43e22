"""How rows learned: the loss over their seeds during training, and which of two rows is ahead from where on.

Systems whose updates cost different amounts are compared twice, over updates and over operations of training. A row is
compared with the Transformer that made as many updates, for most rows the base. Paper: Table 2 compares systems by the
operations of their training.
"""

import itertools
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from repro.results.frame import DataFrame, common, interval, runs_in, whole, widened
from repro.results.labels import label
from repro.results.record import BASE, LAST_MEAN, TRANSLATION, Record

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

Kind = Literal["train", "dev"]
Over = Literal["updates", "FLOPs"]
OVERS: tuple[Over, ...] = get_args(Over)


@dataclass(frozen=True)
class Band:
    """The loss of one row over its seeds, in nats per word-piece, unsmoothed."""

    row: str
    n: int  # finished runs
    step: tuple[float, ...]  # the steps that all runs have
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class Comparison(NamedTuple):
    """The mean dev loss of a row compared with that of another, over the range of both."""

    row: str
    beside: str
    over: Over
    crossings: tuple[float, ...]  # in updates or FLOPs
    gap: float  # in nats, at the end of the common range; below 0 the row is ahead

    def places(self) -> str:
        """Where they cross, in words."""
        form = ",.0f" if self.over == "updates" else ".2g"
        return ", ".join(format(x, form).replace("e+0", "e").replace("e+", "e") for x in self.crossings) or "nowhere"


def rows_of(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Finished runs by row: base first, then the paper's order. As in tables, runs of uncommitted code are left out."""
    rows: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: (record.table != BASE, record.position, record.row, record.seed)):
        if record.status == "finished" and not record.stamp["dirty"]:
            rows.setdefault(record.row, []).append(record)
    return rows


def bands(records: Iterable[Record], kind: Kind, over: Over = "updates") -> list[Band]:
    """One band for each row."""
    found = (band_of(runs, kind, over) for runs in rows_of(records).values())
    return [band for band in found if band.step]


def band_of(runs: Sequence[Record], kind: Kind, over: Over = "updates") -> Band:
    """The band of one row's runs, over updates or FLOPs of training; it has no steps if the runs share none."""
    curves = [dict(zip(run.curves[kind]["step"], run.curves[kind]["nll"], strict=True)) for run in runs]
    steps = tuple(sorted(set.intersection(*(set(curve) for curve in curves))))
    at = [[curve[step] for curve in curves] for step in steps]
    mean, low, high = tuple(map(statistics.fmean, at)), tuple(map(min, at)), tuple(map(max, at))
    of_update = statistics.fmean(run.cost["flops"] / run.cost["steps"] for run in runs) if over == "FLOPs" else 1
    places = tuple(step * of_update for step in steps)
    return Band(label(runs[0].row, runs[0].hyper), len(runs), places, mean, low, high)


def crossings(one: Band, other: Band) -> tuple[float, ...]:
    """Where the means of two rows cross, with straight lines between measured points, over the range of both.

    Touching is not crossing. If they cross along a stretch on which they are equal, its beginning counts.
    """
    import numpy as np

    x = _shared(one, other)
    gap = _gaps(one, other, x)
    found = []
    for i, j in itertools.pairwise(np.flatnonzero(gap)):
        if gap[i] * gap[j] < 0:
            line = x[i] + (x[j] - x[i]) * gap[i] / (gap[i] - gap[j])
            found.append(float(line if j == i + 1 else x[i + 1]))
    return tuple(found)


def compared(rows: Sequence[Sequence[Record]]) -> dict[str, list[Comparison]]:
    """Every row compared with the Transformer that made as many updates, or the base: over updates, then operations.

    `rows` has the runs of each row, the base's first. Means are over common seeds; rows without a common seed or a
    common range are left out.
    """
    found: dict[str, list[Comparison]] = {}
    for runs in rows[1:]:
        for over in OVERS:
            ours, theirs = ({run.seed: run for run in of} for of in (runs, _reference(runs, rows)))
            if not (pairs := common(ours, theirs)):
                continue
            one, other = (band_of(of, "dev", over) for of in zip(*pairs, strict=True))
            if one.step and other.step and (shared := _shared(one, other)):
                gap = float(_gaps(one, other, shared[-1:])[0])
                made = Comparison(one.row, other.row, over, crossings(one, other), gap)
                found.setdefault(runs[0].row, []).append(made)
    return found


def with_comparisons(frame: DataFrame, records: Iterable[Record]) -> DataFrame:
    """The frame with the results of `compared`: `along/beside`, `along/<over>/crossings`, `along/<over>/gap`.

    Cells are empty where two curves have no range in common; there are no such columns if no row can be compared.
    """
    rows = [runs for runs in runs_in(frame, records) if runs]  # rows without a run are left out
    found = compared(rows) if rows and rows[0][0].table == BASE else {}
    if not found:
        return frame
    lines: list[dict[str, str | float]] = []
    for row in frame["row"]:
        line: dict[str, str | float] = {}
        for one in found.get(row, ()):
            line |= {"along/beside": one.beside, f"along/{one.over}/crossings": one.places()}
            line |= {f"along/{one.over}/gap": one.gap}
        lines.append(line)
    columns = ["along/beside", *(f"along/{over}/{what}" for over in OVERS for what in ("crossings", "gap"))]
    return widened(frame, lines, columns=columns)


def _reference(runs: Sequence[Record], rows: Sequence[Sequence[Record]]) -> Sequence[Record]:
    """The first Transformer of as many updates on the same text among earlier rows, else the base; or nothing."""
    before = itertools.takewhile(lambda of: of is not runs, rows)
    there = [of for of in before if not of[0].system and of[0].corpus["sha256"] == runs[0].corpus["sha256"]]
    return next((of for of in there if of[0].hyper["steps"] == runs[0].hyper["steps"]), there[0] if there else ())


def _shared(one: Band, other: Band) -> list[float]:
    """The points within the range of both at which either was measured."""
    begin, end = max(one.step[0], other.step[0]), min(one.step[-1], other.step[-1])
    return sorted({x for x in (*one.step, *other.step) if begin <= x <= end})


def _gaps(one: Band, other: Band, x: Sequence[float]) -> "NDArray[float64]":
    """The mean of one minus that of the other at these points."""
    import numpy as np

    return np.interp(x, one.step, one.mean) - np.interp(x, other.step, other.mean)


# How rows compare with the base on little text and on much: each with the base that was trained on the same text

SCORES = ("nll", "bleu")  # of dev; the first is log PPL
Worth = Mapping[str, tuple[float, float | None]]  # by score: the mean, and half the width of its 95 % interval


class OnText(NamedTuple):
    """A row minus the base, after the same number of updates on the same text."""

    pairs: int
    n: int  # seeds that both have
    found: Worth  # by the paper's weights
    of_mean: Worth | None  # by the mean of the last checkpoints; None where a run was not scored by it


def on_texts(records: Iterable[Record]) -> dict[str, list[OnText]]:
    """Each row that translates, on each text, smallest text first; rows are named as on the smallest text.

    A row is recognised by its hyper-parameters and system. All texts are of the base's corpus and language pair. Empty
    where there is no base; a text is left out for a row that shares no seed with the base there.
    """
    finished = [one for one in records if one.status == "finished" and one.about == TRANSLATION]
    base = next((one for one in finished if one.table == BASE), None)
    if base is None:
        return {}
    runs: dict[str, dict[int, dict[int, Record]]] = {}
    names: dict[str, str] = {}
    for one in sorted(finished, key=lambda one: (one.corpus["n_train"], one.table, one.position, one.seed)):
        if (one.corpus["name"], one.pair) == (base.corpus["name"], base.pair):
            names.setdefault(_setting(one), one.row)
            runs.setdefault(_setting(one), {}).setdefault(one.corpus["n_train"], {})[one.seed] = one
    of_base = runs.pop(_setting(base))
    found = {
        names[what]: [
            OnText(pairs, len(both), _to_base(both, "dev") or {}, _to_base(both, next(iter(LAST_MEAN))))
            for pairs, of in by_text.items()
            if (both := common(of, of_base.get(pairs, {})))
        ]
        for what, by_text in runs.items()
    }
    return {name: of for name, of in found.items() if of}


def _setting(record: Record) -> str:
    return json.dumps([record.hyper, record.system], sort_keys=True)


def _to_base(both: Sequence[tuple[Record, Record]], split: str) -> Worth | None:
    """Each score's mean difference and its interval; None where a run lacks one of the scores."""
    found = {}
    for score in SCORES:
        ours, base = (whole(run.score(split, score) for run in runs) for runs in zip(*both, strict=True))
        if not (ours and base):
            return None
        found[score] = interval([one - other for one, other in zip(ours, base, strict=True)])
    return found
