"""What a parser's run made of each sentence: its brackets, counted, beside its record. No word is in it.

words, found, gold, right      of a sentence: its words, brackets found, of the gold tree and right in both
mended/<kind>                  how often what was written had to be mended

F1 is a function of sums of these counts, so it can be taken of any choice of sentences, and by anybody: the text of
the paper may not be given on. Paper: section 6.3.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.results import artifacts
from repro.results.artifacts import Artifact
from repro.results.record import Record, path
from repro.results.task import SPLITS

MENDED = "mended/"
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


def write_brackets(place: Path, run: str, splits: Mapping[str, Brackets]) -> None:
    """Write what stands beside the record at `place`."""
    for split, of in splits.items():
        mended = {f"{MENDED}{kind}": times for kind, times in of.mended.items()}
        columns = {name: getattr(of, name) for name in COLUMNS} | mended
        artifacts.write(place, split, Artifact({"run": run}, columns))


def read_brackets(results: Path, record: Record) -> dict[str, Brackets] | None:
    """The brackets of a run by split, from beside its record under `results`; None where there are none.

    Raises ValueError for those of another run, of another number of sentences, or that give other scores than the
    record has.
    """
    place, made = path(results, record), dict[str, Brackets]()
    for split in SPLITS:
        found = artifacts.read(place, split)
        if found is None or COLUMNS[0] not in found.columns:
            return None
        try:
            if found.about["run"] != record.run:
                raise ValueError(f"expected brackets of run {record.run}, got those of run {found.about['run']}")
            made[split] = _checked(found, split, record)
        except ValueError as error:
            raise ValueError(f"{place}: {error}. Restore the file from git, or run the row again.") from error
    return made


def are_brackets_of(place: Path, run: str) -> bool:
    """Whether those at `place` are of this run; what is damaged is of none."""
    return all(artifacts.is_of(place, split, run) for split in SPLITS)


def fault_of_brackets(results: Path, record: Record) -> str | None:
    """Why what stands beside a record is not what its scores were made of; None where it is, or none is wanted."""
    if not has_brackets(record):
        return None
    try:
        found = read_brackets(results, record)
    except (ValueError, OSError) as error:
        return str(error)
    return None if found else "its brackets of dev and test are not there"


def _checked(artifact: Artifact, split: str, record: Record) -> Brackets:
    columns = {name: np.asarray(column, np.int64) for name, column in artifact.columns.items()}
    mended = {name.removeprefix(MENDED): times for name, times in columns.items() if name.startswith(MENDED)}
    made = Brackets(columns["words"], columns["found"], columns["gold"], columns["right"], mended)
    n = record.n_sentences(split)
    if len(made.words) != n:
        raise ValueError(f"{split}: expected {n:,} sentences, got {len(made.words):,}")
    if (made.right > np.minimum(made.found, made.gold)).any():
        raise ValueError(f"{split}: expected at most as many right brackets as were found and as the gold trees have")
    for name, counted in made.scores().items():
        scored = record.score(split, name)
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
