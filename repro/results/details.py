"""What rows show besides scores: parts of texts, lengths, scores on other sentences, and how the rows learned.

BLEU of short and long sources, of beginnings and ends of translations (paper: section 1) shows what a system forgets: a
single vector has less room for a long sentence, and a state loses more of it with every word written. Parts are thirds.
Sentences are split by the length of their source into equally many; each translation is split by its tokens, and each
third is compared with the same third of its reference. For parsers: F1 of the thirds of sentences.

For scores on other sentences of the same kind, the counts behind a score are summed over the sentences of a draw, and
the sums are scored; the mean of sentence scores would be another number. All runs see the same draws, so differences
between runs are paired. The method is that of Koehn (2004), with sacreBLEU's draws.

Learning is the loss over seeds during training, and which of two rows is ahead from where on. Systems whose updates
cost different amounts are compared twice, over updates and over operations of training, as Table 2 of the paper does. A
row is compared with the Transformer that made as many updates, for most rows the base.
"""

import functools
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from repro.results.artifacts import read_further
from repro.results.comparable import SCORERS
from repro.results.frame import DataFrame, common, interval, runs_in, spread, spread_each, whole, widened
from repro.results.labels import label
from repro.results.record import BASE, LAST_MEAN, TRANSLATION, Record, number, path
from repro.results.sentences import Counts, bleu, read_brackets, read_counts, read_places

Kind = Literal["train", "dev"]
Over = Literal["updates", "FLOPs"]
OVERS: tuple[Over, ...] = get_args(Over)
Floats = NDArray[np.float64]

SPLIT, SCORER = "dev", "bleu"  # sacreBLEU's
LENGTHS, PLACES = ("shortest", "middle", "longest"), ("first", "second", "last")
F1_THIRDS = tuple(f"{SPLIT}/f1/{part}" for part in LENGTHS)
THIRDS = tuple(f"{SPLIT}/{SCORER}/{part}" for part in (*LENGTHS, *PLACES))
KEPT = f"{SPLIT}/{SCORER}/kept"  # BLEU of the last third of translations, in per cent of BLEU of the first third


class Interval(NamedTuple):
    """A score, or a difference of two, on all sentences, with its 95 % interval over resampled sentences."""

    value: float
    low: float
    high: float
    n_sentences: int


def by_length(counts: Counts, source: Sequence[int], n: int = 3) -> list[float]:
    """BLEU of n parts of a text, sorted by source length, the shortest first; equal lengths stay in text order."""
    order = np.argsort(np.asarray(source), kind="stable")
    return [float(bleu(counts[part].sum(axis=0))) for part in np.array_split(order, n)]


def _with(
    frame: DataFrame, records: Iterable[Record], scores: Callable[[Sequence[Record]], Mapping[str, Sequence[float]]]
) -> DataFrame:
    """The frame with mean and interval of more scores of a row's runs; empty where they are of no run."""
    return widened(frame, [spread_each(scores(runs)) for runs in runs_in(frame, records)], dtype=float)


def with_parts(frame: DataFrame, records: Iterable[Record], results: Path) -> DataFrame:
    """The frame with BLEU of each row's parts, mean and interval over its runs; empty where a run has no counts.

    `KEPT` is of each run, and empty where a first third has BLEU 0.
    """

    def of_parts(runs: Sequence[Record]) -> dict[str, list[float]]:
        found = whole(bleu_of_parts(record, results) for record in runs)
        first, last = ([one[name] for one in found] for name in (THIRDS[-len(PLACES)], THIRDS[-1]))
        kept = [100 * end / begin for begin, end in zip(first, last, strict=True)] if all(first) else []
        return {name: [one[name] for one in found] for name in THIRDS} | {KEPT: kept}

    return _with(frame, records, of_parts)


def with_further(frame: DataFrame, records: Iterable[Record], results: Path) -> DataFrame:
    """The frame with the scores of each row on other test sets: `further/<set>/<score>`, and `further/<set>/n`.

    `n` is how many of the row's runs were scored on the set, maybe not all. No column where none was.
    """
    lines = []
    for runs in runs_in(frame, records):
        found = [read_further(path(results, record), record.run) for record in runs]
        line: dict[str, float | None] = {}
        for name in dict.fromkeys(name for tests in found for name in tests):
            scores = [tests[name].scores for tests in found if name in tests]
            line[f"further/{name}/n"] = len(scores)
            for score in SCORERS:
                line |= spread(f"further/{name}/{score}", [x for of in scores if (x := number(of, score)) is not None])
        lines.append(line)
    return widened(frame, lines, dtype=float) if any(lines) else frame


def with_brackets(frame: DataFrame, records: Iterable[Record], results: Path) -> DataFrame:
    """The frame of a table of parsers with F1 by sentence length, on dev; empty where a run has no brackets."""

    def of_parts(runs: Sequence[Record]) -> dict[str, list[float]]:
        parts = [of[SPLIT].by_length() for of in whole(read_brackets(results, record) for record in runs)]
        return {name: [of[k] for of in parts] for k, name in enumerate(F1_THIRDS)}

    return _with(frame, records, of_parts)


