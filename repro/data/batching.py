"""The plan: which sentences make up which update. Paper: section 5.1.

"Sentence pairs were batched together by approximate sequence length. Each training batch contained a set
of sentence pairs containing approximately 25000 source tokens and 25000 target tokens."

The plan of an epoch is a pure function of the data, the seed and the epoch: the same batches in the same
order on every machine, for any number of processes. So a checkpoint needs to keep nothing but the number
of updates done, and the number of tokens in an update is known before its first forward pass.

A side of a batch is a rectangle of *padded tokens* (`slots`), its sentences times the longest of them; what no real
token fills is padding. Lengths count EOS. The size of a batch is counted in one of two ways: `by_tokens` as the paper
says, real tokens only, or `by_padded_tokens` as its first public code does, padding included.

Epochs differ in which of the sentences of equal lengths stands where. How long the sentences of each batch
are does not change, so all numbers of the batches come from how many pairs there are of each kind, and the
pairs themselves are looked at only to sort them: 36 million are planned in seconds.

A text of `GROUPS_FROM` pairs or more is planned in two levels, as nobody can hold all of it: its shards, in an order of
their own for each (data, seed), are cut into groups, an epoch is one group after the other, and the batches of a group
are made from its shards as those of a smaller text are from all of it. So a process plans one group at a time, wherever
it begins. Which shards make up a group is the same in every epoch, hence the number of updates is too.
"""

import hashlib
import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from repro.data.lengths import Counts, PairLengths, Whole, chunks, merged

Ints = NDArray[np.integer]

GROUPS_FROM = 50_000_000  # pairs; the order of a smaller text is for ever what it was before there were groups
GROUP = 2**25  # pairs of a group, give or take a shard: while it is planned 20 bytes of each are in memory


@dataclass(frozen=True, kw_only=True, eq=False)
class EpochPlan:
    """The batches of one epoch, or of a group in one, in the order of training; each sentence is in one of them."""

    order: Ints  # [n_sentences] sentence numbers, batch after batch; uint32 where that is enough, or int64
    starts: Ints  # [n_batches + 1] where each batch begins in `order`, and the end
    source_tokens: Ints  # [n_batches] tokens, without padding
    target_tokens: Ints  # [n_batches]
    slots: Ints  # [n_batches] slots of both sides

    def __len__(self) -> int:
        return len(self.starts) - 1

    def batch(self, i: int) -> Ints:
        """The sentences of batch i, short before long."""
        return self.order[self.starts[i] : self.starts[i + 1]]

    @property
    def padding(self) -> float:
        """The padding ratio: of all slots, both sides together, how many hold padding."""
        slots = int(self.slots.sum())
        return (slots - int(self.source_tokens.sum() + self.target_tokens.sum())) / slots

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
    epoch: int
    sentences: Ints
    source_tokens: int
    target_tokens: int


@dataclass(frozen=True, kw_only=True, eq=False)
class PairKinds:
    """All pairs in the order of their kinds: pairs of equal lengths are one kind and stand together."""

    keys: NDArray[np.int64]  # [n_kinds] ascending
    ends: NDArray[np.int64]  # [n_kinds] where each kind ends: the number of pairs up to there
    source: NDArray[np.int64]  # [n_kinds] tokens of the source of each pair of the kind
    target: NDArray[np.int64]  # [n_kinds]

    @property
    def longest(self) -> NDArray[np.int64]:
        """[n_kinds] tokens of the longer side, ascending."""
        return np.maximum(self.source, self.target)


BatchBy = Callable[[PairKinds, int], Ints]  # from sorted pairs and a budget a side to where batches begin, and the end


def by_padded_tokens(kinds: PairKinds, budget: int) -> Ints:
    """As many pairs as keep each side within `budget` padded tokens: what a device holds.

    A batch whose longest sentence has n tokens has room for budget // n sentences, and cannot reach beyond
    the last sentence of n tokens. The best n is taken.
    """
    longest = kinds.longest
    last = np.flatnonzero(np.diff(longest, append=0))  # of the kinds that agree in it
    up_to, room = kinds.ends[last], budget // longest[last]
    bounds = [0]
    while bounds[-1] < up_to[-1]:
        bounds.append(int(np.minimum(up_to, bounds[-1] + room).max()))
    return np.array(bounds)


