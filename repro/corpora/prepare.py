"""From lines to ids, once per corpus, vocabulary and set of rules; each step is kept in the cache.

Learn the tokens on the training text, then encode each split, a chunk of text into a shard of ids. One process for
each core makes shards. A shard is whole or absent, so work that was killed goes on at the next shard, and programs
that prepare the same corpus at once share the work without knowing of each other.
"""

import functools
import hashlib
import json
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.corpora import parallel_text
from repro.corpora.catalogue import Corpus
from repro.corpora.datacard import SEEN, Overlap, card, refuse_unlisted, repeats, unlisted, write_card
from repro.corpora.filters import STOOD_BEFORE, check_rules, first_occurrences, identity, pair_hashes, reasons
from repro.corpora.parallel_text import Chunk, Parallel
from repro.corpora.same_sentence import same_spelling
from repro.data.shards import SHARD, SIDES, Ids, Prepared, Shards, Split, Store, mapped, shard_folder, write_shard
from repro.data.tokenizer import Tokenizer, given_tokenizer, n_lone_bytes, n_unknown, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, alone, is_made, made_once, stated, verified
from repro.storage.process_pool import check_main_is_guarded, process_pool

FolderFacts = dict[str, Any]  # what a step returns about the folder that it filled
Tell = Callable[[str], None]
TELL_SECONDS = 10.0  # between two reports of progress

FORMAT = 1  # raise it when the rules of reading or the tokens change: every plan changes with it
LAYOUT = 3  # raise it when the facts of shards change: shards are made again, ids and plans stay
APART_FROM = 1 << 18  # lines; learning from fewer takes too little memory to need a process of its own
PAIRS_AT_ONCE = 20_000
LEARN_FROM = 1_500_000  # pairs; from a larger text an evenly spaced part is taken, so that words fit in 2 GB


def prepare(
    corpus: Corpus,
    *,
    subwords: Subwords,
    cache: Path,
    max_length: int,
    rules: Sequence[str] = (),
    workers: int | None = None,
    tell: Tell = lambda said: None,
) -> Prepared:
    """Return the ids of a corpus; make those that the cache lacks.

    Training pairs that have more than `max_length` tokens on a side, EOS included, or break one of `rules`
    (`repro/corpora/filters.py`), are dropped and counted. The result does not depend on `workers`, the number of
    processes. At every start, shards are read and compared with their hashes.
    """
    check_main_is_guarded()
    started = time.perf_counter()
    for name, number in (("max_length", max_length), ("workers", workers)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}.")
    _refuse_other(corpus, subwords)
    rules, workers = check_rules(rules), workers or usable_cores()
    reasons(rules, corpus.pair, [], [])  # raise here, not in every process, if a rule cannot work
    version = _version(corpus, subwords, max_length, rules)
    folder = cache / f"{corpus.name}-{corpus.pair}-{subwords.size}-{version[:12]}"

    overlap = Overlap({"dev": corpus.dev.pairs(), "test": corpus.test.pairs()})

    # 1. the tokens
    tokenizer = _tokenizer(corpus, subwords, folder, tell)
    # the name keeps apart the ids of other tokenizers and shards of other sizes
    encoded = folder / f"encoded-{LAYOUT}-{tokenizer.sha256[:12]}-{parallel_text.CHUNK}"

    # 2. held-out text as it is, training text by the rules
    held_out = Encoder(tokenizer=folder / "tokenizer" / "tokenizer.json", sha256=tokenizer.sha256, pair=corpus.pair)
    training = replace(held_out, rules=rules, limit=max_length, overlap=overlap)
    dev, dev_facts = _split((corpus.dev,), held_out, encoded / "dev", workers, tell)
    test, test_facts = _split((corpus.test,), held_out, encoded / "test", workers, tell)
    train, train_facts = _split(corpus.train, training, encoded / "train", workers, tell)

    # 3. what it is
    facts = {"train": train_facts, "dev": dev_facts, "test": test_facts}
    shards = [shard_folder(encoded / name, i) for name, of in facts.items() for i in range(len(of))]
    files = [path for shard in shards for path in shard.iterdir() if path.name != MANIFEST]
    about: dict[str, Any] = {"about": dict(corpus.about)} if corpus.about else {}
    told = card(
        **facts,
        rules=identity(rules),
        corpus=corpus.name,
        pair=corpus.pair,
        licence=corpus.licence,
        origin=corpus.origin,
        max_length=max_length,
        tokenizer=_described(tokenizer, corpus, subwords),
        sha256=dict(corpus.files),
        data_hash=hashlib.sha256((version + tokenizer.sha256).encode()).hexdigest(),
        shards_sha256=_hash(f"{shard.parent.name} {stated(shard)[1]}" for shard in shards),
        bytes_on_disk={"ids": sum(path.stat().st_size for path in files)},
        **about,
    )
    if corpus.vocabulary:
        refuse_unlisted(told, corpus.vocabulary)
    made_once(encoded / "card", functools.partial(write_card, told))
    return Prepared(
        tokenizer=tokenizer,
        train=replace(train, pieces=corpus.pieces),
        dev=replace(dev, pieces=corpus.pieces),
        test=replace(test, pieces=corpus.pieces),
        data_hash=told["data_hash"],
        ids_hash=_hash(json.loads((shard / MANIFEST).read_bytes())["files"][SHARD] for shard in shards),
        manifest_hash=told["shards_sha256"],
        card=encoded / "card",
        repeats=repeats(told),
        notes=(*corpus.notes, *unlisted(told)),
        seconds=time.perf_counter() - started,
    )