def bleu_of_parts(record: Record, results: Path) -> dict[str, float] | None:
    """BLEU of one run's parts, by the names in `THIRDS`; None where its counts or source lengths are missing."""
    counts, places = read_counts(results, record), read_places(results, record, SPLIT)
    if counts is None or places is None:
        return None
    parts = [*by_length(counts, places.source), *(float(bleu(third.sum(axis=0))) for third in places.thirds)]
    return dict(zip(THIRDS, parts, strict=True))


# How long translations are. The paper's search (section 6.1) allows a hypothesis to end at once, and a row with such
# empty translations loses more BLEU than its words deserve.

EMPTY, RATIO = f"{SPLIT}/translations/empty", f"{SPLIT}/translations/length"  # no task has scores of these names
RATIO_TO_BASE, DECIDES = f"{RATIO}_to_base", f"{RATIO}_decides"


def with_lengths(frame: DataFrame, records: Iterable[Record], results: Path) -> DataFrame:
    """The frame with empty translations in per cent and lengths: tokens of all translations over the references'.

    Mean and interval over a row's runs; empty where a run has no counts, and no columns where no row has any. With a
    base also the difference of lengths to it over common seeds, and 1 where that decides (`length_decides`).
    """
    lines: list[dict[str, float | None]] = []
    scored: list[Mapping[int, tuple[float, float]]] = []  # for each row, by seed: BLEU and length
    for runs in runs_in(frame, records):
        kept = whole(read_counts(results, record) for record in runs)
        empty = [100 * float((of[:, 0] == 0).mean()) for of in kept]
        lengths = [float(of[:, 0].sum() / of[:, 1].sum()) for of in kept]
        lines.append(spread_each({EMPTY: empty, RATIO: lengths}))
        known = zip(runs, lengths, strict=True) if kept else ()
        scored.append({run.seed: (bleu, of) for run, of in known if (bleu := run.score(SPLIT, SCORER)) is not None})
    bases = [{} if i is None else scored[i] for i in frame.attrs["bases"]]
    for line, of, base in zip(lines, scored, bases, strict=True) if any(bases) else ():
        line |= {RATIO_TO_BASE: None, DECIDES: None}
        if pairs := common(of, base) if of is not base else ():
            (bleu, length), (other, of_other) = (
                map(statistics.fmean, zip(*of_row, strict=True)) for of_row in zip(*pairs, strict=True)
            )
            decides = length_decides(bleu - other, (bleu, other), (length, of_other))
            line |= {RATIO_TO_BASE: length - of_other, DECIDES: float(decides)}
    return widened(frame, lines, dtype=float) if any(line[RATIO] is not None for line in lines) else frame


def length_decides(difference: float, bleus: tuple[float, float], lengths: tuple[float, float]) -> bool:
    """Whether a difference in BLEU changes sign without the brevity penalty, exp(1 - 1 / length) for lengths below 1.

    It compares logarithms, so it is False where a BLEU is 0.
    """
    if min(bleus) <= 0:
        return False
    ours, other = (math.log(bleu) - min(0.0, 1 - 1 / length) for bleu, length in zip(bleus, lengths, strict=True))
    return (ours - other) * difference < 0


# Scores on other sentences of the same kind

RESAMPLES, SEED = 1_000, 12_345  # sacreBLEU's
OUTSIDE = 40  # a 95 % interval leaves out one fortieth of the resamples at each end, as sacreBLEU counts them


@functools.lru_cache(maxsize=4)
def draws(n_sentences: int) -> Floats:
    """How often each sentence is drawn in each resample, [R, S], as sacreBLEU draws them."""
    chosen = np.random.default_rng(SEED).choice(n_sentences, size=(RESAMPLES, n_sentences), replace=True)
    return np.stack([np.bincount(one, minlength=n_sentences) for one in chosen]).astype(np.float64)


def over_sentences(
    row: Sequence[NDArray[Any]], less: Sequence[NDArray[Any]], score: Callable[[Floats], Floats] = bleu
) -> Interval:
    """The mean score of a row's runs minus that of another row's, draw by draw, by sacreBLEU's paired bootstrap.

    A run is given by the counts [S, C] that the score sums; `score` maps sums [..., C] to scores [...]. With the same
    seeds in both rows this is the mean of the seeds' paired differences. Raises ValueError for runs of two texts.
    """
    if len({len(of) for of in (*row, *less)}) > 1:
        raise ValueError("Over sentences: expected runs of one text, got texts of two lengths. Compare others.")
    means = [
        np.mean([score(np.concatenate([of.sum(axis=0, keepdims=True), draws(len(of)) @ of])) for of in runs], axis=0)
        for runs in (row, less)
    ]
    value, *drawn = (means[0] - means[1]).tolist()
    outside, ordered = len(drawn) // OUTSIDE, sorted(drawn)
    return Interval(value, ordered[outside], ordered[-outside - 1], len(row[0]))


