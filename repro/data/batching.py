"""The plan: which sentences make up which update. Paper: section 5.1.

"Sentence pairs were batched together by approximate sequence length. Each training batch contained a set
of sentence pairs containing approximately 25000 source tokens and 25000 target tokens."

The plan of an epoch is a pure function of the data, the seed and the epoch: the same batches in the same
order on every machine, for any number of processes. So a checkpoint only has to keep the number of updates
done, and the number of tokens in an update is known before its first forward pass.

A side of a batch is a rectangle of *padded tokens* (`slots`): the number of sentences times the length of the longest.
Slots without a real token hold padding. Lengths count EOS. The size of a batch is counted in one of two ways:
`by_tokens` counts real tokens only, as the paper says; `by_padded_tokens` counts padding too, as its first code does.

From epoch to epoch, sentences with equal lengths change places. The lengths in each batch do not change, so the sizes
of all batches follow from the number of pairs of each kind. The pairs themselves are only needed for sorting: 36
million are planned in seconds.
"""

import hashlib
import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer]
Counts = NDArray[np.int64]  # [kinds, 3] source length, target length, number of pairs; sorted, each kind once

NUMBERS_AT_ONCE = 2**18  # a few temporary arrays of this length fit in the processor's cache


def counted(source: Ints, target: Ints) -> Counts:
    """The number of pairs of each kind, that is, of each pair of lengths."""
    parts = (source[part].astype(np.int64) << 32 | target[part].astype(np.int64) for part in chunks(len(source)))
    return merged(_unpacked(*np.unique(keys, return_counts=True)) for keys in parts)


def merged(counts: Iterable[Counts]) -> Counts:
    """The counts of several parts of a text added up."""
    source, target, pairs = np.concatenate([np.empty((0, 3), np.int64), *counts]).T
    keys, place = np.unique(source << 32 | target, return_inverse=True)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, place, pairs)
    return _unpacked(keys, total)


def chunks(n: int) -> Iterator[slice]:
    """Slices that cut range(n) into parts of at most `NUMBERS_AT_ONCE`."""
    for begin in range(0, n, NUMBERS_AT_ONCE):
        yield slice(begin, min(begin + NUMBERS_AT_ONCE, n))


