"""From lines to ids, once per corpus, vocabulary and set of rules; each step is kept in the cache.

Learn the tokens on the training text, then encode each split, a chunk of text into a shard of ids. As many processes
as there are cores make the shards; each shard is whole or absent, so whatever kills the work, it goes on at a shard,
and processes that prepare the same corpus at once share the work without knowing of each other.
"""

import functools
import hashlib
import json
import multiprocessing
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from repro.data import parallel_text
from repro.data.corpora import Corpus
from repro.data.datacard import SEEN, Facts, Overlap, card, repeats, write
from repro.data.filters import STOOD_BEFORE, check_rules, first_occurrences, identity, pair_hashes, reasons
from repro.data.parallel_text import Chunk, Parallel
from repro.data.shards import OFFSETS, SIDES, Prepared, Split, Store, mapped, shard_folder
from repro.data.tokenizer import Tokenizer, given_tokenizer, n_lone_bytes, n_unknown, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, alone, made_once, stated, verified

FORMAT = 1  # raise it when the rules of reading or the tokens change: every plan changes with it
LAYOUT = 2  # raise it when shards leave other facts: they are made again, and ids and plans stay
PAIRS_AT_ONCE = 20_000
TELL_SECONDS = 10.0  # between two words about the work
APART_FROM = 1 << 18  # lines; the memory that learning from fewer takes is not worth a process
LEARN_FROM = 1_500_000  # pairs; of a larger text an evenly spaced part, or the words would not fit into 2 GB

Found = dict[str, Any]  # what a step says of the folder that it filled
Tell = Callable[[str], None]


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
    """Have the ids of a corpus.

    Training pairs with a side of more than `max_length` tokens, EOS among them, are dropped and counted, and those that
    break one of `rules` (`repro/data/filters.py`). The result does not depend on `workers`, the number of processes.
    """
    started = time.perf_counter()
    for name, number in (("max_length", max_length), ("workers", workers)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}.")
    rules, workers = check_rules(rules), workers or _cores()
    reasons(rules, corpus.pair, [], [])  # now, not in every process, if a rule lacks something
    version = _version(corpus, subwords, max_length, rules)
    folder = cache / f"{corpus.name}-{corpus.pair}-{subwords.size}-{version[:12]}"

    overlap = Overlap({"dev": corpus.dev.pairs(), "test": corpus.test.pairs()})

    # 1. the tokens
    every = _every(corpus)
    with alone(folder / ".tokenizer.lock", tell):
        if not whole([folder / "tokenizer"]):
            if not corpus.vocabulary:
                tell(f"learning {subwords.size:,} tokens on {_part_of_text(every)}")
            task = functools.partial(_learn, corpus, subwords, every)
            # in a process of its own, if it takes memory that is worth having back
            for _ in _each({folder / "tokenizer": task}, workers=1, apart=_n_lines(corpus) > APART_FROM):
                pass
    tokenizer = Tokenizer.load(folder / "tokenizer" / "tokenizer.json")
    # so ids are never read with another tokenizer, nor shards of another size
    encoded = folder / f"encoded-{LAYOUT}-{tokenizer.sha256[:12]}-{parallel_text.CHUNK}"

    # 2. held-out text as it is, training text by the rules
    held_out = Encoder(tokenizer=folder / "tokenizer" / "tokenizer.json", sha256=tokenizer.sha256, pair=corpus.pair)
    training = replace(held_out, rules=rules, limit=max_length, overlap=overlap)
    dev, dev_facts = _split((corpus.dev,), held_out, encoded / "dev", workers, tell)
    test, test_facts = _split((corpus.test,), held_out, encoded / "test", workers, tell)
    train, train_facts = _split(corpus.train, training, encoded / "train", workers, tell)

    # 3. what it is
    data_hash = hashlib.sha256((version + tokenizer.sha256).encode()).hexdigest()
    facts = {"train": train_facts, "dev": dev_facts, "test": test_facts}
    manifest_hash = _manifest_hash(encoded, facts)

    learned = {} if corpus.vocabulary else {"learned_on": _part_of_text(every)}
    told = Facts(
        corpus=corpus.name,
        pair=corpus.pair,
        licence=corpus.licence,
        origin=corpus.origin,
        max_length=max_length,
        rules=identity(rules),
        train=facts["train"],
        dev=facts["dev"],
        test=facts["test"],
        tokenizer={"kind": subwords.kind, "size": tokenizer.size, "sha256": tokenizer.sha256} | learned,
        sha256=corpus.files,
        data_hash=data_hash,
        shards_sha256=manifest_hash,
        bytes_on_disk={"ids": _bytes(encoded, facts)},
    )

    def describe(empty: Path) -> Found:
        write(card(told), empty)
        return {}

    made_once(encoded / "card", describe)
    return Prepared(
        tokenizer=tokenizer,
        train=train,
        dev=dev,
        test=test,
        data_hash=data_hash,
        manifest_hash=manifest_hash,
        card=encoded / "card",
        repeats=repeats(told),
        seconds=time.perf_counter() - started,
    )