# How rows learned


@dataclass(frozen=True)
class Band:
    """The loss of one row over its seeds, in nats per word-piece, unsmoothed."""

    row: str
    n: int  # finished runs
    step: tuple[float, ...]  # the steps that all runs have
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


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
    x = _shared(one, other)
    gap = _gaps(one, other, x)
    found = []
    for i, j in itertools.pairwise(np.flatnonzero(gap)):
        if gap[i] * gap[j] < 0:
            line = x[i] + (x[j] - x[i]) * gap[i] / (gap[i] - gap[j])
            found.append(float(line if j == i + 1 else x[i + 1]))
    return tuple(found)


def compared(rows: Sequence[Sequence[Record]]) -> dict[str, dict[str, str | float]]:
    """The columns that compare each row with the Transformer that made as many updates, or the base.

    `along/beside` names that row, `along/<over>/crossings` says where the mean dev losses cross, and `along/<over>/gap`
    is their difference in nats at the end of the common range; below 0 the row is ahead. `rows` has the runs of each
    row, the base's first. Means are over common seeds; rows without a common seed or a common range are left out.
    """
    found: dict[str, dict[str, str | float]] = {}
    for runs, over in itertools.product(rows[1:], OVERS):
        ours, theirs = ({run.seed: run for run in of} for of in (runs, _reference(runs, rows)))
        if not (pairs := common(ours, theirs)):
            continue
        one, other = (band_of(of, "dev", over) for of in zip(*pairs, strict=True))
        if one.step and other.step and (shared := _shared(one, other)):
            form = ",.0f" if over == "updates" else ".2g"
            places = ", ".join(format(x, form).replace("e+0", "e").replace("e+", "e") for x in crossings(one, other))
            found.setdefault(runs[0].row, {"along/beside": other.row}).update(
                {
                    f"along/{over}/crossings": places or "nowhere",
                    f"along/{over}/gap": float(_gaps(one, other, shared)[-1]),
                }
            )
    return found


def with_comparisons(frame: DataFrame, records: Iterable[Record]) -> DataFrame:
    """The frame with the results of `compared`; no such columns if no row can be compared."""
    rows = [runs for runs in runs_in(frame, records) if runs]  # rows without a run are left out
    found = compared(rows) if rows and rows[0][0].table == BASE else {}
    columns = ["along/beside", *(f"along/{over}/{what}" for over in OVERS for what in ("crossings", "gap"))]
    return widened(frame, [found.get(row, {}) for row in frame["row"]], columns=columns) if found else frame


def _reference(runs: Sequence[Record], rows: Sequence[Sequence[Record]]) -> Sequence[Record]:
    """The first Transformer of as many updates on the same text among earlier rows, else the base; or nothing."""
    before = itertools.takewhile(lambda of: of is not runs, rows)
    there = [of for of in before if not of[0].system and of[0].corpus["sha256"] == runs[0].corpus["sha256"]]
    return next((of for of in there if of[0].hyper["steps"] == runs[0].hyper["steps"]), there[0] if there else ())


def _shared(one: Band, other: Band) -> list[float]:
    """The points within the range of both at which either was measured."""
    begin, end = max(one.step[0], other.step[0]), min(one.step[-1], other.step[-1])
    return sorted({x for x in (*one.step, *other.step) if begin <= x <= end})


def _gaps(one: Band, other: Band, x: Sequence[float]) -> Floats:
    """The mean of one minus that of the other at these points."""
    return np.interp(x, one.step, one.mean) - np.interp(x, other.step, other.mean)


# How rows compare with the base on little text and on much: each with the base that was trained on the same text


class Worth(NamedTuple):
    """A row minus the base on dev: of each score the mean over seeds, and half the width of its 95 % interval."""

    n: int  # seeds of which both have the scores
    nll: tuple[float, float | None]  # log PPL
    bleu: tuple[float, float | None]


class OnText(NamedTuple):
    """A row minus the base, after the same number of updates on the same text."""

    pairs: int
    found: Worth | None  # by the paper's weights
    of_mean: Worth | None  # by the mean of the last checkpoints; None where no seed was scored by it


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
            OnText(pairs, *(_to_base(both, split) for split in ("dev", next(iter(LAST_MEAN)))))
            for pairs, of in by_text.items()
            if (both := common(of, of_base.get(pairs, {})))
        ]
        for what, by_text in runs.items()
    }
    return {name: of for name, of in found.items() if of}


def _setting(record: Record) -> str:
    return json.dumps([record.hyper, record.system], sort_keys=True)


def _to_base(both: Sequence[tuple[Record, Record]], split: str) -> Worth | None:
    """The differences over the seeds of which both runs have these scores; None where there is none."""
    less = [
        [of[0] - of[1] for pair in both if (of := whole(run.score(split, score) for run in pair))]
        for score in Worth._fields[1:]
    ]
    return Worth(len(less[0]), *map(interval, less)) if all(less) else None
