"""What a run made of each sentence: its translations and their n-gram counts, in files beside its record.

<row>-seed<k>.dev.hyp.gz    the translations of dev as they were scored, one a line
<row>-seed<k>.test.hyp.gz   those of test
<row>-seed<k>.counts.gz     of each sentence, by each scorer: tokens, tokens of its reference, right 1- to 4-grams

BLEU is a function of sums of these counts, so it can be taken of any choice of sentences, and by anybody: the text of
most corpora may not be given on. Paper: section 6.1, which gives one number a system.
"""

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.results.beside import is_packed_of
from repro.results.columns import column_of, numbers_in
from repro.results.record import Record, path
from repro.results.task import SPLITS, TRANSLATION
from repro.storage import atomic
from repro.storage.packed_json import packed, read_packed, unpacked, write_packed

FORMAT = 1
ORDERS = 4  # n-grams that BLEU counts
SMOOTHED = {"bleu": True, "bleu_published": False}  # exponentially, as sacreBLEU does; multi-bleu not at all
_OF_ANOTHER = "expected counts of run {}, got those of run {}"
SAME_BLEU = 1e-6  # sums are whole numbers, so only the last digits may differ
Scorers = Mapping[str, "NgramCounts"]  # "bleu", "bleu_published": of the sentences of one split
RunKey = tuple[str, int]  # "table/row", seed


@dataclass(frozen=True)
class NgramCounts:
    """n-grams of S sentences, by one scorer."""

    hypothesis: NDArray[np.int64]  # [S] tokens of the translation
    reference: NDArray[np.int64]  # [S] tokens of its reference
    correct: NDArray[np.int64]  # [S, 4] 1- to 4-grams of the translation that its reference has

    @functools.cached_property
    def summands(self) -> NDArray[np.float64]:
        """[S, 10]: what BLEU sums over sentences: both lengths, right n-grams, n-grams."""
        total = np.maximum(self.hypothesis[:, None] - np.arange(ORDERS), 0)
        lengths = self.hypothesis[:, None], self.reference[:, None]
        return np.concatenate([*lengths, self.correct, total], axis=1).astype(np.float64)


class Places(NamedTuple):
    """Where in a text, and where in its sentences: what scores by length and by position are taken from."""

    source: Sequence[int]  # [S] tokens of each source, as the model reads them
    thirds: Sequence["NgramCounts"]  # by sacreBLEU: each third of a translation against that of its reference


class Translated(NamedTuple):
    """One split of a run."""

    hypotheses: Sequence[str]
    references_sha256: str  # of the lines that it was scored on
    scorers: Scorers
    places: Places | None = None  # None: the sources are not known


def bleu(sums: NDArray[np.float64], *, smoothed: bool) -> NDArray[np.float64]:
    """[...] BLEU of sums [..., 10], as sacreBLEU takes it; an n-gram that is never right is smoothed, or makes it 0."""
    hypothesis, reference, correct, total = (
        sums[..., 0],
        sums[..., 1],
        sums[..., 2 : 2 + ORDERS],
        sums[..., 2 + ORDERS :],
    )
    missed = correct == 0
    halved = 0.5 ** np.cumsum(missed, axis=-1) if smoothed else np.zeros_like(correct)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precisions = np.log(np.where(missed, halved, correct) / total)
        log_brevity = np.minimum(0.0, 1 - reference / hypothesis)
        found = 100 * np.exp(log_brevity + log_precisions.mean(axis=-1))
    return np.where((total == 0).any(axis=-1) | missed.all(axis=-1), 0.0, found)


def run_key(record: Record) -> RunKey:
    """What a run of one scale is called where runs are compared."""
    return f"{record.table}/{record.row}", record.seed


# Files


def has_sentences(record: Record) -> bool:
    """Whether a run has translations to keep: finished, and scored by BLEU."""
    return record.status == "finished" and record.about == TRANSLATION


def files(place: Path) -> list[Path]:
    """The files that stand beside a record, the counts last: where they are, all are."""
    return [*(_hypotheses(place, split) for split in SPLITS), _counts(place)]