def _manifest_hash(encoded: Path, facts: Mapping[str, list[Found]]) -> str:
    """Of the manifests of all shards."""
    shards = [f"{name} {stated(shard_folder(encoded / name, i))[1]}" for name in facts for i in range(len(facts[name]))]
    return hashlib.sha256("\n".join(shards).encode()).hexdigest()


def _version(corpus: Corpus, subwords: Subwords, max_length: int, rules: tuple[str, ...]) -> str:
    """A hash of all that decides the ids, but for the tokens that are learned."""
    vocabulary = corpus.vocabulary and hashlib.sha256(corpus.vocabulary.read_bytes()).hexdigest()
    # what is usual goes unsaid: adding a choice must not change the plans of data made without it
    choices = {"kind": (subwords.kind, "bpe"), "rules": (identity(rules), {}), "vocabulary": (vocabulary, None)}
    unusual = {name: chosen for name, (chosen, usual) in choices.items() if chosen != usual}
    key = [FORMAT, corpus.sha256, corpus.pair, subwords.size, max_length, *([unusual] if unusual else [])]
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


def _bytes(encoded: Path, facts: Mapping[str, list[Found]]) -> int:
    """On disk, of ids and offsets."""
    shards = (shard_folder(encoded / name, i) for name in facts for i in range(len(facts[name])))
    return sum(path.stat().st_size for shard in shards for path in shard.iterdir() if path.name != MANIFEST)


# Subwords ----------------------------------------------------------------------------------------------------


def _n_lines(corpus: Corpus) -> int:
    return sum(part.fingerprints()[0].n_lines for part in corpus.train)


