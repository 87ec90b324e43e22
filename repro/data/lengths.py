"""The lengths of a text's pairs, shard by shard: all that a plan knows of a text.

Lengths count EOS. The number of pairs of each kind (`counted`) takes a few thousand numbers, however long the text is.
The lengths of every single pair are only needed for what is read next; those of a large text are never all in memory.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]  # [kinds, 3] source length, target length, number of pairs; sorted, each kind once

NUMBERS_AT_ONCE = 2**18  # a few temporary arrays of this length fit in the processor's cache


class PairLengths(Protocol):
    """The lengths of a text's pairs. A shard is a run of consecutive pairs."""

    @property
    def sizes(self) -> Sequence[int]:
        """The number of pairs in each shard, [shards]."""
        ...

    def counts(self, shard: int) -> Counts:
        """The number of pairs of each kind in a shard."""
        ...

    def of(self, shard: int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """The source lengths and the target lengths of a shard, [pairs] each."""
        ...


@dataclass(frozen=True)
class Whole:
    """Lengths in memory, as one shard."""

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
    """The number of pairs of each kind, that is, of each pair of lengths."""
    return merged(_counted(source[part], target[part]) for part in chunks(len(source)))


def merged(counts: Iterable[Counts]) -> Counts:
    """The counts of several parts of a text added up."""
    all_of_them = np.concatenate([np.empty((0, 3), np.int64), *counts])
    keys, place = np.unique(_keys(all_of_them[:, 0], all_of_them[:, 1]), return_inverse=True)
    pairs = np.zeros(len(keys), np.int64)
    np.add.at(pairs, place, all_of_them[:, 2])
    return _listed(keys, pairs)


def chunks(n: int) -> Iterator[slice]:
    """Slices that cut range(n) into parts of at most `NUMBERS_AT_ONCE`."""
    for begin in range(0, n, NUMBERS_AT_ONCE):
        yield slice(begin, min(begin + NUMBERS_AT_ONCE, n))


def _counted(source: NDArray[np.integer], target: NDArray[np.integer]) -> Counts:
    return _listed(*np.unique(_keys(source.astype(np.int64), target.astype(np.int64)), return_counts=True))


def _keys(source: NDArray[np.int64], target: NDArray[np.int64]) -> NDArray[np.int64]:
    """Two lengths below 2^31 packed into one number."""
    return source << 32 | target


def _listed(keys: NDArray[np.int64], pairs: NDArray[np.int64]) -> Counts:
    return np.stack([keys >> 32, keys & (2**32 - 1), pairs], axis=1)