def by_tokens(kinds: PairKinds, budget: int) -> Ints:
    """As many pairs as keep each side within `budget` real tokens. Paper: "approximately 25000" of each."""
    ends = kinds.ends.tolist()
    sizes = np.diff(kinds.ends, prepend=0)
    # of each side: the length in each kind, and the tokens up to the end of each
    sides = [(side.tolist(), np.cumsum(sizes * side).tolist()) for side in (kinds.source, kinds.target)]

    def reach(begin: int, lengths: list[int], tokens: list[int]) -> int:
        """Where a batch from pair `begin` on is full on this side."""
        kind = bisect_right(ends, begin)
        limit = tokens[kind] - (ends[kind] - begin) * lengths[kind] + budget
        kind = bisect_right(tokens, limit)  # the first that does not fit whole
        return ends[-1] if kind == len(ends) else ends[kind] + (limit - tokens[kind]) // lengths[kind]

    bounds = [0]
    while bounds[-1] < ends[-1]:
        bounds.append(min(reach(bounds[-1], *side) for side in sides))
    return np.array(bounds)


BATCH_BY: dict[str, BatchBy] = {"padded_tokens": by_padded_tokens, "tokens": by_tokens}


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Shards whose pairs are batched with each other, and the batches before they are shuffled."""

    shards: Sequence[int]
    kinds: PairKinds
    bounds: Ints  # [n_batches + 1] where each begins among the sorted pairs, and the end
    source_tokens: Ints  # [n_batches] tokens, without padding
    target_tokens: Ints  # [n_batches]
    slots: Ints  # [n_batches] slots of both sides

    def __len__(self) -> int:
        return len(self.bounds) - 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Which pairs make up which update, for ever: a function of (text, seed)."""

    lengths: PairLengths
    budget: int  # tokens of a side of a batch, padded or real
    batch_by: BatchBy = by_padded_tokens
    data_hash: str
    seed: int

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All groups, from how many pairs have which lengths. Raises ValueError for a text that has no plan."""
        if not sum(self.lengths.sizes):
            raise ValueError("Expected at least one sentence pair, got none. Check the training files.")
        return tuple(map(self._group, _grouped(self.lengths.sizes, f"{self.data_hash}/{self.seed}/groups")))

    @cached_property
    def updates_per_epoch(self) -> int:
        """The number of batches: the same in every epoch, as only sentences of equal lengths change places."""
        return sum(map(len, self.groups))

    @property
    def tokens(self) -> tuple[int, int]:
        """Of an epoch, source and target."""
        groups = self.groups
        return sum(int(one.source_tokens.sum()) for one in groups), sum(int(one.target_tokens.sum()) for one in groups)

    @property
    def padding(self) -> float:
        """The padding ratio of an epoch, as `EpochPlan.padding`."""
        slots = sum(int(group.slots.sum()) for group in self.groups)
        return (slots - sum(self.tokens)) / slots

    def updates(self, start: int = 0) -> Iterator[Update]:
        """All updates from number `start` on, epoch after epoch, without end and without any saved state."""
        step = start
        for epoch, group, done in self._groups_from(start):
            plan = self.planned(epoch, group)
            for i in range(done, len(plan)):
                yield Update(
                    step=step,
                    epoch=epoch,
                    sentences=plan.batch(i),
                    source_tokens=int(plan.source_tokens[i]),
                    target_tokens=int(plan.target_tokens[i]),
                )
                step += 1
            del plan  # before the next one is made

    def planned(self, epoch: int, number: int = 0) -> EpochPlan:
        """The batches of group `number` in an epoch."""
        group, name = self.groups[number], f"{self.data_hash}/{self.seed}/{epoch}"
        source, target = (_joined(parts) for parts in zip(*map(self.lengths.of, group.shards), strict=True))
        if [*group.shards] == list(range(len(self.lengths.sizes))):  # all of the text, in its order
            return _shuffled(source, target, group, name)
        made = _shuffled(source, target, group, f"{name}/{number}")
        return replace(made, order=self._sentences(group)[made.order])

    def digest(self, step: int) -> str:
        """SHA-256 of how the text is cut, and of all batches of the group that update `step` belongs to."""
        sha256 = hashlib.sha256()
        for group in self.groups:
            for numbers in (group.shards, group.bounds):
                sha256.update(np.array([len(numbers), *numbers], "<i8").tobytes())
        epoch, number, _ = next(self._groups_from(step))
        sha256.update(f"{epoch}/{number}/{self.planned(epoch, number).digest}".encode())
        return sha256.hexdigest()

    def _groups_from(self, step: int) -> Iterator[tuple[int, int, int]]:
        """From update `step` on, without end: epoch, group, and how many of its batches stand before."""
        first, done = divmod(step, self.updates_per_epoch)
        for epoch in itertools.count(first):
            random = _philox(f"{self.data_hash}/{self.seed}/{epoch}/groups")
            for number in np.argsort(random.random_raw(len(self.groups)), kind="stable").tolist():
                n = len(self.groups[number])
                if done < n:
                    yield epoch, number, done
                done = max(0, done - n)

    def _group(self, shards: Sequence[int]) -> Group:
        counts = merged(self.lengths.counts(shard) for shard in shards)
        self._check(counts)
        kinds = _pair_kinds(counts)
        bounds = self.batch_by(kinds, self.budget)
        source_tokens, target_tokens, slots = _counts(kinds, bounds)
        return Group(
            shards=shards,
            kinds=kinds,
            bounds=bounds,
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            slots=slots,
        )

    def _sentences(self, group: Group) -> Ints:
        """[pairs] their numbers in the text, shard by shard."""
        starts = list(itertools.accumulate(self.lengths.sizes, initial=0))
        dtype = np.uint32 if starts[-1] <= 2**32 else np.int64
        return np.concatenate([np.arange(starts[shard], starts[shard + 1], dtype=dtype) for shard in group.shards])

    def _check(self, counts: Counts) -> None:
        for side, name in enumerate(("source", "target")):
            shortest, longest = int(counts[:, side].min()), int(counts[:, side].max())
            if shortest < 1:
                raise ValueError(
                    f"Every sentence has at least its end: expected lengths from 1, got {shortest} for "
                    f"{name} sentence {self._first(side, shortest)}. Prepare the corpus again."
                )
            if longest > self.budget:
                raise ValueError(
                    f"Every sentence must fit a batch of {self.budget} tokens a side, but {name} sentence "
                    f"{self._first(side, longest)} has {longest}. Raise the budget or drop the pair from the corpus."
                )

    def _first(self, side: int, length: int) -> int:
        """The first sentence of that length."""
        starts = itertools.accumulate(self.lengths.sizes, initial=0)
        found = (np.flatnonzero(self.lengths.of(i)[side] == length) for i in range(len(self.lengths.sizes)))
        return next(start + int(places[0]) for start, places in zip(starts, found, strict=False) if len(places))


def plan_epoch(
    source_lengths: Ints,
    target_lengths: Ints,
    *,
    budget: int,
    batch_by: BatchBy = by_padded_tokens,
    data_hash: str,
    seed: int,
    epoch: int,
) -> EpochPlan:
    """Cut a text whose lengths are at hand into batches of at most `budget` tokens a side, and shuffle them."""
    plan = _at_hand(source_lengths, target_lengths, budget=budget, batch_by=batch_by, data_hash=data_hash, seed=seed)
    return plan.planned(epoch)


def updates_per_epoch(
    source_lengths: Ints, target_lengths: Ints, *, budget: int, batch_by: BatchBy = by_padded_tokens
) -> int:
    """Of a text whose lengths are at hand: the number of batches."""
    plan = _at_hand(source_lengths, target_lengths, budget=budget, batch_by=batch_by, data_hash="", seed=0)
    return plan.updates_per_epoch


def updates(
    source_lengths: Ints,
    target_lengths: Ints,
    *,
    budget: int,
    batch_by: BatchBy = by_padded_tokens,
    data_hash: str,
    seed: int,
    start: int = 0,
) -> Iterator[Update]:
    """Of a text whose lengths are at hand: all updates from number `start` on, see `Plan.updates`."""
    plan = _at_hand(source_lengths, target_lengths, budget=budget, batch_by=batch_by, data_hash=data_hash, seed=seed)
    return plan.updates(start)


def _at_hand(
    source_lengths: Ints, target_lengths: Ints, *, budget: int, batch_by: BatchBy, data_hash: str, seed: int
) -> Plan:
    lengths = Whole(np.asarray(source_lengths), np.asarray(target_lengths))
    return Plan(lengths=lengths, budget=budget, batch_by=batch_by, data_hash=data_hash, seed=seed)


def share(sentences: Ints, part: int, n_parts: int) -> Ints:
    """One of the `n_parts` micro-batches of a batch; it may be empty.

    Every n-th sentence, not a run of neighbours: a batch is sorted by length, so all parts get short and
    long sentences alike and hold nearly equally many tokens.
    """
    return sentences[part::n_parts]


def _grouped(sizes: Sequence[int], name: str) -> list[list[int]]:
    """The shards of each group: all in one, or shuffled and cut where their pairs pass equal shares of the text."""
    n, n_pairs = sum(sizes), np.array(sizes)
    if n < GROUPS_FROM:
        return [list(range(len(sizes)))]
    shuffled = np.argsort(_philox(name).random_raw(len(sizes)), kind="stable")
    shuffled = shuffled[n_pairs[shuffled] > 0]
    group = (n_pairs[shuffled].cumsum() - 1) * -(-n // GROUP) // n
    return [part.tolist() for part in np.split(shuffled, np.flatnonzero(np.diff(group)) + 1)]


def _joined(parts: Sequence[Ints]) -> Ints:
    """One after the other; one alone is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _shuffled(source_lengths: Ints, target_lengths: Ints, group: Group, name: str) -> EpochPlan:
    """The batches of a group in the epoch of that name; sentences are numbered as their lengths stand."""
    random, bounds = _philox(name), group.bounds

    # 1. sort by length, in random order among equals
    by_length = _sort(source_lengths, target_lengths, group.kinds, random)

    # 2. shuffle the batches
    shuffled = np.argsort(random.random_raw(len(bounds) - 1), kind="stable")
    begins, ends = bounds[:-1][shuffled], bounds[1:][shuffled]
    order: Ints = np.empty(len(by_length), np.uint32 if len(by_length) <= 2**32 else np.int64)
    np.concatenate([by_length[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)], out=order)

    return EpochPlan(
        order=order,
        starts=np.concatenate(([0], np.cumsum(ends - begins))),
        source_tokens=group.source_tokens[shuffled],
        target_tokens=group.target_tokens[shuffled],
        slots=group.slots[shuffled],
    )


