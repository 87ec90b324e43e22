"""From lines to ids, once per corpus, vocabulary and set of rules; each step is kept in the cache.

Learn the pieces on the training text, then encode each split, a passage of text into a shard of ids. As many processes
as there are cores make the shards; each shard is whole or absent, so whatever kills the work, it goes on at a shard,
and processes that prepare the same corpus at once share the work without knowing of each other.
"""

import functools
import hashlib
import json
import multiprocessing
import os
import signal
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

from repro import durable
from repro.data.cache import MANIFEST, made_once, stated, verified
from repro.data.card import Facts, Overlap, card, write
from repro.data.cleaning import STOOD_BEFORE, check_rules, first_occurrences, identity, pair_hashes, reasons
from repro.data.corpus import Corpus
from repro.data.pieces import Pieces
from repro.data.store import OFFSETS, SIDES, Prepared, Split, Store, mapped, shard_folder
from repro.data.text import Parallel, Passage
from repro.data.tokenizer import Tokenizer, given_tokenizer, n_lone_bytes, n_unknown, train_tokenizer

FORMAT = 1  # raise it when the rules of reading or the pieces change: every plan changes with it
PAIRS_AT_ONCE = 20_000
TELL_SECONDS = 10.0  # between two words about the work
LEARN_FROM = 5_000_000  # pairs; of a larger text the pieces are learned on an evenly spaced part

Found = dict[str, Any]  # what a step says of the folder that it filled
Tell = Callable[[str], None]


def prepare(
    corpus: Corpus,
    *,
    pieces: Pieces,
    cache: Path,
    max_length: int,
    rules: Sequence[str] = (),
    workers: int | None = None,
    tell: Tell = lambda said: None,
) -> Prepared:
    """Have the ids of a corpus.

    Training pairs with a side of more than `max_length` pieces, EOS among them, are dropped and counted, and those that
    break one of `rules` (`repro/data/cleaning.py`). The result does not depend on `workers`, the number of processes.
    """
    started = time.perf_counter()
    rules, workers = check_rules(rules), workers or len(os.sched_getaffinity(0))
    version = _version(corpus, pieces, max_length, rules)
    folder = cache / f"{corpus.name}-{corpus.pair}-{pieces.size}-{version[:12]}"

    # 1. the pieces
    every = _every(corpus)
    made_once(folder / "tokenizer", lambda empty: _learn(corpus, pieces, every, empty, tell))
    tokenizer = Tokenizer.load(folder / "tokenizer" / "tokenizer.json")
    encoded = folder / f"encoded-{tokenizer.sha256[:12]}"  # so ids are never read with another tokenizer

    # 2. held-out text as it is, training text by the rules
    held_out = Encoder(tokenizer=folder / "tokenizer" / "tokenizer.json", sha256=tokenizer.sha256, pair=corpus.pair)
    overlap = Overlap(
        {name: [source for source, _ in text.pairs()] for name, text in (("dev", corpus.dev), ("test", corpus.test))}
    )
    training = replace(held_out, rules=rules, limit=max_length, overlap=overlap)
    dev, dev_facts = _split((corpus.dev,), held_out, encoded / "dev", workers, tell)
    test, test_facts = _split((corpus.test,), held_out, encoded / "test", workers, tell)
    train, train_facts = _split(corpus.train, training, encoded / "train", workers, tell)

    # 3. what it is
    data_hash = hashlib.sha256((version + tokenizer.sha256).encode()).hexdigest()
    facts = {"train": train_facts, "dev": dev_facts, "test": test_facts}
    manifest_hash = _manifest_hash(encoded, facts)

    def describe(empty: Path) -> Found:
        learned = (
            {} if corpus.vocabulary else {"learned_on": "all training text" if every == 1 else f"a part in {every}"}
        )
        made = Facts(
            corpus=corpus.name,
            pair=corpus.pair,
            licence=corpus.licence,
            origin=corpus.origin,
            max_length=max_length,
            rules=identity(rules),
            train=facts["train"],
            dev=facts["dev"],
            test=facts["test"],
            tokenizer={"kind": pieces.kind, "size": tokenizer.size, "sha256": tokenizer.sha256} | learned,
            sha256=corpus.files,
            data_hash=data_hash,
            shards_sha256=manifest_hash,
            bytes_on_disk={"ids": _bytes(encoded, facts)},
        )
        write(card(made), empty)
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
        seconds=time.perf_counter() - started,
    )