def write_sentences(place: Path, run: str, splits: Mapping[str, Translated]) -> None:
    """Write the files beside the record at `place`."""
    content: dict[str, Any] = {"format": FORMAT, "run": run}
    for split, of in splits.items():
        text = _text(of.hypotheses)
        atomic.write_bytes(_hypotheses(place, split), packed(text))
        content[split] = {
            "hypotheses": hashlib.sha256(text).hexdigest(),
            "references": of.references_sha256,
            "counts": {name: _columns(counts) for name, counts in of.scorers.items()},
        }
        if of.places:
            source, thirds = of.places
            content[split] |= {"source": column_of(np.asarray(source)), "thirds": [*map(_columns, thirds)]}
    write_packed(_counts(place), content)


def copy_sentences(source: Path, target: Path, run: str) -> None:
    """Have beside the record at `target` what stands beside that at `source`; what is of another run goes."""
    if are_of(source, run):
        for here, there in zip(files(source), files(target), strict=True):
            atomic.write_bytes(there, here.read_bytes())
    elif not are_of(target, run):
        drop_sentences(target)


def drop_sentences(place: Path) -> None:
    """Remove what stands beside a record: of another run, that had its name."""
    for file in reversed(files(place)):
        file.unlink(missing_ok=True)


def are_there(place: Path) -> bool:
    """Whether all files stand beside the record at `place`."""
    return all(file.exists() for file in files(place))


def are_of(place: Path, run: str) -> bool:
    """Whether they do, and are of this run; what is damaged is of none."""
    return are_there(place) and is_packed_of(_counts(place), FORMAT, run)


def read_places(results: Path, record: Record, split: str) -> Places | None:
    """Source lengths and thirds of one split, from the file beside a record; None where it has none, or is not there.

    Raises ValueError for a damaged file, for one of another run, and where they are not of as many sentences as the
    counts.
    """
    file = _counts(path(results, record))
    if not file.exists():
        return None
    with _restorable(file):
        whole = read_packed(file, FORMAT)
        if whole["run"] != record.run:
            raise ValueError(_OF_ANOTHER.format(record.run, whole["run"]))
        if "thirds" not in (content := whole[split]):
            return None
        source = numbers_in(content["source"]).tolist()
        thirds = [_arrays(columns) for columns in content["thirds"]]
        if {len(source), *(len(one.hypothesis) for one in thirds)} != {record.n_sentences(split)} or len(thirds) != 3:
            raise ValueError(f"expected three thirds of the {split} of record {record.run}")
        return Places(source, thirds)


def has_places(place: Path) -> bool:
    """Whether the counts beside the record at `place` tell of places."""
    with _restorable(_counts(place)):
        return are_there(place) and all("thirds" in read_packed(_counts(place), FORMAT)[split] for split in SPLITS)


def read_hypotheses(place: Path, split: str) -> list[str]:
    """The translations of one split."""
    with _restorable(_hypotheses(place, split)):
        return unpacked(_hypotheses(place, split)).decode().split("\n")[:-1]


def read_lengths(place: Path, split: str) -> tuple[list[int], list[int]]:
    """Tokens of the translations of one split and of their references, as sacreBLEU counts them.

    From the file beside the record at `place` alone: what a page of many runs can afford.
    """
    with _restorable(_counts(place)):
        hypothesis, reference, *_ = read_packed(_counts(place), FORMAT)[split]["counts"]["bleu"]
        return numbers_in(hypothesis).tolist(), numbers_in(reference).tolist()


def read_counts(results: Path, record: Record) -> dict[str, Scorers] | None:
    """The counts of a run by split, from the file beside its record under `results`; None where there is none.

    Raises ValueError for counts of another run, of another number of sentences, or that give another BLEU than the
    record has.
    """
    file = _counts(path(results, record))
    if not file.exists():
        return None
    with _restorable(file):
        seen = file.stat()
        return _read_once(file, (seen.st_mtime_ns, seen.st_size, seen.st_ino), _expected(record))