def _every(corpus: Corpus) -> int:
    """Sub-words are learned on the first of so many parts of each chunk: 1 means on all text."""
    return -(-_n_lines(corpus) // LEARN_FROM)


def _part_of_text(every: int) -> str:
    return "all training text" if every == 1 else f"a part in {every} of the training text"


def _learn(corpus: Corpus, subwords: Subwords, every: int, folder: Path) -> Found:
    if corpus.vocabulary:
        made = given_tokenizer(corpus.vocabulary.read_bytes().decode().removesuffix("\n").split("\n"))
    else:
        chunks = (chunk for part in corpus.train for chunk in part.chunks())
        pairs = (islice(chunk.pairs(), -(-chunk.n_lines // every)) for chunk in chunks)
        made = train_tokenizer(chain.from_iterable(chain.from_iterable(pairs)), subwords)
    made.save(folder / "tokenizer.json")
    return {"kind": subwords.kind, "on_every": every}


# Ids -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """How a chunk of text becomes a shard of ids; each process that helps has a copy."""

    tokenizer: Path
    sha256: str  # of the tokenizer
    pair: str
    rules: tuple[str, ...] = ()
    limit: int | None = None  # tokens of a side
    overlap: Overlap | None = None  # with the held-out text

    def hashes(self, chunk: Chunk, folder: Path) -> Found:
        """Write the hash of every pair that is text; equal pairs break the same rules, so those need not be asked."""
        found = [pair_hashes(*lines) for lines in _chunks(chunk, Counter())]
        atomic.write_bytes(folder / "hashes", np.concatenate([np.empty(0, np.uint64), *found]).tobytes())
        return {}

    def shard(self, chunk: Chunk, part: str, firsts: Path | None, folder: Path) -> Found:
        """Write ids and offsets of both sides; `firsts` says which of the pairs stood nowhere before."""
        tokenizer = _loaded(self.tokenizer, self.sha256)
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
            same_sides += sum(source == target for source, target in zip(*lines, strict=True))
            for what, found in (self.overlap.seen(*lines) if self.overlap else {}).items():
                for name, numbers in found.items():
                    seen[what][name].update(numbers)
        for name, side in zip(SIDES, sides, strict=True):
            side.write(folder, name)
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
        self.ids = [np.empty(0, tokenizer.dtype)]
        self.lengths = [np.empty(0, np.int64)]
        self.counts: Counter[str] = Counter(pieces=0, words=0, characters=0, unknown=0, byte_pieces=0)

    def add(self, ids: Any, lengths: Any, lines: Sequence[str]) -> None:
        self.ids.append(ids)
        self.lengths.append(lengths)
        self.counts.update(
            pieces=len(ids),
            words=sum(len(line.split()) for line in lines),
            characters=sum(map(len, lines)),
            unknown=n_unknown(self.tokenizer, ids),
            byte_pieces=n_lone_bytes(self.tokenizer, ids),
        )

    @property
    def n_sentences(self) -> int:
        return sum(map(len, self.lengths))

    @property
    def histogram(self) -> list[int]:
        """How many sentences have 0, 1, 2, ... tokens."""
        counted: list[int] = np.bincount(np.concatenate(self.lengths)).tolist()
        return counted

    def write(self, folder: Path, name: str) -> None:
        offsets = np.concatenate([np.zeros(1, np.int64), np.concatenate(self.lengths).cumsum()])
        atomic.write_bytes(folder / f"{name}.ids", np.concatenate(self.ids).tobytes())
        atomic.write_bytes(folder / f"{name}.offsets", offsets.astype(OFFSETS).tobytes())


@functools.cache
def _loaded(path: Path, sha256: str) -> Tokenizer:
    """Once per process, for all its shards."""
    tokenizer = Tokenizer.load(path)
    if tokenizer.sha256 != sha256:
        raise ValueError(f"{path} changed: expected SHA-256 {sha256}, got {tokenizer.sha256}. Prepare again.")
    return tokenizer


def _split(
    parts: Sequence[Parallel], encoder: Encoder, folder: Path, workers: int, tell: Tell
) -> tuple[Split, list[Found]]:
    """Have all shards of a split, and the facts of each."""
    chunks = [(part, chunk) for part in parts for chunk in part.chunks()]
    firsts = _first_occurrences(parts, encoder, folder, workers, tell) if "duplicates" in encoder.rules else None
    tasks = {
        shard_folder(folder, i): functools.partial(
            encoder.shard, chunk, part.name, shard_folder(firsts, i) if firsts else None
        )
        for i, (part, chunk) in enumerate(chunks)
    }
    facts = _made(tasks, parts, workers, tell)
    dropped: Counter[str] = Counter()
    for one in facts:
        dropped.update(one["dropped"])
    if not sum(one["pairs"] for one in facts):
        names = ", ".join(f"{part.source} and {part.target}" for part in parts)
        raise ValueError(f"No pair of {names} is left; dropped: {dict(dropped)}.")
    dtype: np.dtype[Any] = np.dtype(facts[0]["dtype"])
    source, target = (Store(folder, side, n_shards=len(facts), dtype=dtype) for side in SIDES)
    in_pieces = _loaded(encoder.tokenizer, encoder.sha256).unknown is not None
    return Split(source=source, target=target, text=tuple(parts), dropped=dict(dropped), in_pieces=in_pieces), facts


def _first_occurrences(parts: Sequence[Parallel], encoder: Encoder, folder: Path, workers: int, tell: Tell) -> Path:
    """A folder with one file a shard: of each clean pair, whether it stood nowhere before."""
    place = folder.with_name("first-occurrences")

    def find(empty: Path) -> Found:
        chunks = [chunk for part in parts for chunk in part.chunks()]
        hashed = folder.with_name("hashes")
        _made(
            {shard_folder(hashed, i): functools.partial(encoder.hashes, one) for i, one in enumerate(chunks)},
            parts,
            workers,
            tell,
        )
        hashes = [mapped(shard_folder(hashed, i) / "hashes", np.dtype(np.uint64)) for i in range(len(chunks))]
        for i, first in enumerate(first_occurrences(hashes)):
            atomic.write_bytes(shard_folder(empty, i), first.tobytes())
        return {}

    made_once(place, find)
    return place


# Many processes --------------------------------------------------------------------------------------------


def _made(
    tasks: Mapping[Path, Callable[[Path], Found]], parts: Sequence[Parallel], workers: int, tell: Tell
) -> list[Found]:
    """Have every folder as its task fills it, and the facts of each, in order."""
    made = whole(tasks)
    if missing := [folder for folder in tasks if folder not in made]:
        for part in parts:
            part.reread()
            if (part.source.parent / MANIFEST).exists():  # fetching unpacked it
                verified(part.source.parent)
        # each process goes its own way, so those that prepare the same corpus at once rarely make the same shard
        random.Random(f"{socket.gethostname()}/{os.getpid()}").shuffle(missing)
        started = told = time.monotonic()
        for n, (folder, facts) in enumerate(_each({folder: tasks[folder] for folder in missing}, workers), 1):
            made[folder] = facts
            if (now := time.monotonic()) - told > TELL_SECONDS:
                told, left = now, (now - started) / n * (len(missing) - n)
                tell(f"{folder.parent.name}: {n} of {len(missing)} shards, {left / 60:.0f} min left")
    return [made[folder] for folder in tasks]


def whole(folders: Iterable[Path]) -> dict[Path, Found]:
    """The facts of the folders that are there and undamaged."""

    def found(folder: Path) -> Found | None:
        try:
            return verified(folder)
        except (FileNotFoundError, ValueError):
            return None

    wanted = list(folders)
    with ThreadPoolExecutor() as threads:  # hashing lets other threads run
        return {folder: one for folder, one in zip(wanted, threads.map(found, wanted), strict=True) if one is not None}


def _each(
    tasks: Mapping[Path, Callable[[Path], Found]], workers: int, apart: bool = False
) -> Iterator[tuple[Path, Found]]:
    """Make each folder, in as many processes as may work; in whatever order they come. One needs no other process,
    unless it is to work `apart`, with as many threads as it likes.
    """
    workers = min(workers, len(tasks))
    if workers == 1 and not apart:
        yield from ((folder, made_once(folder, task)) for folder, task in tasks.items())
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads that hash
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(workers, context, _begin_helping, (workers == 1,)) as pool:
        try:
            pending = {pool.submit(made_once, folder, task): folder for folder, task in tasks.items()}
            for done in as_completed(pending):
                yield pending[done], done.result()
        except BrokenProcessPool as error:
            raise OSError(
                f"A process that worked on {next(iter(tasks)).parent} has ended: from outside, for want of memory? Or "
                "it could not start, see above. What was finished is kept: the same command goes on, and with fewer "
                "--workers it needs less memory."
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _cores() -> int:
    """That this process may use; of several that train together each has its share."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def _begin_helping(with_threads: bool) -> None:
    """One thread a process if there are several, no own answer to Ctrl-C, no life after the process that asked."""
    os.environ["TOKENIZERS_PARALLELISM"] = str(with_threads).lower()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = multiprocessing.parent_process()
    assert asked is not None

    def leave() -> None:
        asked.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