def _manifest_hash(encoded: Path, facts: Mapping[str, list[Found]]) -> str:
    """Of the manifests of all shards."""
    shards = [f"{name} {stated(shard_folder(encoded / name, i))[1]}" for name in facts for i in range(len(facts[name]))]
    return hashlib.sha256("\n".join(shards).encode()).hexdigest()


def _version(corpus: Corpus, pieces: Pieces, max_length: int, rules: tuple[str, ...]) -> str:
    """A hash of all that decides the ids, but for the pieces that are learned."""
    vocabulary = corpus.vocabulary and hashlib.sha256(corpus.vocabulary.read_bytes()).hexdigest()
    # what is usual goes unsaid: adding a choice must not change the plans of data made without it
    choices = {"kind": (pieces.kind, "bpe"), "rules": (identity(rules), {}), "vocabulary": (vocabulary, None)}
    unusual = {name: chosen for name, (chosen, usual) in choices.items() if chosen != usual}
    key = [FORMAT, corpus.sha256, corpus.pair, pieces.size, max_length, *([unusual] if unusual else [])]
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


def _bytes(encoded: Path, facts: Mapping[str, list[Found]]) -> int:
    """On disk, of ids and offsets."""
    shards = (shard_folder(encoded / name, i) for name in facts for i in range(len(facts[name])))
    return sum(path.stat().st_size for shard in shards for path in shard.iterdir() if path.name != MANIFEST)


# Pieces ----------------------------------------------------------------------------------------------------