def _hash(of_shards: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(of_shards).encode()).hexdigest()


def _version(corpus: Corpus, subwords: Subwords, max_length: int, rules: tuple[str, ...]) -> str:
    """A hash of all that decides the ids, except the learned tokens."""
    vocabulary = corpus.vocabulary and hashlib.sha256(corpus.vocabulary.read_bytes()).hexdigest()
    # usual values are left out: a new choice must not change the plans of data made without it
    choices: dict[str, tuple[Any, Any]] = {
        "kind": (subwords.kind, "bpe"),
        "rules": (identity(rules), {}),
        "vocabulary": (vocabulary, None),
        "pieces": (corpus.pieces, "@@" if vocabulary else ""),
        "whole": (subwords.whole, ()),
    }
    unusual = {name: chosen for name, (chosen, usual) in choices.items() if chosen != usual}
    key = [FORMAT, corpus.sha256, corpus.pair, subwords.size, max_length, *([unusual] if unusual else [])]
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


# Sub-words ---------------------------------------------------------------------------------------------------


def _n_lines(corpus: Corpus) -> int:
    return sum(part.fingerprints()[0].n_lines for part in corpus.train)


def _every(corpus: Corpus) -> int:
    """The n for which sub-words are learned on the first 1/n of each chunk; 1 means on all text."""
    return -(-_n_lines(corpus) // LEARN_FROM)


def _part_of_text(every: int) -> str:
    return "all training text" if every == 1 else f"a part in {every} of the training text"


def _tokenizer(corpus: Corpus, subwords: Subwords, folder: Path, tell: Tell) -> Tokenizer:
    """The tokenizer in `folder`; it is learned, or made from a given vocabulary, if absent."""
    every = _every(corpus)
    with alone(folder / ".tokenizer.lock", tell):
        if not whole([folder / "tokenizer"]):
            if not corpus.vocabulary:
                tell(f"learning {subwords.size:,} tokens on {_part_of_text(every)}")
            task = functools.partial(_learn, corpus, subwords, every)
            # in a process of its own if it takes much memory, which then is freed
            list(made_each({folder / "tokenizer": task}, workers=1, apart=_n_lines(corpus) > APART_FROM))
    return Tokenizer.load(folder / "tokenizer" / "tokenizer.json")


def _described(tokenizer: Tokenizer, corpus: Corpus, subwords: Subwords) -> dict[str, Any]:
    """What the data card says of the tokenizer."""
    learned = {} if corpus.vocabulary else {"learned_on": _part_of_text(_every(corpus))}
    return {"kind": subwords.kind, "size": tokenizer.size, "sha256": tokenizer.sha256} | learned


def _refuse_other(corpus: Corpus, subwords: Subwords) -> None:
    """Raise ValueError if `subwords` do not fit: a text has those it came with, or they are learned."""
    if corpus.vocabulary and subwords.kind != "given":
        raise ValueError(
            f"{corpus.name} came split into sub-words, those of {corpus.vocabulary}; expected "
            f'Subwords("given", 0), got {subwords}. Ask for those; if the text is not split, remove the file.'
        )
    if not corpus.vocabulary and subwords.kind == "given":
        raise ValueError(
            f'{corpus.name} came without a vocabulary; expected sub-words to learn, as Subwords("bpe", 8_000), got '
            f"{subwords}."
        )


def _learn(corpus: Corpus, subwords: Subwords, every: int, folder: Path) -> FolderFacts:
    if corpus.vocabulary:
        try:
            made = given_tokenizer(_pieces(corpus.vocabulary), pieces=corpus.pieces)
        except UnicodeDecodeError as error:
            where = f"{corpus.vocabulary} is not UTF-8 (byte {error.start + 1:,} of it)"
            raise ValueError(f"{where}. Convert it first: iconv -f ENCODING -t UTF-8.") from None
        except ValueError as error:
            raise ValueError(f"{corpus.vocabulary}: {error}") from error
    else:
        chunks = (chunk for part in corpus.train for chunk in part.chunks())
        pairs = (islice(chunk.pairs(), -(-chunk.n_lines // every)) for chunk in chunks)
        made = train_tokenizer(chain.from_iterable(chain.from_iterable(pairs)), subwords, pieces=corpus.pieces)
    made.save(folder / "tokenizer.json")
    return {"kind": subwords.kind, "on_every": every}


def _pieces(vocabulary: Path) -> list[str]:
    """The pieces of a vocabulary, one a line; as in texts, a byte order mark and Windows line ends are allowed."""
    lines = vocabulary.read_bytes().decode("utf-8-sig").removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if all(line.endswith("\r") for line in lines) else lines


# Shards --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """How a chunk of text becomes a shard of ids; each process that helps has a copy."""

    tokenizer: Path
    sha256: str  # of the tokenizer
    pair: str
    rules: tuple[str, ...] = ()
    limit: int | None = None  # most tokens of a side
    overlap: Overlap | None = None  # with the held-out text

    def hashes(self, chunk: Chunk, folder: Path) -> FolderFacts:
        """Write the hash of every pair that is text; rules need not be asked, as equal pairs break the same ones."""
        found = [pair_hashes(*lines) for lines in _chunks(chunk, Counter())]
        atomic.write_bytes(folder / "hashes", np.concatenate([np.empty(0, np.uint64), *found]).tobytes())
        return {}

    def shard(self, chunk: Chunk, part: str, firsts: Path | None, folder: Path) -> FolderFacts:
        """Write the ids of both sides; `firsts` says which of the pairs are first occurrences."""
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
            "pairs": len(sides[0].lengths),
            "dropped": dict(dropped),
            "same_sides": same_sides,
            **{what: {name: sorted(numbers) for name, numbers in found.items()} for what, found in seen.items()},
            **{name: [side.counts[name] for side in sides] for name in sides[0].counts},
            "lengths": [np.bincount(side.lengths).tolist() for side in sides],
        }


def _chunks(chunk: Chunk, dropped: Counter[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The sources and targets of a chunk, PAIRS_AT_ONCE at a time."""
    pairs = chunk.pairs(dropped)
    while some := list(islice(pairs, PAIRS_AT_ONCE)):
        sources, targets = zip(*some, strict=True)
        yield sources, targets


class _Side:
    """One side of a shard, as far as it has been encoded."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.ids: Ids = np.empty(0, tokenizer.dtype)  # [tokens] of all sentences, one after the other
        self.lengths: NDArray[np.int64] = np.empty(0, np.int64)  # [sentences]
        self.counts: Counter[str] = Counter(pieces=0, words=0, characters=0, unknown=0, byte_pieces=0)

    def add(self, ids: Any, lengths: Any, lines: Sequence[str]) -> None:
        self.ids = np.concatenate([self.ids, ids])
        self.lengths = np.concatenate([self.lengths, lengths])
        self.counts.update(
            pieces=len(ids),
            words=sum(len(line.split()) for line in lines),
            characters=sum(map(len, lines)),
            unknown=n_unknown(self.tokenizer, ids),
            byte_pieces=n_lone_bytes(self.tokenizer, ids),
        )


@functools.cache
def loaded_tokenizer(path: Path, sha256: str) -> Tokenizer:
    """The tokenizer, loaded once per process. Raises ValueError if the file has changed."""
    tokenizer = Tokenizer.load(path)
    if tokenizer.sha256 != sha256:
        raise ValueError(f"{path} changed: expected SHA-256 {sha256}, got {tokenizer.sha256}. Prepare again.")
    return tokenizer


# Ids -------------------------------------------------------------------------------------------------------


def _split(
    parts: Sequence[Parallel],
    encoder: Encoder,
    folder: Path,
    workers: int,
    tell: Tell,
) -> tuple[Split, list[FolderFacts]]:
    """Make the shards of a split that are lacking; returns the split and the facts of each shard."""
    chunks = [(part, chunk) for part in parts for chunk in part.chunks()]
    firsts = _first_occurrences(parts, encoder, folder, workers, tell) if "duplicates" in encoder.rules else None
    tasks = {
        shard_folder(folder, i): functools.partial(
            encoder.shard, chunk, part.name, shard_folder(firsts, i) if firsts else None
        )
        for i, (part, chunk) in enumerate(chunks)
    }
    facts = made_all(tasks, parts, workers, tell)
    dropped: Counter[str] = Counter()
    for one in facts:
        dropped.update(one["dropped"])
    if not sum(one["pairs"] for one in facts):
        names = ", ".join(f"{part.source} and {part.target}" for part in parts)
        raise ValueError(f"No pair of {names} is left; dropped: {dict(dropped)}.")
    dtype: np.dtype[Any] = np.dtype(facts[0]["dtype"])
    shards = Shards(folder, n_shards=len(facts), dtype=dtype)
    source, target = (Store(shards, side) for side in SIDES)
    return Split(source=source, target=target, text=tuple(parts), dropped=dict(dropped)), facts


def _first_occurrences(parts: Sequence[Parallel], encoder: Encoder, folder: Path, workers: int, tell: Tell) -> Path:
    """A folder with a file for each shard: whether each clean pair is its first occurrence."""
    place = folder.with_name("first-occurrences")

    def find(empty: Path) -> FolderFacts:
        chunks = [chunk for part in parts for chunk in part.chunks()]
        hashed = folder.with_name("hashes")
        made_all(
            {shard_folder(hashed, i): functools.partial(encoder.hashes, one) for i, one in enumerate(chunks)},
            parts,
            workers,
            tell,
        )
        found = [mapped(shard_folder(hashed, i) / "hashes", np.dtype(np.uint64)) for i in range(len(chunks))]
        for i, first in enumerate(first_occurrences(found)):
            atomic.write_bytes(shard_folder(empty, i), first.tobytes())
        return {}

    made_once(place, find)
    return place


# Processes -------------------------------------------------------------------------------------------------
# Many processes fill folders together, each whole or absent. Nothing here depends on what is in them.


def made_all(
    tasks: Mapping[Path, Callable[[Path], FolderFacts]],
    parts: Sequence[Parallel],
    workers: int,
    tell: Tell,
) -> list[FolderFacts]:
    """Fill every folder that is absent or damaged by its task; return the facts of all, in order."""
    made = whole(tasks)
    if missing := [folder for folder in tasks if folder not in made]:
        for part in parts:
            if is_made(part.source.parent):  # fetching unpacked it
                verified(part.source.parent)
        # each program takes its own order: those that prepare the same corpus at once rarely make the same shard
        random.Random(f"{socket.gethostname()}/{os.getpid()}").shuffle(missing)
        started = told = time.monotonic()
        for n, (folder, facts) in enumerate(made_each({folder: tasks[folder] for folder in missing}, workers), 1):
            made[folder] = facts
            if (now := time.monotonic()) - told > TELL_SECONDS:
                told, left = now, (now - started) / n * (len(missing) - n)
                tell(f"{folder.parent.name}: {n} of {len(missing)} shards, {left / 60:.0f} min left")
    return [made[folder] for folder in tasks]


def whole(folders: Iterable[Path]) -> dict[Path, FolderFacts]:
    """The facts of the folders that exist and are undamaged: each is read and compared with its hashes."""

    def found(folder: Path) -> FolderFacts | None:
        try:
            return verified(folder)
        except (FileNotFoundError, ValueError):
            return None

    wanted = list(folders)
    with ThreadPoolExecutor() as threads:  # hashing lets other threads run
        return {folder: one for folder, one in zip(wanted, threads.map(found, wanted), strict=True) if one is not None}


def made_each(
    tasks: Mapping[Path, Callable[[Path], FolderFacts]], workers: int, apart: bool = False
) -> Iterator[tuple[Path, FolderFacts]]:
    """Make each folder, in at most `workers` processes, and yield each when it is done. A single worker is
    this process, unless it is to work `apart`, in a process with as many threads as it likes.
    """
    workers = min(workers, len(tasks))
    if workers == 1 and not apart:
        yield from ((folder, made_once(folder, task)) for folder, task in tasks.items())
        return
    ended = (
        f"A process that worked on {next(iter(tasks)).parent} has ended: it was killed, perhaps for lack of memory, or "
        "it could not start (see above). Finished work is kept. Type the same command again; fewer --workers need less "
        "memory."
    )
    with process_pool(workers, _allow_threads, workers == 1, where_one_ends=ended) as pool:
        pending = {pool.submit(made_once, folder, task): folder for folder, task in tasks.items()}
        for done in as_completed(pending):
            yield pending[done], done.result()


def usable_cores() -> int:
    """The cores that this process may use; processes that train together share them equally."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    together = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, cores // max(1, int(together))) if together.isdecimal() else cores  # no launcher sets "0" or "x"


def _allow_threads(allow: bool) -> None:
    """Let tokenizers use threads, or not: each of several processes has one thread."""
    os.environ["TOKENIZERS_PARALLELISM"] = str(allow).lower()