def counts_of_runs(results: Path, records: Iterable[Record]) -> dict[RunKey, dict[str, Scorers]]:
    """The counts of all runs that have them, as `read_counts` reads them."""
    found = {run_key(record): read_counts(results, record) for record in records}
    return {run: counts for run, counts in found.items() if counts is not None}


def faults(results: Path, record: Record) -> Iterator[str]:
    """Why what stands beside a record is not what its scores were made of; nothing where it is, or none is wanted."""
    if not has_sentences(record):
        return
    place = path(results, record)
    if missing := [file.name for file in files(place) if not file.exists()]:
        yield f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not there"
        return
    try:
        read_counts(results, record)
        content = read_packed(_counts(place), FORMAT)
        for split in SPLITS:
            if hashlib.sha256(unpacked(_hypotheses(place, split))).hexdigest() != content[split]["hypotheses"]:
                yield f"{_hypotheses(place, split).name} holds other translations than were scored"
    except (ValueError, OSError) as error:
        yield str(error)


def sha256_of(lines: Sequence[str]) -> str:
    """Of a text, as a file has it."""
    return hashlib.sha256(_text(lines)).hexdigest()


@contextmanager
def _restorable(file: Path) -> Iterator[None]:
    """Name the file that cannot be what it should be, and what to do."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file}: {error}. Restore the file from git, or run the row again.") from error


class _Expected(NamedTuple):
    """What a record says of its counts."""

    run: str
    sentences: tuple[tuple[str, int], ...]  # by split
    scores: tuple[tuple[tuple[str, str], float | None], ...]  # by split and scorer


def _expected(record: Record) -> _Expected:
    return _Expected(
        record.run,
        tuple((split, record.n_sentences(split)) for split in SPLITS),
        tuple(((split, name), record.score(split, name)) for split in SPLITS for name in SMOOTHED),
    )


@functools.lru_cache(maxsize=1024)  # claims, statements and charts of a report ask for the same thousand
def _read_once(file: Path, _state: tuple[int, ...], expected: _Expected) -> dict[str, Scorers]:
    """The counts in a file in this state of its own, held against what is expected."""
    return _checked(read_packed(file, FORMAT), expected)


def _checked(content: Mapping[str, Any], expected: _Expected) -> dict[str, Scorers]:
    if content["run"] != expected.run:
        raise ValueError(_OF_ANOTHER.format(expected.run, content["run"]))
    found: dict[str, Scorers] = {}
    scores = dict(expected.scores)
    for split, n in expected.sentences:
        found[split] = {name: _arrays(columns) for name, columns in content[split]["counts"].items()}
        for name, counts in found[split].items():
            if len(counts.hypothesis) != n:
                raise ValueError(f"{split}: expected counts of {n:,} sentences, got {len(counts.hypothesis):,}")
            scored, counted = scores[split, name], bleu(counts.summands.sum(0), smoothed=SMOOTHED[name]).item()
            if scored is None or abs(scored - counted) > SAME_BLEU:
                raise ValueError(f"{split}: expected counts that give the record's {name} of {scored}, got {counted}")
    return found


def _columns(counts: NgramCounts) -> list[str]:
    return [column_of(numbers) for numbers in (counts.hypothesis, counts.reference, *counts.correct.T)]


def _arrays(columns: Sequence[str]) -> NgramCounts:
    hypothesis, reference, *correct = map(numbers_in, columns)
    if len(correct) != ORDERS or len({len(hypothesis), len(reference), *map(len, correct)}) > 1:
        raise ValueError(f"expected {2 + ORDERS} columns of one length, got {[len(text.split()) for text in columns]}")
    return NgramCounts(hypothesis, reference, np.stack(correct, axis=1))


def _hypotheses(place: Path, split: str) -> Path:
    return place.with_name(f"{place.stem}.{split}.hyp.gz")


def _counts(place: Path) -> Path:
    return place.with_name(f"{place.stem}.counts.gz")


def _text(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