def _every(corpus: Corpus) -> int:
    """Pieces are learned on the first of so many parts of each passage: 1 means on all text."""
    return -(-sum(part.fingerprints()[0].n_lines for part in corpus.train) // LEARN_FROM)


def _learn(corpus: Corpus, pieces: Pieces, every: int, folder: Path, tell: Tell) -> Found:
    if corpus.vocabulary:
        made = given_tokenizer(corpus.vocabulary.read_bytes().decode().removesuffix("\n").split("\n"))
    else:
        tell(f"learning {pieces.size:,} pieces on {'all' if every == 1 else f'a part in {every}'} of the training text")
        passages = (passage for part in corpus.train for passage in part.passages())
        pairs = (islice(passage.pairs(), -(-passage.n_lines // every)) for passage in passages)
        made = train_tokenizer(chain.from_iterable(chain.from_iterable(pairs)), pieces)
    made.save(folder / "tokenizer.json")
    return {"kind": pieces.kind, "on_every": every}


# Ids -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """How a passage of text becomes a shard of ids; each process that helps has a copy."""

    tokenizer: Path
    sha256: str  # of the tokenizer
    pair: str
    rules: tuple[str, ...] = ()
    limit: int | None = None  # pieces of a side
    overlap: Overlap | None = None  # with the held-out text

    def hashes(self, passage: Passage, folder: Path) -> Found:
        """Write the hash of every pair that is text; equal pairs break the same rules, so those need not be asked."""
        found = [pair_hashes(*lines) for lines in _chunks(passage, Counter())]
        durable.write_bytes(folder / "hashes", np.concatenate([np.empty(0, np.uint64), *found]).tobytes())
        return {}

    def shard(self, passage: Passage, part: str, firsts: Path | None, folder: Path) -> Found:
        """Write ids and offsets of both sides; `firsts` says which of the pairs stood nowhere before."""
        tokenizer = _loaded(self.tokenizer, self.sha256)
        is_first = np.fromfile(firsts, bool) if firsts else None
        dropped: Counter[str] = Counter()
        sides = (_Side(tokenizer), _Side(tokenizer))
        seen: dict[str, set[int]] = {"dev": set(), "test": set()}
        n_read = 0
        for sources, targets in _chunks(passage, dropped):
            # 1. the rules
            broken = reasons(self.rules, self.pair, sources, targets)
            if is_first is not None:
                before = (~is_first[n_read : n_read + len(sources)]).tolist()
                broken = [why or (STOOD_BEFORE if stood else None) for why, stood in zip(broken, before, strict=True)]
            n_read += len(sources)
            dropped.update(why for why in broken if why)
            lines = [[line for line, why in zip(side, broken, strict=True) if not why] for side in (sources, targets)]

            # 2. the pieces
            encoded = [tokenizer.encode(side) for side in lines]
            lengths = [np.diff(offsets) for _, offsets in encoded]
            fits = np.maximum(*lengths) <= (self.limit or np.inf)
            if not fits.all():
                dropped[f"longer than {self.limit} pieces"] += int((~fits).sum())
                lines = [[side[i] for i in np.flatnonzero(fits)] for side in lines]
            for side, (ids, _), length, kept in zip(sides, encoded, lengths, lines, strict=True):
                side.add(ids[fits.repeat(length)], length[fits], kept)
            for name, found in (self.overlap.seen(lines[0]) if self.overlap else {}).items():
                seen[name].update(found)
        for name, side in zip(SIDES, sides, strict=True):
            side.write(folder, name)
        return {
            "part": part,
            "dtype": tokenizer.dtype.str,
            "lines": passage.n_lines,
            "pairs": sides[0].n_sentences,
            "dropped": dict(dropped),
            "seen": {name: sorted(found) for name, found in seen.items()},
            **{name: [side.counts[name] for side in sides] for name in sides[0].counts},
            "lengths": [side.histogram for side in sides],
        }


def _chunks(passage: Passage, dropped: Counter[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Sources and targets, many at a time."""
    pairs = passage.pairs(dropped)
    while chunk := list(islice(pairs, PAIRS_AT_ONCE)):
        sources, targets = zip(*chunk, strict=True)
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
        """How many sentences have 0, 1, 2, ... pieces."""
        counted: list[int] = np.bincount(np.concatenate(self.lengths)).tolist()
        return counted

    def write(self, folder: Path, name: str) -> None:
        offsets = np.concatenate([np.zeros(1, np.int64), np.concatenate(self.lengths).cumsum()])
        durable.write_bytes(folder / f"{name}.ids", np.concatenate(self.ids).tobytes())
        durable.write_bytes(folder / f"{name}.offsets", offsets.astype(OFFSETS).tobytes())


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
    passages = [(part, passage) for part in parts for passage in part.passages()]
    reasons(encoder.rules, encoder.pair, [], [])  # now, not in every process, if a rule lacks something
    firsts = _first_occurrences(parts, encoder, folder, workers, tell) if "duplicates" in encoder.rules else None
    tasks = {
        shard_folder(folder, i): functools.partial(
            encoder.shard, passage, part.name, shard_folder(firsts, i) if firsts else None
        )
        for i, (part, passage) in enumerate(passages)
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
    return Split(source=source, target=target, text=tuple(parts), dropped=dict(dropped)), facts


def _first_occurrences(parts: Sequence[Parallel], encoder: Encoder, folder: Path, workers: int, tell: Tell) -> Path:
    """A folder with one file a shard: of each clean pair, whether it stood nowhere before."""
    place = folder.with_name("first-occurrences")

    def find(empty: Path) -> Found:
        passages = [passage for part in parts for passage in part.passages()]
        hashed = folder.with_name("hashes")
        _made(
            {shard_folder(hashed, i): functools.partial(encoder.hashes, one) for i, one in enumerate(passages)},
            parts,
            workers,
            tell,
        )
        hashes = [mapped(shard_folder(hashed, i) / "hashes", np.dtype(np.uint64)) for i in range(len(passages))]
        for i, first in enumerate(first_occurrences(hashes)):
            durable.write_bytes(shard_folder(empty, i), first.tobytes())
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
        # each process begins elsewhere, so those that prepare the same corpus at once rarely make the same shard
        turn = os.getpid() % len(missing)
        started = told = time.monotonic()
        for n, (folder, facts) in enumerate(_each(missing[turn:] + missing[:turn], tasks, workers), 1):
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
    folders: Sequence[Path], tasks: Mapping[Path, Callable[[Path], Found]], workers: int
) -> Iterator[tuple[Path, Found]]:
    """Make each folder, in as many processes as may work; in whatever order they come."""
    if min(workers, len(folders)) == 1:
        yield from ((folder, made_once(folder, tasks[folder])) for folder in folders)
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads that hash
    with ProcessPoolExecutor(min(workers, len(folders)), context, initializer=_begin_helping) as pool:
        pending = {pool.submit(made_once, folder, tasks[folder]): folder for folder in folders}
        try:
            for done in as_completed(pending):
                yield pending[done], done.result()
        except BrokenProcessPool as error:
            raise OSError(
                f"A process that worked on {folders[0].parent} was ended from outside; for want of memory? What it "
                "finished is kept: the same command goes on, with fewer --workers in less memory."
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _begin_helping() -> None:
    """One thread a process, no own answer to Ctrl-C, and no life after the process that asked for help."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = multiprocessing.parent_process()
    assert asked is not None

    def leave() -> None:
        asked.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
