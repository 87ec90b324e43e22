"""From lines to ids, once per corpus, vocabulary and set of rules; each step is kept in the cache.

Learn the tokens on the training text, then encode each split, a chunk of text into a shard of ids. One process for
each core makes shards. A shard is whole or absent, so work that was killed goes on at the next shard. Of programs that
prepare the same corpus at once, one works and the others wait and take what it made.
"""

import functools
import hashlib
import json
import os
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
from repro.corpora.datacard import SEEN, SPLITS, Overlap, card, repeats, unlisted, write_card
from repro.corpora.filters import check_rules, identity, reasons
from repro.corpora.parallel_text import Chunk, Parallel, same_spelling
from repro.data.shards import SHARD, SIDES, Ids, Prepared, Shards, Split, Store, shard_folder, write_shard
from repro.data.tokenizer import Tokenizer, given_tokenizer, n_lone_bytes, n_unknown, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.storage.folder_cache import MANIFEST, alone, made_once, manifest_hash, verified
from repro.storage.process_pool import check_main_is_guarded, process_pool

FolderFacts = dict[str, Any]  # what a step returns about the folder that it filled
Tasks = Mapping[Path, Callable[[Path], FolderFacts]]  # folder -> what fills it
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
    if (corpus.vocabulary is None) == (subwords.kind == "given"):
        came = f"with sub-words, those of {corpus.vocabulary}" if corpus.vocabulary else "without sub-words"
        raise ValueError(f"{corpus.name} came {came}; {subwords} do not fit: a text has its own or learns some.")
    workers = usable_cores() if workers is None else workers
    for name, number in (("max_length", max_length), ("workers", workers)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}.")
    rules = check_rules(rules)
    reasons(rules, corpus.pair, [], [])  # raise here, not in every process, if a rule cannot work
    version = _version(corpus, subwords, max_length, rules)
    folder = cache / f"{corpus.name}-{corpus.pair}-{subwords.size}-{version[:12]}"
    made = functools.partial(made_all, lock=folder / ".prepare.lock", tell=tell)

    # 1. the tokens: learned on the first 1/n of each chunk
    n_lines = sum(part.fingerprints()[0].n_lines for part in corpus.train)
    every = -(-n_lines // LEARN_FROM)
    learned_on = "all training text" if every == 1 else f"a part in {every} of the training text"
    if not corpus.vocabulary and not whole([folder / "tokenizer"]):
        tell(f"learning {subwords.size:,} tokens on {learned_on}")
    learn = {folder / "tokenizer": functools.partial(_learn, corpus, subwords, every)}
    made(learn, workers=1, apart=n_lines > APART_FROM)  # it takes much memory, which then is freed
    tokenizer = Tokenizer.load(folder / "tokenizer" / "tokenizer.json")
    # the name keeps apart the ids of other tokenizers and shards of other sizes
    encoded = folder / f"encoded-{LAYOUT}-{tokenizer.sha256[:12]}-{parallel_text.CHUNK}"

    # 2. held-out text as it is, training text by the rules
    held_out = Encoder(tokenizer=folder / "tokenizer" / "tokenizer.json", sha256=tokenizer.sha256, pair=corpus.pair)
    overlap = Overlap({"dev": corpus.dev.pairs(), "test": corpus.test.pairs()})
    training = replace(held_out, rules=rules, limit=max_length, overlap=overlap)
    made = functools.partial(made, workers=workers)
    of_splits = {
        "dev": ((corpus.dev,), held_out),
        "test": ((corpus.test,), held_out),
        "train": (corpus.train, training),
    }
    splits, facts = {}, {}
    for name, (parts, encoder) in of_splits.items():
        split, facts[name] = _split(parts, encoder, encoded / name, made)
        splits[name] = replace(split, pieces=corpus.pieces)

    # 3. what it is
    shards = [shard_folder(encoded / name, i) for name in SPLITS for i in range(len(facts[name]))]
    learned = {} if corpus.vocabulary else {"learned_on": learned_on}
    told = card(
        **facts,
        rules=identity(rules),
        corpus=corpus.name,
        pair=corpus.pair,
        licence=corpus.licence,
        origin=corpus.origin,
        max_length=max_length,
        tokenizer={"kind": subwords.kind, "size": tokenizer.size, "sha256": tokenizer.sha256} | learned,
        sha256=dict(corpus.files),
        data_hash=hashlib.sha256((version + tokenizer.sha256).encode()).hexdigest(),
        shards_sha256=_hash(f"{shard.parent.name} {manifest_hash(shard)}" for shard in shards),
        about=dict(corpus.about),
    )
    notes = (*corpus.notes, *unlisted(told, corpus.vocabulary))
    made_once(encoded / "card", functools.partial(write_card, told))
    return Prepared(
        tokenizer=tokenizer,
        **splits,
        data_hash=told["data_hash"],
        ids_hash=_hash(json.loads((shard / MANIFEST).read_bytes())["files"][SHARD] for shard in shards),
        manifest_hash=told["shards_sha256"],
        card=encoded / "card",
        repeats=repeats(told),
        notes=notes,
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


def _learn(corpus: Corpus, subwords: Subwords, every: int, folder: Path) -> FolderFacts:
    if corpus.vocabulary:
        try:
            made = given_tokenizer(_pieces(corpus.vocabulary), pieces=corpus.pieces)
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

    def shard(self, chunk: Chunk, part: str, folder: Path) -> FolderFacts:
        """Write the ids of both sides.

        The facts are numbers of pairs, of those dropped by reason, of those that are one text on both sides, the
        held-out lines that were seen, and for each side counts of tokens and how many sentences have i of them.
        """
        tokenizer = loaded_tokenizer(self.tokenizer, self.sha256)
        dropped: Counter[str] = Counter()
        sides = (_Side(tokenizer), _Side(tokenizer))
        seen: dict[str, dict[str, set[int]]] = {what: {"dev": set(), "test": set()} for what in SEEN}
        same_sides = 0
        pairs = chunk.pairs(dropped)
        while some := list(islice(pairs, PAIRS_AT_ONCE)):
            # 1. the rules
            sources, targets = zip(*some, strict=True)
            broken = reasons(self.rules, self.pair, sources, targets)
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
            same_sides += sum(same_spelling(one) == same_spelling(other) for one, other in zip(*lines, strict=True))
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


def _split(
    parts: Sequence[Parallel], encoder: Encoder, folder: Path, made: Callable[..., list[FolderFacts]]
) -> tuple[Split, list[FolderFacts]]:
    """Make the shards of a split that are lacking; returns the split and the facts of each shard."""
    chunks = enumerate((part.name, chunk) for part in parts for chunk in part.chunks())
    facts = made({shard_folder(folder, i): functools.partial(encoder.shard, one, name) for i, (name, one) in chunks})
    dropped: Counter[str] = sum((Counter(one["dropped"]) for one in facts), Counter())
    if not sum(one["pairs"] for one in facts):
        names = ", ".join(f"{part.source} and {part.target}" for part in parts)
        raise ValueError(f"No pair of {names} is left; dropped: {dict(dropped)}.")
    dtype: np.dtype[Any] = np.dtype(facts[0]["dtype"])
    shards = Shards(folder, n_shards=len(facts), dtype=dtype)
    source, target = (Store(shards, side) for side in SIDES)
    return Split(source=source, target=target, text=tuple(parts), dropped=dict(dropped)), facts


# Processes -------------------------------------------------------------------------------------------------


def made_all(tasks: Tasks, workers: int, *, lock: Path, tell: Tell, apart: bool = False) -> list[FolderFacts]:
    """Fill every folder that is absent or damaged by its task, in at most `workers` processes; the facts of all.

    A single worker is this process, unless it is to work `apart`, in a process with as many threads as it likes.
    """
    if len(made := whole(tasks)) < len(tasks):
        with alone(lock, tell):
            made |= whole(folder for folder in tasks if folder not in made)  # another process may have made some
            missing = [folder for folder in tasks if folder not in made]
            started = told = time.monotonic()
            for n, (folder, facts) in enumerate(_made_each({one: tasks[one] for one in missing}, workers, apart), 1):
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


def _made_each(tasks: Tasks, workers: int, apart: bool) -> Iterator[tuple[Path, FolderFacts]]:
    workers = min(workers, len(tasks))
    if workers <= 1 and not apart:
        yield from ((folder, made_once(folder, task)) for folder, task in tasks.items())
        return
    ended = (
        "A process that prepared text was killed, perhaps for lack of memory, or could not start. Finished work is "
        "kept: type the same command again; fewer --workers need less memory."
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
