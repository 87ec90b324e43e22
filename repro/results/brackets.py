"""The brackets that a parser's run found in each sentence, as counts beside its record. They contain no words.

words, found, gold, right      number of words, of brackets found, of those in the gold tree, of those in both
mended/<kind>                  how often the output had to be mended

F1 is a function of sums of these counts, so anybody can compute it for any selection of sentences, although the text
of the paper may not be redistributed. Paper: section 6.3.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.results import artifacts
from repro.results.artifacts import Artifact
from repro.results.record import SPLITS, Record, path

MENDED = "mended/"
COLUMNS = ("words", "found", "gold", "right")
SAME_F1 = 1e-6  # sums are whole numbers, so only the last digits may differ


class Brackets(NamedTuple):
    """The counts of S sentences, in the order of the text."""

    words: NDArray[np.int64]  # [S] in the sentence
    found: NDArray[np.int64]  # [S] in the tree that was found, brackets that count
    gold: NDArray[np.int64]  # [S] in the gold tree
    right: NDArray[np.int64]  # [S] in both
    mended: Mapping[str, NDArray[np.int64]]  # by kind, [S]: how often; all zero for an output that was a tree

    @property
    def was_no_tree(self) -> NDArray[np.bool_]:
        """[S] whether anything had to be mended."""
        return np.any([self.words < 0, *(times > 0 for times in self.mended.values())], axis=0)

    def scores(self) -> dict[str, float]:
        """The scores of all sentences in per cent, by the names that a record uses."""
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
        """F1 of n parts of a text, sorted by sentence length, the shortest first; equal ones stay in text order."""
        order = np.argsort(self.words, kind="stable")
        return [
            f1(*(int(column[part].sum()) for column in (self.found, self.gold, self.right)))
            for part in np.array_split(order, n)
        ]


def f1(found: int, gold: int, right: int) -> float:
    """F1 in per cent, the harmonic mean of precision and recall; `right` are the brackets in both."""
    return _percent(2 * right, found + gold)


def has_brackets(record: Record) -> bool:
    """Whether a run has brackets to keep: finished, and scored by F1."""
    return record.status == "finished" and "f1" in record.about["scores"]


def write_brackets(place: Path, run: str, splits: Mapping[str, Brackets]) -> None:
    """Write the brackets of a run beside its record at `place`."""
    for split, of in splits.items():
        mended = {f"{MENDED}{kind}": times for kind, times in of.mended.items()}
        columns = {name: getattr(of, name) for name in COLUMNS} | mended
        artifacts.write(place, split, Artifact({"run": run}, columns))


def read_brackets(results: Path, record: Record) -> dict[str, Brackets] | None:
    """The brackets of a run by split, from beside its record under `results`; None where there are none.

    Raises ValueError if they are of another run, have another number of sentences, or give other scores than the
    record's.
    """
    place, made = path(results, record), dict[str, Brackets]()
    for split in SPLITS:
        found = artifacts.read(place, split, run=record.run, n=record.n_sentences(split))
        if found is None or COLUMNS[0] not in found.columns:
            return None
        columns = {name: np.asarray(column, np.int64) for name, column in found.columns.items()}
        mended = {name.removeprefix(MENDED): times for name, times in columns.items() if name.startswith(MENDED)}
        words, brackets, gold, right = (columns[name] for name in COLUMNS)
        made[split] = Brackets(words, brackets, gold, right, mended)
        if (right > np.minimum(brackets, gold)).any():
            raise ValueError(f"{place}: {split}: expected no more right brackets than were found. {artifacts.AGAIN}")
        for name, counted in made[split].scores().items():
            scored = record.score(split, name)
            if scored is None or abs(scored - counted) > SAME_F1:
                expected = f"expected brackets that give the record's {name} of {scored}, got {counted}"
                raise ValueError(f"{place}: {split}: {expected}. {artifacts.AGAIN}")
    return made


def fault_of_brackets(results: Path, record: Record) -> str | None:
    """Why the brackets beside a record do not match its scores; None where they match or are not needed."""
    if not has_brackets(record):
        return None
    try:
        found = read_brackets(results, record)
    except (ValueError, OSError) as error:
        return str(error)
    return None if found else "its brackets of dev and test are missing"


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
