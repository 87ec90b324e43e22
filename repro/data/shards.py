"""Ids on disk, in shards that are memory-mapped: 36 million pairs cost little memory and no start-up time.

Of each side a shard has one flat array of ids (16 bits each, 32 where the vocabulary needs them) and the offsets of its
sentences in it. `repro/data/prepare.py` writes them.
"""

import re
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from repro.data.parallel_text import Parallel
from repro.data.tokenizer import Tokenizer

SIDES = ("source", "target")
OPEN_FILES = 8_192
GOES_ON = re.compile("@@( |$)")  # at the end of a given token that the next one goes on
OFFSETS = np.dtype("<u4")


def shard_folder(folder: Path, shard: int) -> Path:
    """Where shard number `shard` of a split lies."""
    return folder / f"{shard:05d}"


def mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A file as a read-only array. Each such array keeps a file open."""
    if not path.stat().st_size:  # of a shard whose pairs were all dropped; an empty file cannot be mapped
        return np.empty(0, dtype)
    return np.asarray(np.memmap(path, dtype, mode="r"))


def _allow_open_files(n: int) -> None:
    """Raise this process's limit: shards of 40 million pairs are 600 files, and 1,024 is a usual limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = n if hard == resource.RLIM_INFINITY else min(n, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


class Side(Protocol):
    """The sentences of one language as ids, each ending in EOS."""

    @property
    def lengths(self) -> NDArray[np.integer]:
        """[sentences], each with its EOS."""
        ...

    def __len__(self) -> int: ...

    def sentence(self, i: int) -> NDArray[np.unsignedinteger]:
        """The ids of sentence i."""
        ...

    def gather(
        self, sentences: Sequence[int] | NDArray[np.integer]
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """The ids of many sentences, one after the other, and the length of each."""
        ...


@dataclass(frozen=True)
class Encoded:
    """A side in memory, as `Tokenizer.encode` gives it."""

    ids: NDArray[np.unsignedinteger]  # [tokens] of all sentences, one after the other
    offsets: NDArray[np.integer]  # [sentences + 1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets).astype(np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sentence(self, i: int) -> NDArray[np.unsignedinteger]:
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def gather(
        self, sentences: Sequence[int] | NDArray[np.integer]
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        gathered = [self.sentence(int(i)) for i in sentences]
        return np.concatenate([self.ids[:0], *gathered]), np.array([len(one) for one in gathered], np.int64)


class Store:
    """The sentences of one side of one split as ids, each ending in EOS, in shards.

    Only the names of the files are pickled: a data worker maps them again instead of receiving a copy.
    """

    def __init__(self, folder: Path, side: str, *, n_shards: int, dtype: np.dtype[np.unsignedinteger]) -> None:
        self._folder, self._side, self._n_shards, self._dtype = folder, side, n_shards, dtype
        _allow_open_files(OPEN_FILES)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name.startswith("_")}

    @cached_property
    def ids(self) -> list[NDArray[np.unsignedinteger]]:
        """Of each shard the [tokens] of all its sentences, one after the other; read-only."""
        return [self._mapped(shard, "ids", self._dtype) for shard in range(self._n_shards)]

    @cached_property
    def offsets(self) -> list[NDArray[np.uint32]]:
        """Of each shard [sentences + 1]: its sentence i is ids[offsets[i] : offsets[i + 1]]."""
        return [self._mapped(shard, "offsets", OFFSETS) for shard in range(self._n_shards)]

    def _mapped(self, shard: int, what: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        return mapped(shard_folder(self._folder, shard) / f"{self._side}.{what}", dtype)

    @cached_property
    def lengths(self) -> NDArray[np.uint16]:
        """[sentences], each with its EOS. The longest line that is read has 20,000 bytes."""
        return np.concatenate([np.diff(offsets).astype(np.uint16) for offsets in self.offsets])

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """[shards + 1]: where each shard begins among the sentences, and the end."""
        return np.cumsum([0, *(len(offsets) - 1 for offsets in self.offsets)])

    @property
    def n_tokens(self) -> int:
        return sum(len(ids) for ids in self.ids)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def sentence(self, i: int) -> NDArray[np.unsignedinteger]:
        """The ids of sentence i."""
        return self.gather([i])[0]

    def gather(
        self, sentences: Sequence[int] | NDArray[np.integer]
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """The ids of many sentences, one after the other, and the length of each."""
        wanted = np.asarray(sentences, np.int64)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"Sentences {wanted.min()} to {wanted.max()} wanted, there are {len(self)}.")
        lengths = self.lengths[wanted].astype(np.int64)
        places = lengths.cumsum() - lengths  # of each sentence in the result
        gathered = np.empty(lengths.sum(), self._dtype)

        # shard by shard, so that each is indexed once
        shard = np.searchsorted(self.starts, wanted, "right") - 1
        by_shard = np.argsort(shard, kind="stable")
        for members in np.split(by_shard, np.flatnonzero(np.diff(shard[by_shard])) + 1) if wanted.size else ():
            here = int(shard[members[0]])
            begin = self.offsets[here][wanted[members] - self.starts[here]].astype(np.int64)
            length = lengths[members]
            within = np.arange(length.sum()) - (length.cumsum() - length).repeat(length)
            gathered[places[members].repeat(length) + within] = self.ids[here][begin.repeat(length) + within]
        return gathered, lengths


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split on both sides, as ids and as text."""

    source: Store
    target: Store
    text: tuple[Parallel, ...]
    dropped: dict[str, int]  # pairs by reason; only training text loses any
    in_pieces: bool = False  # the text came in tokens

    def __len__(self) -> int:
        return len(self.source)

    @property
    def references(self) -> list[str]:
        """The target lines of held-out text, for scoring."""
        lines = (target for part in self.text for _, target in part.pairs())
        return [GOES_ON.sub("", line) for line in lines] if self.in_pieces else list(lines)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A corpus, ready to be planned and batched."""

    tokenizer: Tokenizer
    train: Split
    dev: Split
    test: Split
    data_hash: str  # of all that decides the ids; the plan is a function of it
    manifest_hash: str  # of every shard that was written: equal hashes, equal bytes
    card: Path  # folder of data_card.md and data_card.json
    repeats: Mapping[str, float]  # shares of text that stands where it should not, see `card.repeated`
    seconds: float  # that this call took

    @property
    def counts(self) -> dict[str, dict[str, Any]]:
        """Pairs, tokens and dropped pairs of each split, for the record."""
        return {
            name: {
                "pairs": len(split),
                "source_pieces": split.source.n_tokens,
                "target_pieces": split.target.n_tokens,
                "dropped": split.dropped,
            }
            for name, split in (("train", self.train), ("dev", self.dev), ("test", self.test))
        }