def _sort(source_lengths: Ints, target_lengths: Ints, kinds: PairKinds, random: np.random.Philox) -> NDArray[np.uint64]:
    """Sentence numbers by their kinds, in random order among equals."""
    # One number a sentence: its kind in the high bits, random bits below, its own number lowest. No two are
    # equal, so the order depends on no sorting algorithm; and numbers alone sort faster than `argsort`.
    n, most = len(source_lengths), int(kinds.longest[-1])
    kind_bits, index_bits = int(kinds.keys[-1]).bit_length(), (n - 1).bit_length()
    if kind_bits + index_bits > 64:
        raise ValueError(
            f"{n} sentences of up to {most} tokens cannot be planned: expected keys of at most 64 bits, "
            f"got {kind_bits + index_bits}. Drop the longest sentences."
        )
    keys = random.random_raw(n)  # the one array of 64 bits a sentence: all that follows happens in its place
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


def _pair_kinds(counts: Counts) -> PairKinds:
    """The kinds of pairs in their order."""
    keys = _keys(counts[:, 0], counts[:, 1], int(counts[:, :2].max()))
    ascending = np.argsort(keys)
    source, target, sizes = counts[ascending].T
    return PairKinds(keys=keys[ascending], ends=np.cumsum(sizes), source=source, target=target)


