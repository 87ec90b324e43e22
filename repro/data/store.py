"""Ids on disk: one memory-mapped array a side, so 36 million pairs cost no memory and no start-up time.

`prepare` goes the way from lines to ids once per corpus, vocabulary and length limit, and keeps each step of
it in the cache: learn the tokenizer, then encode each split.
"""

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from repro import durable
from repro.data.corpus import Corpus, Parallel, made_once, verified
from repro.data.tokenizer import Tokenizer, train_tokenizer

FORMAT = 1  # raise it when the files, the rules of reading or the pieces change; older caches lie idle then
PAIRS_AT_ONCE = 50_000
SIDES = ("source", "target")


class Store:
    """The sentences of one side of one split as ids, each ending in EOS.

    Only the names of the files are pickled: a data worker maps them again instead of receiving a copy.
    """

    def __init__(self, folder: Path, side: str) -> None:
        facts = verified(folder)
        self._path, self._dtype = folder / side, np.dtype(facts["dtype"])

    def __getstate__(self) -> dict[str, Any]:
        return {"_path": self._path, "_dtype": self._dtype}

    @cached_property
    def ids(self) -> NDArray[np.unsignedinteger]:
        """[pieces] of all sentences, one after the other; read-only."""
        return np.asarray(np.memmap(self._path.with_suffix(".ids"), self._dtype, mode="r"))

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """[sentences + 1]: sentence i is ids[offsets[i] : offsets[i + 1]]."""
        return np.asarray(np.memmap(self._path.with_suffix(".offsets"), "<i8", mode="r"))

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """[sentences], each with its EOS."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def sentence(self, i: int) -> NDArray[np.unsignedinteger]:
        """The ids of sentence i."""
        if not 0 <= i < len(self):
            raise IndexError(f"There is no sentence {i} among {len(self)}.")
        return self.ids[self.offsets[i] : self.offsets[i + 1]]

    def gather(
        self, sentences: Sequence[int] | NDArray[np.integer]
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """The ids of many sentences, one after the other, and the length of each."""
        wanted = np.asarray(sentences, np.int64)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"Sentences {wanted.min()} to {wanted.max()} wanted, there are {len(self)}.")
        starts = self.offsets[wanted]
        lengths = self.offsets[wanted + 1] - starts
        moved = starts - (lengths.cumsum() - lengths)  # from its place in the result to that in the file
        return self.ids[np.arange(lengths.sum()) + moved.repeat(lengths)], lengths


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split on both sides, as ids and as text."""

    source: Store
    target: Store
    text: Parallel
    dropped: dict[str, int]  # pairs by reason; only training text loses any

    def __len__(self) -> int:
        return len(self.source)

    @property
    def references(self) -> list[str]:
        """The target lines of held-out text, for scoring."""
        return [target for _, target in self.text.pairs()]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A corpus, ready to be planned and batched."""

    tokenizer: Tokenizer
    train: Split
    dev: Split
    test: Split
    data_hash: str  # of every id and offset; the plan is a function of it
    seconds: float  # that this call took

    @property
    def counts(self) -> dict[str, dict[str, Any]]:
        """Pairs, pieces and dropped pairs of each split, for the record."""
        return {
            name: {
                "pairs": len(split),
                "source_pieces": len(split.source.ids),
                "target_pieces": len(split.target.ids),
                "dropped": split.dropped,
            }
            for name, split in (("train", self.train), ("dev", self.dev), ("test", self.test))
        }


def prepare(corpus: Corpus, *, vocab_size: int, cache: Path, max_length: int) -> Prepared:
    """Learn the tokenizer on both sides of the training text and encode the splits, unless that is done.

    Training pairs with a side of more than `max_length` pieces, EOS among them, are dropped and counted.
    """
    started = time.perf_counter()
    key = json.dumps([FORMAT, corpus.sha256, corpus.pair, vocab_size, max_length])
    version = hashlib.sha256(key.encode()).hexdigest()
    folder = cache / f"{corpus.name}-{corpus.pair}-{vocab_size}-{version[:12]}"

    def learn(empty: Path) -> dict[str, Any]:
        train_tokenizer(chain.from_iterable(corpus.train.pairs()), vocab_size).save(empty / "tokenizer.json")
        return {"format": FORMAT}

    made_once(folder / "tokenizer", learn)
    tokenizer = Tokenizer.load(folder / "tokenizer" / "tokenizer.json")

    def split(name: str, text: Parallel, limit: int | None) -> Split:
        place = folder / f"{name}-{tokenizer.sha256[:12]}"  # so ids are never read with another tokenizer
        facts = made_once(place, lambda empty: _encode(text, tokenizer, limit, empty))
        source, target = (Store(place, side) for side in SIDES)
        return Split(source=source, target=target, text=text, dropped=facts["dropped"])

    return Prepared(
        tokenizer=tokenizer,
        train=split("train", corpus.train, max_length),
        dev=split("dev", corpus.dev, None),
        test=split("test", corpus.test, None),
        data_hash=hashlib.sha256((version + tokenizer.sha256).encode()).hexdigest(),
        seconds=time.perf_counter() - started,
    )


def _encode(text: Parallel, tokenizer: Tokenizer, limit: int | None, folder: Path) -> dict[str, Any]:
    """Write ids and offsets of both sides into `folder`, a chunk of pairs at a time."""
    dropped: Counter[str] = Counter()

    def write(*files: BinaryIO) -> None:
        ids_files, offsets_files, ends = files[:2], files[2:], [0, 0]
        for file in offsets_files:
            file.write(bytes(8))  # the first sentence begins at 0
        pairs = text.pairs(dropped)
        while chunk := list(islice(pairs, PAIRS_AT_ONCE)):
            encoded = [tokenizer.encode(lines) for lines in zip(*chunk, strict=True)]
            lengths = [np.diff(offsets) for _, offsets in encoded]
            keep = np.ones(len(chunk), bool) if limit is None else np.maximum(*lengths) <= limit
            if not keep.all():
                dropped[f"longer than {limit} pieces"] += int((~keep).sum())
            for side, ((ids, _), length) in enumerate(zip(encoded, lengths, strict=True)):
                offsets = ends[side] + length[keep].cumsum()
                ids_files[side].write(ids[keep.repeat(length)].tobytes())
                offsets_files[side].write(offsets.astype("<i8").tobytes())
                ends[side] += int(length[keep].sum())
        if not all(ends):
            raise ValueError(f"No pair of {text.source} and {text.target} is left; dropped: {dict(dropped)}.")

    _write_together([folder / f"{side}.{what}" for what in ("ids", "offsets") for side in SIDES], write)
    return {"format": FORMAT, "dtype": tokenizer.dtype.str, "dropped": dict(dropped)}


def _write_together(paths: list[Path], write: Callable[..., None], *files: BinaryIO) -> None:
    """Open all of `paths` and let `write` fill them side by side."""
    if paths:
        durable.write_bytes(paths[0], lambda file: _write_together(paths[1:], write, *files, file))
    else:
        write(*files)
