"""A chunk of text becomes a shard of ids: the rules, the tokens, and the counts of what was kept and dropped."""

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.corpora.datacard import SEEN, Overlap
from repro.corpora.filters import STOOD_BEFORE, pair_hashes, reasons
from repro.corpora.parallel_text import Chunk
from repro.corpora.same_sentence import same_spelling
from repro.corpora.workers import FolderFacts
from repro.data.shards import Ids, write_shard
from repro.data.tokenizer import Tokenizer, n_lone_bytes, n_unknown
from repro.storage import atomic

PAIRS_AT_ONCE = 20_000


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """How a chunk of text becomes a shard of ids; each process that helps has a copy."""

    tokenizer: Path
    sha256: str  # of the tokenizer
    pair: str
    rules: tuple[str, ...] = ()
    limit: int | None = None  # tokens of a side
    overlap: Overlap | None = None  # with the held-out text

    def hashes(self, chunk: Chunk, folder: Path) -> FolderFacts:
        """Write the hash of every pair that is text; equal pairs break the same rules, so those need not be asked."""
        found = [pair_hashes(*lines) for lines in _chunks(chunk, Counter())]
        atomic.write_bytes(folder / "hashes", np.concatenate([np.empty(0, np.uint64), *found]).tobytes())
        return {}

    def shard(self, chunk: Chunk, part: str, firsts: Path | None, folder: Path) -> FolderFacts:
        """Write the ids of both sides; `firsts` says which of the pairs stood nowhere before."""
        tokenizer = loaded_tokenizer(self.tokenizer, self.sha256)
        is_first = np.fromfile(firsts, bool) if firsts else None
        dropped: Counter[str] = Counter()
        sides = (_Side(tokenizer), _Side(tokenizer))
        seen: dict[str, dict[str, set[int]]] = {what: {"dev": set(), "test": set()} for what in SEEN}
        n_read = same_sides = 0
        for sources, targets in _chunks(chunk, dropped):
            # 1. the rules
            broken = reasons(self.rules, self.pair, sources, targets)
            if is_first is not None:
                before = (~is_first[n_read : n_read + len(sources)]).tolist()
                broken = [why or (STOOD_BEFORE if stood else None) for why, stood in zip(broken, before, strict=True)]
            n_read += len(sources)
            dropped.update(why for why in broken if why)
            lines = [[line for line, why in zip(side, broken, strict=True) if not why] for side in (sources, targets)]

            # 2. the tokens
            encoded = [tokenizer.encode(side) for side in lines]
            lengths = [np.diff(offsets) for _, offsets in encoded]
            fits = np.maximum(*lengths) <= (np.inf if self.limit is None else self.limit)
            if not fits.all():
                dropped[f"longer than {self.limit} pieces"] += int((~fits).sum())
                lines = [[side[i] for i in np.flatnonzero(fits)] for side in lines]
            for side, (ids, _), length, kept in zip(sides, encoded, lengths, lines, strict=True):
                side.add(ids[fits.repeat(length)], length[fits], kept)
            same_sides += sum(
                same_spelling(source) == same_spelling(target) for source, target in zip(*lines, strict=True)
            )
            for what, found in (self.overlap.seen(*lines) if self.overlap else {}).items():
                for name, numbers in found.items():
                    seen[what][name].update(numbers)
        write_shard(folder, (sides[0].ids, sides[1].ids), (sides[0].lengths, sides[1].lengths))
        return {
            "part": part,
            "dtype": tokenizer.dtype.str,
            "lines": chunk.n_lines,
            "pairs": sides[0].n_sentences,
            "dropped": dict(dropped),
            "same_sides": same_sides,
            **{what: {name: sorted(numbers) for name, numbers in found.items()} for what, found in seen.items()},
            **{name: [side.counts[name] for side in sides] for name in sides[0].counts},
            "lengths": [side.histogram for side in sides],
        }


def _chunks(chunk: Chunk, dropped: Counter[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Sources and targets, many at a time."""
    pairs = chunk.pairs(dropped)
    while some := list(islice(pairs, PAIRS_AT_ONCE)):
        sources, targets = zip(*some, strict=True)
        yield sources, targets


class _Side:
    """What one side of a shard will hold."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._ids = [np.empty(0, tokenizer.dtype)]
        self._lengths = [np.empty(0, np.int64)]
        self.counts: Counter[str] = Counter(pieces=0, words=0, characters=0, unknown=0, byte_pieces=0)

    def add(self, ids: Any, lengths: Any, lines: Sequence[str]) -> None:
        self._ids.append(ids)
        self._lengths.append(lengths)
        self.counts.update(
            pieces=len(ids),
            words=sum(len(line.split()) for line in lines),
            characters=sum(map(len, lines)),
            unknown=n_unknown(self.tokenizer, ids),
            byte_pieces=n_lone_bytes(self.tokenizer, ids),
        )

    @property
    def n_sentences(self) -> int:
        return sum(map(len, self._lengths))

    @property
    def ids(self) -> Ids:
        """[tokens] of all sentences, one after the other."""
        return np.concatenate(self._ids)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[sentences]."""
        return np.concatenate(self._lengths)

    @property
    def histogram(self) -> list[int]:
        """How many sentences have 0, 1, 2, ... tokens."""
        counted: list[int] = np.bincount(self.lengths).tolist()
        return counted


@functools.cache
def loaded_tokenizer(path: Path, sha256: str) -> Tokenizer:
    """Once per process, for all its shards."""
    tokenizer = Tokenizer.load(path)
    if tokenizer.sha256 != sha256:
        raise ValueError(f"{path} changed: expected SHA-256 {sha256}, got {tokenizer.sha256}. Prepare again.")
    return tokenizer
