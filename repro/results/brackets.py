"""What a parser's run made of each sentence: its brackets, counted, in a file beside its record. No word is in it.

<row>-seed<k>.brackets.gz   of each sentence of dev and test: words, brackets found, of the gold tree and right in
                            both, and how often what was written had to be mended, by kind

F1 is a function of sums of these counts, so it can be taken of any choice of sentences, and by anybody: the text of
the paper may not be given on. Paper: section 6.3.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.results.beside import copy_beside, is_packed_of
from repro.results.columns import column_of, numbers_in
from repro.results.record import Record, path
from repro.results.task import SPLITS
from repro.storage.packed_json import read_packed, write_packed

FORMAT = 1
COLUMNS = ("words", "found", "gold", "right")
SAME_F1 = 1e-6  # sums are whole numbers, so only the last digits may differ


class Brackets(NamedTuple):
    """Of S sentences, in the order of the text."""

    words: NDArray[np.int64]  # [S] in the sentence
    found: NDArray[np.int64]  # [S] brackets that count in the tree that was found
    gold: NDArray[np.int64]  # [S] in the gold tree
    right: NDArray[np.int64]  # [S] in both
    mended: Mapping[str, NDArray[np.int64]]  # by kind [S]: how often; none of any kind: it was a tree

    @property
    def was_no_tree(self) -> NDArray[np.bool_]:
        """[S] whether anything had to be mended."""
        return np.any([self.words < 0, *(times > 0 for times in self.mended.values())], axis=0)

    def scores(self) -> dict[str, float]:
        """Of all of them, in per cent, by the names that a record has."""
        found, gold, right = (int(part.sum()) for part in (self.found, self.gold, self.right))
        exact = (self.right == self.found) & (self.right == self.gold)
        return {
            "f1": f1(found, gold, right),
            "precision": _percent(right, found),
            "recall": _percent(right, gold),
            "exact": _percent(int(exact.sum()), len(exact)),
            "mended": _percent(int(self.was_no_tree.sum()), len(exact)),
        }

    def by_length(self, n: int = 3) -> list[float]:
        """F1 of the n parts of a text by the words of its sentences, the shortest first; of equals the earlier."""
        order = np.argsort(self.words, kind="stable")
        return [
            f1(*(int(column[part].sum()) for column in (self.found, self.gold, self.right)))
            for part in np.array_split(order, n)
        ]


def f1(found: int, gold: int, right: int) -> float:
    """Of brackets found, in the gold trees and in both: the harmonic mean of precision and recall, in per cent."""
    return _percent(2 * right, found + gold)


def has_brackets(record: Record) -> bool:
    """Whether a run has brackets to keep: finished, and scored by F1."""
    return record.status == "finished" and "f1" in record.about["scores"]


def file_of(place: Path) -> Path:
    """The file beside the record at `place`."""
    return place.with_name(f"{place.stem}.brackets.gz")


def write_brackets(place: Path, run: str, splits: Mapping[str, Brackets]) -> None:
    """Write the file beside the record at `place`."""
    content: dict[str, Any] = {"format": FORMAT, "run": run}
    for split, of in splits.items():
        content[split] = {name: column_of(getattr(of, name)) for name in COLUMNS}
        content[split]["mended"] = {kind: column_of(times) for kind, times in sorted(of.mended.items())}
    write_packed(file_of(place), content)


def read_brackets(results: Path, record: Record) -> dict[str, Brackets] | None:
    """The brackets of a run by split, from the file beside its record under `results`; None where there is none.

    Raises ValueError for those of another run, of another number of sentences, or that give other scores than the
    record has.
    """
    file = file_of(path(results, record))
    if not file.exists():
        return None
    try:
        content = read_packed(file, FORMAT)
        if content["run"] != record.run:
            raise ValueError(f"expected brackets of run {record.run}, got those of run {content['run']}")
        return {split: _checked(content[split], split, record) for split in SPLITS}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file}: {error}. Restore the file from git, or run the row again.") from error


def are_brackets_of(place: Path, run: str) -> bool:
    """Whether those at `place` are of this run; what is damaged is of none."""
    return is_packed_of(file_of(place), FORMAT, run)


def copy_brackets(source: Path, target: Path, run: str) -> None:
    """Have beside the record at `target` what stands beside that at `source`; what is of another run goes."""
    copy_beside(file_of, are_brackets_of, source, target, run)


def fault_of_brackets(results: Path, record: Record) -> str | None:
    """Why what stands beside a record is not what its scores were made of; None where it is, or none is wanted."""
    if not has_brackets(record):
        return None
    try:
        found = read_brackets(results, record)
    except (ValueError, OSError) as error:
        return str(error)
    return None if found else f"{file_of(path(results, record)).name} is not there"


def _checked(columns: Mapping[str, Any], split: str, record: Record) -> Brackets:
    words, found, gold, right = (numbers_in(columns[name]) for name in COLUMNS)
    made = Brackets(words, found, gold, right, {kind: numbers_in(times) for kind, times in columns["mended"].items()})
    n = record.n_sentences(split)
    if lengths := {len(one) for one in (words, found, gold, right, *made.mended.values())} - {n}:
        raise ValueError(f"{split}: expected columns of {n:,} sentences, got {max(lengths):,}")
    if (made.right > np.minimum(made.found, made.gold)).any():
        raise ValueError(f"{split}: expected at most as many right brackets as were found and as the gold trees have")
    for name, counted in made.scores().items():
        scored = record.score(split, name)  # type: ignore[arg-type]
        if scored is None or abs(scored - counted) > SAME_F1:
            raise ValueError(f"{split}: expected brackets that give the record's {name} of {scored}, got {counted}")
    return made


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def shares_of_mendings(runs: Sequence[Brackets]) -> dict[str, float]:
    """Of each kind of mending the per cent of sentences that it was done to, over all these runs."""
    kinds = sorted({kind for of in runs for kind in of.mended})
    total = sum(len(of.words) for of in runs)
    times = {kind: sum(int((of.mended[kind] > 0).sum()) for of in runs if kind in of.mended) for kind in kinds}
    return {kind: _percent(n, total) for kind, n in times.items()}
