"""A run's translations and their n-gram counts, sentence by sentence, in files beside its record.

hypothesis                     the translation as it was scored
<scorer>/hypothesis, /reference, /1 ... /4    number of its tokens, of its reference's, of its correct 1- to 4-grams
source                         number of tokens of the source, as the model reads them
first, second, last            each third of the translation against that of its reference, counted by sacreBLEU

BLEU is a function of sums of these counts, so anybody can compute it for any selection of sentences, although the text
of most corpora may not be redistributed. Paper: section 6.1, which gives one number per system.
"""

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.results import artifacts
from repro.results.artifacts import Artifact, Column
from repro.results.record import Record, path
from repro.results.task import SPLITS, TRANSLATION

ORDERS = 4  # n-grams that BLEU counts
SMOOTHED = {"bleu": True, "bleu_published": False}  # exponentially, as sacreBLEU does; multi-bleu not at all
THIRDS = ("first", "second", "last")
_AGAIN = "Restore the file from git, or run the row again."
SAME_BLEU = 1e-6  # sums are whole numbers, so only the last digits may differ
Scorers = Mapping[str, "NgramCounts"]  # "bleu", "bleu_published" -> counts of the sentences of one split
RunKey = tuple[str, int]  # "table/row", seed


@dataclass(frozen=True)
class NgramCounts:
    """Token and n-gram counts of S sentences, by one scorer."""

    hypothesis: NDArray[np.int64]  # [S] tokens of the translation
    reference: NDArray[np.int64]  # [S] tokens of its reference
    correct: NDArray[np.int64]  # [S, 4] 1- to 4-grams of the translation that its reference has

    @functools.cached_property
    def summands(self) -> NDArray[np.float64]:
        """What BLEU sums over sentences, [S, 10]: both lengths, correct n-grams, all n-grams."""
        total = np.maximum(self.hypothesis[:, None] - np.arange(ORDERS), 0)
        lengths = self.hypothesis[:, None], self.reference[:, None]
        return np.concatenate([*lengths, self.correct, total], axis=1).astype(np.float64)


class Places(NamedTuple):
    """Source lengths and counts by third of translations, for scores by length and by position."""

    source: Sequence[int]  # [S] tokens of each source, as the model reads them
    thirds: Sequence["NgramCounts"]  # by sacreBLEU: each third of a translation against that of its reference


class Translated(NamedTuple):
    """The translations of one split by a run."""

    hypotheses: Sequence[str]
    references_sha256: str  # of the lines that it was scored on
    scorers: Scorers
    places: Places | None = None  # None: the sources are not known


def bleu(sums: NDArray[np.float64], *, smoothed: bool) -> NDArray[np.float64]:
    """BLEU [...] of sums [..., 10] as in sacreBLEU; an order without a correct n-gram is smoothed or gives 0."""
    hypothesis, reference = sums[..., 0], sums[..., 1]
    correct, total = np.split(sums[..., 2:], 2, axis=-1)
    missed = correct == 0
    halved = 0.5 ** np.cumsum(missed, axis=-1) if smoothed else np.zeros_like(correct)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precisions = np.log(np.where(missed, halved, correct) / total)
        log_brevity = np.minimum(0.0, 1 - reference / hypothesis)
        found = 100 * np.exp(log_brevity + log_precisions.mean(axis=-1))
    return np.where((total == 0).any(axis=-1) | missed.all(axis=-1), 0.0, found)


def run_key(record: Record) -> RunKey:
    """The key by which a run of one scale is named where runs are compared."""
    return f"{record.table}/{record.row}", record.seed


# Files


def has_sentences(record: Record) -> bool:
    """Whether a run has translations to keep: finished, and scored by BLEU."""
    return record.status == "finished" and record.about == TRANSLATION


def write_sentences(place: Path, run: str, splits: Mapping[str, Translated]) -> None:
    """Write the sentences of a run beside its record at `place`."""
    for split, of in splits.items():
        about = {"run": run, "hypotheses": sha256_of(of.hypotheses), "references": of.references_sha256}
        columns: dict[str, Column] = {"hypothesis": list(of.hypotheses)}
        counted = dict(of.scorers)
        if of.places:
            columns["source"] = np.asarray(of.places.source, np.int64)
            counted |= dict(zip(THIRDS, of.places.thirds, strict=True))
        for name, counts in counted.items():
            columns |= dict(zip(_names(name), (counts.hypothesis, counts.reference, *counts.correct.T), strict=True))
        artifacts.write(place, split, Artifact(about, columns))


def are_of(place: Path, run: str) -> bool:
    """Whether the files of dev and test exist, are undamaged and belong to this run."""
    return all(artifacts.is_of(place, split, run) for split in SPLITS)


def read_hypotheses(place: Path, split: str) -> list[str]:
    """The translations of one split. Raises FileNotFoundError where there are none."""
    return [*map(str, _column(place, split, "hypothesis"))]


