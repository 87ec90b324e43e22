"""How long the pairs of a text are, shard by shard: all that a plan knows of a text.

Lengths count EOS. How many pairs have which lengths (`counted`) is a few thousand numbers however long the text is;
only what is about to be read needs the lengths of each pair, and nobody holds those of a whole large text.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]  # [kinds, 3] source length, target length, number of pairs; by length, no kind twice

NUMBERS_AT_ONCE = 2**18  # the few temporary arrays of that length stay in the processor's cache


class PairLengths(Protocol):
    """The lengths of a text's pairs. A shard is a run of consecutive pairs."""

    @property
    def sizes(self) -> Sequence[int]:
        """[shards] pairs of each."""
        ...

    def counts(self, shard: int) -> Counts:
        """How many pairs of a shard have which lengths."""
        ...

    def of(self, shard: int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """[pairs] of a shard, source and target."""
        ...


@dataclass(frozen=True)
class Whole:
    """Lengths that are at hand, as one shard."""

    source: NDArray[np.integer]  # [pairs]
    target: NDArray[np.integer]

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"The sides must be parallel: got {len(self.source)} source and {len(self.target)} target sentences. "
                "Prepare the corpus again."
            )

    @property
    def sizes(self) -> Sequence[int]:
        return [len(self.source)]

    def counts(self, shard: int) -> Counts:
        return counted(self.source, self.target)

    def of(self, shard: int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        return self.source, self.target


def counted(source: NDArray[np.integer], target: NDArray[np.integer]) -> Counts:
    """How many pairs have which lengths."""
    return merged(_counted(source[part], target[part]) for part in chunks(len(source)))


def merged(counts: Iterable[Counts]) -> Counts:
    """Of several parts of a text together."""
    all_of_them = np.concatenate([np.empty((0, 3), np.int64), *counts])
    keys, place = np.unique(_keys(all_of_them[:, 0], all_of_them[:, 1]), return_inverse=True)
    pairs = np.zeros(len(keys), np.int64)
    np.add.at(pairs, place, all_of_them[:, 2])
    return _listed(keys, pairs)


def chunks(n: int) -> Iterator[slice]:
    """The numbers below n in turn, `NUMBERS_AT_ONCE` at a time."""
    for begin in range(0, n, NUMBERS_AT_ONCE):
        yield slice(begin, min(begin + NUMBERS_AT_ONCE, n))


def _counted(source: NDArray[np.integer], target: NDArray[np.integer]) -> Counts:
    return _listed(*np.unique(_keys(source.astype(np.int64), target.astype(np.int64)), return_counts=True))


def _keys(source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for two lengths below 2^31."""
    return source << 32 | target


def _listed(keys: NDArray[np.int64], pairs: NDArray[np.int64]) -> Counts:
    return np.stack([keys >> 32, keys & (2**32 - 1), pairs], axis=1)