def _unpacked(keys: NDArray[np.int64], pairs: NDArray[np.int64]) -> Counts:
    """Counts from keys that each pack two lengths below 2^31 into one number."""
    return np.stack([keys >> 32, keys & (2**32 - 1), pairs], axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class EpochPlan:
    """The batches of one epoch in training order; each sentence is in exactly one batch."""

    order: Ints  # [n_sentences] sentence numbers, batch after batch; uint32 if that is wide enough, else int64
    starts: Ints  # [n_batches + 1] where each batch begins in `order`, and the end
    target_tokens: Ints  # [n_batches] tokens, without padding

    def __len__(self) -> int:
        return len(self.starts) - 1

    def batch(self, i: int) -> Ints:
        """The sentences of batch i, short before long."""
        return self.order[self.starts[i] : self.starts[i + 1]]

    @property
    def digest(self) -> str:
        """SHA-256 of the batches and their order: equal digests, equal epochs."""
        sha256 = hashlib.sha256()
        for numbers in (self.starts, self.order):
            for part in chunks(len(numbers)):
                sha256.update(numbers[part].astype("<i8").tobytes())
        return sha256.hexdigest()


@dataclass(frozen=True, kw_only=True, eq=False)
class Update:
    """What one optimizer update reads, over all processes and micro-batches together."""

    step: int  # counts updates from 0, over all epochs
    sentences: Ints
    target_tokens: int


@dataclass(frozen=True, kw_only=True, eq=False)
class PairKinds:
    """All pairs sorted by kind; two pairs are of one kind if their source lengths and target lengths are equal."""

    keys: NDArray[np.int64]  # [n_kinds] ascending
    ends: NDArray[np.int64]  # [n_kinds] where each kind ends: the number of pairs up to there
    source: NDArray[np.int64]  # [n_kinds] tokens of the source of each pair of the kind
    target: NDArray[np.int64]  # [n_kinds]

    @property
    def longest(self) -> NDArray[np.int64]:
        """[n_kinds] tokens of the longer side, ascending."""
        return np.maximum(self.source, self.target)


BatchBy = Callable[[PairKinds, int], Ints]  # (sorted pairs, budget of a side) -> where batches begin, and the end


def by_padded_tokens(kinds: PairKinds, budget: int) -> Ints:
    """Fill each batch with pairs until a side would exceed `budget` padded tokens, which is what a device holds.

    A batch whose longest sentence has n tokens has room for budget // n sentences, and cannot reach beyond
    the last sentence of n tokens. The n that gives the most pairs is taken.
    """
    longest = kinds.longest
    last = np.flatnonzero(np.diff(longest, append=0))  # the last kind of each longest length
    up_to, room = kinds.ends[last], budget // longest[last]
    bounds = [0]
    while bounds[-1] < up_to[-1]:
        bounds.append(int(np.minimum(up_to, bounds[-1] + room).max()))
    return np.array(bounds)


def by_tokens(kinds: PairKinds, budget: int) -> Ints:
    """Fill each batch until a side would exceed `budget` real tokens. Paper: "approximately 25000" of each."""
    ends = kinds.ends.tolist()
    sizes = np.diff(kinds.ends, prepend=0)
    # for each side: its length in each kind, and the number of tokens up to the end of each kind
    sides = [(side.tolist(), np.cumsum(sizes * side).tolist()) for side in (kinds.source, kinds.target)]

    def reach(begin: int, lengths: list[int], tokens: list[int]) -> int:
        """Where a batch that starts at pair `begin` is full on this side."""
        kind = bisect_right(ends, begin)
        limit = tokens[kind] - (ends[kind] - begin) * lengths[kind] + budget
        kind = bisect_right(tokens, limit)  # the first kind that does not fit completely
        return ends[-1] if kind == len(ends) else ends[kind] + (limit - tokens[kind]) // lengths[kind]

    bounds = [0]
    while bounds[-1] < ends[-1]:
        bounds.append(min(reach(bounds[-1], *side) for side in sides))
    return np.array(bounds)


BATCH_BY: dict[str, BatchBy] = {"padded_tokens": by_padded_tokens, "tokens": by_tokens}


@dataclass(frozen=True, eq=False)
class Plan:
    """Which pairs make up which update, in all epochs: a function of (text, seed)."""

    source: Ints  # [pairs] lengths
    target: Ints
    _: KW_ONLY
    budget: int  # tokens on each side of a batch, padded or real
    batch_by: BatchBy = by_padded_tokens
    data_hash: str = ""
    seed: int = 0
    counts: Counts | None = None  # of these lengths; None: they are counted here

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"The sides must be parallel: got {len(self.source)} source and {len(self.target)} target sentences. "
                "Prepare the corpus again."
            )

    @cached_property
    def kinds(self) -> PairKinds:
        """The kinds of all pairs, sorted. Raises ValueError for a text that has no plan."""
        if not len(self.source):
            raise ValueError("Expected at least one sentence pair, got none. Check the training files.")
        for name, lengths in (("source", self.source), ("target", self.target)):
            if (shortest := lengths.min()) < 1:
                raise ValueError(
                    f"Every sentence has at least its end: expected lengths from 1, got {shortest} for "
                    f"{name} sentence {lengths.argmin()}. Prepare the corpus again."
                )
            if (longest := lengths.max()) > self.budget:
                raise ValueError(
                    f"Every sentence must fit a batch of {self.budget} tokens a side, but {name} sentence "
                    f"{lengths.argmax()} has {longest}. Raise the budget or drop the pair from the corpus."
                )
        counts = counted(self.source, self.target) if self.counts is None else self.counts
        keys = _keys(counts[:, 0], counts[:, 1], int(counts[:, :2].max()))
        ascending = np.argsort(keys)
        source, target, sizes = counts[ascending].T
        return PairKinds(keys=keys[ascending], ends=np.cumsum(sizes), source=source, target=target)

    @cached_property
    def bounds(self) -> Ints:
        """Where each batch begins among the sorted pairs, and the end: [n_batches + 1]. The same in every epoch."""
        return self.batch_by(self.kinds, self.budget)

    @property
    def updates_per_epoch(self) -> int:
        """The number of batches, the same in every epoch: only sentences of equal lengths change places."""
        return len(self.bounds) - 1

    @cached_property
    def _target_tokens(self) -> Ints:
        """Target tokens of each batch before the shuffle, [n_batches]."""
        kinds, bounds = self.kinds, self.bounds
        edges = np.union1d(bounds, kinds.ends)  # between two neighbouring edges all pairs have one kind and one batch
        kind = np.searchsorted(kinds.ends, edges[:-1], side="right")
        tokens: Ints = np.add.reduceat(np.diff(edges) * kinds.target[kind], np.searchsorted(edges, bounds[:-1]))
        return tokens

    def updates(self, start: int = 0) -> Iterator[Update]:
        """All updates from number `start` on, epoch after epoch, without end. No saved state is needed."""
        first, done = divmod(start, self.updates_per_epoch)
        for epoch in itertools.count(first):
            plan = self.planned(epoch)
            for i in range(done, len(plan)):
                step = epoch * len(plan) + i
                yield Update(step=step, sentences=plan.batch(i), target_tokens=int(plan.target_tokens[i]))
            done = 0
            del plan  # free its memory before the next plan is made

    def planned(self, epoch: int) -> EpochPlan:
        """The batches of an epoch, shuffled."""
        random, bounds = _philox(f"{self.data_hash}/{self.seed}/{epoch}"), self.bounds

        # 1. sort by length, in random order among equals
        by_length = _sort(self.source, self.target, self.kinds, random)

        # 2. shuffle the batches
        shuffled = np.argsort(random.random_raw(len(bounds) - 1), kind="stable")
        begins, ends = bounds[:-1][shuffled], bounds[1:][shuffled]
        order: Ints = np.empty(len(by_length), np.uint32 if len(by_length) <= 2**32 else np.int64)
        batches = (by_length[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True))
        np.concatenate([*batches], out=order)

        return EpochPlan(
            order=order,
            starts=np.concatenate(([0], np.cumsum(ends - begins))),
            target_tokens=self._target_tokens[shuffled],
        )