def _counts(kinds: PairKinds, bounds: Ints) -> tuple[Ints, Ints, Ints]:
    """Source tokens, target tokens and slots of both sides, [n_batches] each, of batches cut at `bounds`."""
    edges = np.union1d(bounds, kinds.ends)  # between two neighbours all pairs are of one kind and in one batch
    sizes, kind = np.diff(edges), np.searchsorted(kinds.ends, edges[:-1], side="right")
    first = np.searchsorted(edges, bounds[:-1])
    source, target = kinds.source[kind], kinds.target[kind]
    widths = np.maximum.reduceat(source, first) + np.maximum.reduceat(target, first)
    return np.add.reduceat(sizes * source, first), np.add.reduceat(sizes * target, first), np.diff(bounds) * widths


def _keys(source_lengths: Ints, target_lengths: Ints, most: int) -> NDArray[np.int64]:
    """One number for both lengths: it sorts by the longer of the two sides, then by the sides' difference.

    The difference runs up for even lengths and down for odd ones, so neighbours are alike on *both* sides
    also where one length ends and the next begins. On 29,000 captions, 2048 slots a side, 2.0 % is padding;
    by source length and then target length, run up and down likewise, it is 2.6 %, in more batches.
    No length is above `most`.
    """
    source, target = source_lengths.astype(np.int64), target_lengths.astype(np.int64)
    longest, difference = np.maximum(source, target), source - target
    keys = np.where(longest & 1, -difference, difference)
    keys += longest * (2 * most) + most
    return keys


def _philox(name: str) -> np.random.Philox:
    """The stream of random numbers of that name.

    numpy promises the raw stream of a bit generator for ever, but not what `Generator` makes of it.
    """
    return np.random.Philox(key=int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little"))