def read_lengths(place: Path, split: str) -> tuple[list[int], list[int]]:
    """Tokens of the translations of one split and of their references, as sacreBLEU counts them."""
    hypothesis, reference = (_column(place, split, f"bleu/{side}") for side in ("hypothesis", "reference"))
    return [*map(int, hypothesis)], [*map(int, reference)]


def read_places(results: Path, record: Record, split: str) -> Places | None:
    """Source lengths and thirds of one split; None where a run has none.

    Raises ValueError if they are damaged, of another run, or have another number of sentences than the record says.
    """
    found = artifacts.read(path(results, record), split, ["source", *(name for of in THIRDS for name in _names(of))])
    if found is None or "source" not in found.columns:
        return None
    _of_run(found, path(results, record), record.run, record.n_sentences(split))
    return Places([*map(int, found.columns["source"])], [_counts(found, third) for third in THIRDS])


def read_counts(results: Path, record: Record) -> dict[str, Scorers] | None:
    """The counts of a run by split, from the files beside its record under `results`; None where there are none.

    Raises ValueError if they are of another run, have another number of sentences, or give another BLEU than the
    record's.
    """
    if not has_sentences(record):
        return None
    place, found = path(results, record), dict[str, Scorers]()
    for split in SPLITS:
        if (state := artifacts.state(place, split)) is None:
            return None
        scores = tuple((name, record.score(split, name)) for name in SMOOTHED)
        found[split] = _read_once(place, split, state, record.run, record.n_sentences(split), scores)
    return found


def counts_of_runs(results: Path, records: Iterable[Record]) -> dict[RunKey, dict[str, Scorers]]:
    """The counts of all runs that have them, as `read_counts` reads them."""
    found = {run_key(record): read_counts(results, record) for record in records}
    return {run: counts for run, counts in found.items() if counts is not None}


def faults(results: Path, record: Record) -> Iterator[str]:
    """Why the files beside a record do not match its scores; nothing where they match or are not needed."""
    if not has_sentences(record):
        return
    place = path(results, record)
    try:
        if missing := [split for split in SPLITS if artifacts.about(place, split) is None]:
            yield f"its translations of {' and '.join(missing)} are missing"
            return
        read_counts(results, record)
        for split in SPLITS:
            if sha256_of(read_hypotheses(place, split)) != (artifacts.about(place, split) or {})["hypotheses"]:
                yield f"other translations of {split} stand beside it than were scored"
    except (ValueError, OSError) as error:
        yield str(error)


def sha256_of(lines: Sequence[str]) -> str:
    """SHA-256 of a text as written to a file."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


@functools.lru_cache(maxsize=2048)  # claims, statements and charts of a report read the same thousand runs
def _read_once(
    place: Path, split: str, _state: object, run: str, n: int, scores: tuple[tuple[str, float | None], ...]
) -> Scorers:
    """The counts of a split, checked against the record; `_state` makes the cache notice a changed file."""
    names = [column for name in SMOOTHED for column in _names(name)]
    found = _of_run(artifacts.read(place, split, names), place, run, n)
    made = {name: _counts(found, name) for name in SMOOTHED if _names(name)[0] in found.columns}
    for name, scored in scores:
        counted = bleu(made[name].summands.sum(0), smoothed=SMOOTHED[name]).item() if name in made else None
        if (scored is None) != (counted is None) or (scored and abs(scored - (counted or 0.0)) > SAME_BLEU):
            raise ValueError(
                f"{place}: {split}: expected counts that give the record's {name} of {scored}, got {counted}"
            )
    return made


def _of_run(found: Artifact | None, place: Path, run: str, n: int) -> Artifact:
    """The artifact, if it is of this run and has n sentences. Raises ValueError otherwise."""
    if found is None or found.about["run"] != run:
        of = f"those of run {found.about['run']}" if found else "none"
        raise ValueError(f"{place}: expected sentences of run {run}, got {of}. {_AGAIN}")
    if {len(column) for column in found.columns.values()} - {n}:
        raise ValueError(
            f"{place}: expected {n:,} sentences, got {len(next(iter(found.columns.values()))):,}. {_AGAIN}"
        )
    return found


def _column(place: Path, split: str, name: str) -> Column:
    if (found := artifacts.read(place, split, [name])) is None or name not in found.columns:
        raise FileNotFoundError(f"{place}: expected translations of {split} beside it, found none. {_AGAIN}")
    return found.columns[name]


def _names(of: str) -> list[str]:
    """The names of the columns with the counts of a scorer, or of a third."""
    return [f"{of}/{what}" for what in ("hypothesis", "reference", *range(1, ORDERS + 1))]


def _counts(found: Artifact, of: str) -> NgramCounts:
    hypothesis, reference, *correct = (np.asarray(found.columns[name], np.int64) for name in _names(of))
    return NgramCounts(hypothesis, reference, np.stack(correct, axis=1))
