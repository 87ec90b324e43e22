"""BLEU of parts of a text: short and long sources, beginnings and ends of translations. Paper: section 1.

These parts show what a system forgets: a single vector has less room for a long sentence, and a state loses more of it
with every word written. Parts are thirds. Sentences are split by the length of their source into equally many; each
translation is split by its tokens, and each third is compared with the same third of its reference. For parsers: F1 of
the thirds of sentences.

Also what scores would have been on other sentences of the same kind. The counts behind a score are summed over the
sentences of a draw, and the sums are scored; the mean of sentence scores would be another number. All runs see the same
draws, so differences between runs are paired. The method is that of Koehn (2004), with sacreBLEU's draws.
"""

import functools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.results.artifacts import read_further
from repro.results.brackets import read_brackets
from repro.results.frame import DataFrame, common, runs_in, spread, spread_each, whole, widened
from repro.results.notes import SCORERS
from repro.results.record import Record, number, path
from repro.results.sentences import NgramCounts, bleu, read_counts, read_places

Floats = NDArray[np.float64]
Counts = NDArray[np.float64] | NDArray[np.int64]

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


def by_length(counts: NgramCounts, source: Sequence[int], n: int = 3) -> list[float]:
    """BLEU of n parts of a text, sorted by source length, the shortest first; equal lengths stay in text order."""
    order = np.argsort(np.asarray(source), kind="stable")
    return [_bleu(counts.summands[part]) for part in np.array_split(order, n)]


def by_position(thirds: Iterable[NgramCounts]) -> list[float]:
    """BLEU of the first, second and last third of translations."""
    return [_bleu(third.summands) for third in thirds]


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
                values = [number(one, score) for one in scores]
                line |= spread(f"further/{name}/{score}", [value for value in values if value is not None])
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
    parts = [*by_length(counts, places.source), *by_position(places.thirds)]
    return dict(zip(THIRDS, parts, strict=True))


def _bleu(summands: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    return float(bleu(summands.sum(axis=0)))


# How long translations are. The paper's search (section 6.1) allows a hypothesis to end at once, and a row with such
# empty translations loses more BLEU than its words deserve.
EMPTY, RATIO = f"{SPLIT}/translations/empty", f"{SPLIT}/translations/length"  # no task has scores of these names


RATIO_TO_BASE, DECIDES = f"{RATIO}_to_base", f"{RATIO}_decides"
Scored = Mapping[int, tuple[float, float]]  # seed -> BLEU and length


def with_lengths(frame: DataFrame, records: Iterable[Record], results: Path) -> DataFrame:
    """The frame with empty translations in per cent and lengths: tokens of all translations over the references'.

    Mean and interval over a row's runs; empty where a run has no counts, and no columns where no row has any. With a
    base also the difference of lengths to it over common seeds, and 1 where that decides (`length_decides`).
    """
    lines: list[dict[str, float | None]] = []
    scored: list[Scored] = []
    for runs in runs_in(frame, records):
        kept = whole(read_counts(results, record) for record in runs)
        values = {
            EMPTY: [100 * float((of.hypothesis == 0).mean()) for of in kept],
            RATIO: [float(of.hypothesis.sum() / of.reference.sum()) for of in kept],
        }
        lines.append(spread_each(values))
        lengths = zip(runs, values[RATIO], strict=True) if kept else ()
        scored.append({run.seed: (bleu, of) for run, of in lengths if (bleu := run.score(SPLIT, SCORER)) is not None})
    bases = [{} if i is None else scored[i] for i in frame.attrs["bases"]]
    if any(bases):
        for line, of, base in zip(lines, scored, bases, strict=True):
            line |= _lengths_to_base(of, base if of is not base else {})
    return widened(frame, lines, dtype=float) if any(line[RATIO] is not None for line in lines) else frame


def _lengths_to_base(ours: Scored, base: Scored) -> dict[str, float | None]:
    """The difference of lengths over common seeds, and whether it decides; None where they share no seed."""
    if not (pairs := common(ours, base)):
        return {RATIO_TO_BASE: None, DECIDES: None}
    of_ours, of_base = (
        [statistics.fmean(column) for column in zip(*of, strict=True)] for of in zip(*pairs, strict=True)
    )
    (bleu, length), (other, of_other) = of_ours, of_base
    return {
        RATIO_TO_BASE: length - of_other,
        DECIDES: float(length_decides(bleu - other, (bleu, other), (length, of_other))),
    }


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


def over_sentences(row: Sequence[Counts], less: Sequence[Counts], score: Callable[[Floats], Floats]) -> Interval:
    """The mean score of a row's runs, minus that of another row's, `less`, if it is not empty, draw by draw.

    A run is given by the counts [S, C] that the score sums; `score` maps sums [..., C] to scores [...]. With the same
    seeds in both rows this is the mean of the seeds' paired differences. Raises ValueError for runs of two texts.
    """
    if len({len(of) for of in (*row, *less)}) > 1:
        raise ValueError("Over sentences: expected runs of one text, got texts of two lengths. Compare others.")
    means = [
        np.mean([score(np.concatenate([of.sum(axis=0, keepdims=True), draws(len(of)) @ of])) for of in runs], axis=0)
        for runs in (row, less)
        if runs
    ]
    value, *drawn = (means[0] - means[1] if less else means[0]).tolist()
    outside, ordered = len(drawn) // OUTSIDE, sorted(drawn)
    return Interval(value, ordered[outside], ordered[-outside - 1], len(row[0]))


def bleu_over_sentences(row: Sequence[NgramCounts], less: Sequence[NgramCounts] = ()) -> Interval:
    """Mean sacreBLEU of a row's runs, or its difference to that of another row, by sacreBLEU's paired bootstrap."""
    ours, theirs = ([of.summands for of in runs] for runs in (row, less))
    return over_sentences(ours, theirs, bleu)