def share(sentences: Ints, part: int, n_parts: int) -> Ints:
    """One of the `n_parts` micro-batches of a batch; it may be empty.

    It takes every n-th sentence, not a run of neighbours. A batch is sorted by length, so every part gets short
    and long sentences, and the parts have nearly equally many tokens.
    """
    return sentences[part::n_parts]


def _sort(source_lengths: Ints, target_lengths: Ints, kinds: PairKinds, random: np.random.Philox) -> NDArray[np.uint64]:
    """Sentence numbers by their kinds, in random order among equals."""
    # One key for each sentence: its kind in the high bits, then random bits, its own number in the low bits. No two
    # keys are equal, so every sorting algorithm gives the same order; and sorting them is faster than `argsort`.
    n, most = len(source_lengths), int(kinds.longest[-1])
    kind_bits, index_bits = int(kinds.keys[-1]).bit_length(), (n - 1).bit_length()
    if kind_bits + index_bits > 64:
        raise ValueError(
            f"{n} sentences of up to {most} tokens cannot be planned: expected keys of at most 64 bits, "
            f"got {kind_bits + index_bits}. Drop the longest sentences."
        )
    keys = random.random_raw(n)  # the only array of 64 bits a sentence: it is changed in place below
    for part in chunks(n):
        chunk, kind = keys[part], _keys(source_lengths[part], target_lengths[part], most)
        chunk >>= kind_bits
        chunk |= kind.view(np.uint64) << (64 - kind_bits)
        chunk >>= index_bits
        chunk <<= index_bits
        chunk |= np.arange(part.start, part.stop, dtype=np.uint64)
    keys.sort()
    keys &= (1 << index_bits) - 1
    return keys


def _keys(source_lengths: Ints, target_lengths: Ints, most: int) -> NDArray[np.int64]:
    """One sort key for both lengths: it sorts by the longer of the two sides, then by the sides' difference.

    The difference ascends for even lengths and descends for odd ones. So neighbours are alike on *both* sides,
    even where one length ends and the next begins. On 29,000 captions with 2048 slots a side, 2.0 % is padding.
    Sorting by source length and then target length, alternating likewise, gives 2.6 % and more batches.
    No length is above `most`.
    """
    source, target = source_lengths.astype(np.int64), target_lengths.astype(np.int64)
    longest, difference = np.maximum(source, target), source - target
    keys = np.where(longest & 1, -difference, difference)
    keys += longest * (2 * most) + most
    return keys


def _philox(name: str) -> np.random.Philox:
    """The random numbers that belong to this name.

    NumPy guarantees the raw stream of a bit generator for all versions, but not what `Generator` makes of it.
    """
    return np.random.Philox(key=int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little"))
