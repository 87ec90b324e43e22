"""Ids on disk, in memory-mapped shards: a billion pairs cost little memory and no start-up time.

A shard is one file. It is opened when it is first read, and few are open at a time: a batch opens only the shards that
it touches. `repro/corpora/prepare.py` makes them. The file contains, little-endian, one after the other:

    pairs, kinds, source tokens, target tokens             4 numbers of 64 bits
    counts [kinds, 3]: two lengths, and how many pairs     32 bits, see `repro/data/batching.py`
    where each source sentence begins, and the end         [pairs + 1] of 32 bits, counted in tokens
    the same of the target                                 [pairs + 1]
    source ids, sentence after sentence                    16 bits each, or 32 where the vocabulary needs them
    target ids
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from repro.data.batching import Counts, counted, merged
from repro.data.tokenizer import Tokenizer
from repro.data.vocabulary import whole_words
from repro.storage import atomic

SIDES = ("source", "target")
MOST_OPEN = 512  # shards at a time; a process may usually have 1,024 files open, and the paper's texts have 160 shards
SHARD = "pairs"  # the name of a shard's file
HEAD, OFFSETS = np.dtype("<u8"), np.dtype("<u4")
N_HEAD = 4

Ids = NDArray[np.unsignedinteger]


def shard_folder(folder: Path, shard: int) -> Path:
    """The folder of shard number `shard` of a split."""
    return folder / f"{shard:05d}"


def mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A file as a read-only array. Each such array keeps its file open."""
    if not path.stat().st_size:  # an empty file cannot be mapped; all pairs of the shard were dropped
        return np.empty(0, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r"))


def write_shard(folder: Path, ids: tuple[Ids, Ids], lengths: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
    """Write a shard: for each side the ids [tokens] of all sentences, concatenated, and the lengths [pairs]."""
    counts = counted(*lengths)
    head = np.array([len(lengths[0]), len(counts), len(ids[0]), len(ids[1])], HEAD)
    offsets = [np.concatenate([np.zeros(1, np.int64), side.cumsum()]).astype(OFFSETS) for side in lengths]

    def write(file: atomic.Hashed) -> None:
        for part in (head.tobytes(), counts.astype(OFFSETS).tobytes(), *(side.tobytes() for side in (*offsets, *ids))):
            file.write(part)

    atomic.write_bytes(folder / SHARD, write)


class Side(Protocol):
    """The sentences of one language as ids, each ending in EOS."""

    @property
    def lengths(self) -> NDArray[np.integer]:
        """The lengths of all sentences, each with its EOS: [sentences]."""
        ...

    @property
    def n_tokens(self) -> int:
        """The tokens of all sentences, each with its EOS."""
        ...

    def __len__(self) -> int: ...

    def sentence(self, i: int) -> Ids:
        """The ids of sentence i."""
        ...

    def gather(self, sentences: Sequence[int] | NDArray[np.integer]) -> tuple[Ids, NDArray[np.int64]]:
        """The ids of many sentences, one after the other, and the length of each."""
        ...


@dataclass(frozen=True)
class Encoded:
    """A side in memory, as returned by `Tokenizer.encode`."""

    ids: NDArray[np.unsignedinteger]  # [tokens] of all sentences, one after the other
    offsets: NDArray[np.integer]  # [sentences + 1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets).astype(np.int64)

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sentence(self, i: int) -> NDArray[np.unsignedinteger]:
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def gather(
        self, sentences: Sequence[int] | NDArray[np.integer]
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        gathered = [self.sentence(int(i)) for i in sentences]
        return np.concatenate([self.ids[:0], *gathered]), np.array([len(one) for one in gathered], np.int64)


@dataclass(frozen=True)
class Shard:
    """The content of one file, read-only, as memoryviews: slicing one costs a third of slicing an array."""

    counts: NDArray[np.uint32]  # [kinds, 3] as `Counts`
    offsets: tuple[memoryview, memoryview]  # [pairs + 1] of source and target
    ids: tuple[memoryview, memoryview]  # [tokens]; sentence i is ids[offsets[i] : offsets[i + 1]]


class Shards:
    """The shards of one split. The files read last stay open.

    Only names are pickled: a data worker opens what it reads instead of receiving a copy.
    """

    def __init__(self, folder: Path, *, n_shards: int, dtype: np.dtype[np.unsignedinteger]) -> None:
        self._folder, self._n_shards, self._dtype = folder, n_shards, dtype

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name.startswith("_")}

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """The type of an id."""
        return self._dtype

    @cached_property
    def heads(self) -> NDArray[np.int64]:
        """Pairs, kinds, source tokens and target tokens of each shard, [shards, 4]. Each file is opened and closed."""
        return np.array([self._head(shard) for shard in range(self._n_shards)], np.int64).reshape(-1, N_HEAD)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each shard begins among the sentences, and the end: [shards + 1]."""
        return np.concatenate([[0], self.heads[:, 0].cumsum()])

    @cached_property
    def opened(self) -> Callable[[int], Shard]:
        """A function that returns a shard, opening it if it is not open."""
        return functools.lru_cache(MOST_OPEN)(self._opened)

    def _path(self, shard: int) -> Path:
        return shard_folder(self._folder, shard) / SHARD

    def _head(self, shard: int) -> list[int]:
        """The head of one shard. Raises ValueError if the file does not have the length that the head says."""
        path, length = self._path(shard), N_HEAD * HEAD.itemsize
        with open(path, "rb", buffering=0) as file:
            raw, size = file.read(length), os.fstat(file.fileno()).st_size
        head: list[int] = np.frombuffer(raw, HEAD).tolist() if len(raw) == length else []
        if size != (expected := self._places(head)[-1] if head else length):
            raise ValueError(
                f"{path} is not a whole shard: expected {expected:,} bytes, got {size:,}. "
                "Delete its folder; it is made again."
            )
        return head

    def _places(self, head: Sequence[int]) -> list[int]:
        """Where counts, offsets and ids begin in the file, in bytes, and the end."""
        pairs, kinds, *tokens = (int(one) for one in head)
        word, id = OFFSETS.itemsize, self._dtype.itemsize
        sizes = [N_HEAD * HEAD.itemsize, 3 * word * kinds, *[word * (pairs + 1)] * 2, *(id * n for n in tokens)]
        return list(accumulate(sizes))

    def _opened(self, shard: int) -> Shard:
        file = mapped(self._path(shard), np.dtype(np.uint8))
        _, counts, *rest = (file[begin:end] for begin, end in pairwise([0, *self._places(self.heads[shard])]))
        offsets = [part.view(OFFSETS).data for part in rest[:2]]
        ids = [part.view(self._dtype).data for part in rest[2:]]
        return Shard(counts.view(OFFSETS).reshape(-1, 3), (offsets[0], offsets[1]), (ids[0], ids[1]))


class Store:
    """The sentences of one side of one split as ids, each ending in EOS, in shards."""

    def __init__(self, shards: Shards, side: str) -> None:
        self.shards, self.side = shards, SIDES.index(side)

    @cached_property
    def lengths(self) -> NDArray[np.uint16]:
        """The lengths of all sentences with EOS, [sentences]. 16 bits suffice: no line read is over 20,000 bytes."""
        offsets = (np.asarray(self._views(shard)[0]) for shard in range(len(self.shards.heads)))
        return np.concatenate([np.diff(of).astype(np.uint16) for of in offsets])

    @property
    def n_tokens(self) -> int:
        return int(self.shards.heads[:, 2 + self.side].sum())

    def __getstate__(self) -> dict[str, Any]:
        return {"shards": self.shards, "side": self.side}

    def __len__(self) -> int:
        return int(self.shards.starts[-1])

    def sentence(self, i: int) -> Ids:
        """The ids of sentence i."""
        return self.gather([i])[0]

    def gather(self, sentences: Sequence[int] | NDArray[np.integer]) -> tuple[Ids, NDArray[np.int64]]:
        """The ids of many sentences, one after the other, and the length of each."""
        wanted, starts = np.asarray(sentences, np.int64), self.shards.starts
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"Sentences {wanted.min()} to {wanted.max()} wanted, there are {len(self)}.")
        shard = np.searchsorted(starts, wanted, "right") - 1
        local, numbers = (wanted - starts[shard]).tolist(), shard.tolist()
        # a plain loop: arrays would need a dozen calls for each shard, and a batch touches a hundred shards
        opened = {number: self._views(number) for number in sorted(set(numbers))}
        found, lengths = [], []
        for number, i in zip(numbers, local, strict=True):
            offsets, ids = opened[number]
            begin, end = offsets[i], offsets[i + 1]
            found.append(ids[begin:end])
            lengths.append(end - begin)
        return np.frombuffer(bytearray().join(found), self.shards.dtype), np.array(lengths, np.int64)

    def _views(self, shard: int) -> tuple[memoryview, memoryview]:
        """Offsets and ids of a shard."""
        one = self.shards.opened(shard)
        return one.offsets[self.side], one.ids[self.side]


def pair_counts(source: Side, target: Side) -> Counts | None:
    """The number of pairs of each kind, where both sides belong to one text on disk; None where nobody has counted."""
    match source, target:
        case Store(side=0), Store(side=1) if source.shards is target.shards:
            return merged(source.shards.opened(i).counts.astype(np.int64) for i in range(len(source.shards.heads)))
    return None


class Lines(Protocol):
    """The lines of a text on both sides (`repro/corpora/parallel_text.py`)."""

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each (source, target) in order."""
        ...


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split on both sides, as ids and as text."""

    source: Side
    target: Side
    text: tuple[Lines, ...]
    dropped: dict[str, int]  # number of pairs by reason; only training text loses any
    pieces: str = ""  # the scheme by which the words of the target were already cut; "": they are whole

    def __len__(self) -> int:
        return len(self.source)

    @property
    def references(self) -> list[str]:
        """The target lines of held-out text, for scoring."""
        lines = (target for part in self.text for _, target in part.pairs())
        return [whole_words(line, self.pieces) for line in lines]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A corpus, ready to be planned and batched."""

    tokenizer: Tokenizer
    train: Split
    dev: Split
    test: Split
    data_hash: str  # of everything that decides the ids; the plan is a function of it
    ids_hash: str  # of all ids of all splits, as stored in shards: it identifies what a run reads
    manifest_hash: str  # of every shard that was written and the counts in it
    card: Path  # folder of data_card.json
    repeats: Mapping[str, float]  # shares of text that is also where it should not be
    notes: tuple[str, ...]  # sentences that a reader of the scores must know
    seconds: float  # how long this call took
