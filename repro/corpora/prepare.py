"""From lines to ids, once per corpus, vocabulary and set of rules; each step is kept in the cache.

Learn the tokens on the training text, then encode each split, a chunk of text into a shard of ids. One process for
each core makes shards. A shard is whole or absent, so work that was killed goes on at the next shard. Of programs that
prepare the same corpus at once, one works and the others wait and take what it made.
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
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from repro.corpora import parallel_text
from repro.corpora.catalogue import Corpus, GrammarSizes, open_corpus
from repro.corpora.datacard import COUNTED, SEEN, SPLITS, card, repeats, unlisted
from repro.corpora.filters import check_rules, identity, reasons
from repro.corpora.parallel_text import Chunk, Parallel, normalised, same_spelling
from repro.data.shards import SHARD, SIDES, Prepared, Shards, Split, Store, shard_folder, write_shard
from repro.data.tokenizer import Tokenizer, given_tokenizer, n_lone_bytes, n_unknown, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, made_once, manifest_hash, verified
from repro.storage.lock import alone

if TYPE_CHECKING:
    from repro.data.datamodule import TranslationData

FolderFacts = dict[str, Any]  # what a step returns about the folder that it filled
HeldOut = dict[str, list[tuple[str, int, str]]]  # words of a source -> (split, number of its line, words of its target)
Tasks = Mapping[Path, Callable[[Path], FolderFacts]]  # folder -> what fills it
Tell = Callable[[str], None]
TELL_SECONDS = 10.0  # between two reports of progress

FORMAT = 1  # raise it when the rules of reading or the tokens change: every plan changes with it
LAYOUT = 3  # raise it when the facts of shards change: shards are made again, ids and plans stay
APART_FROM = 1 << 18  # lines; learning from fewer takes too little memory to need a process of its own
PAIRS_AT_ONCE = 20_000
LEARN_FROM = 1_500_000  # pairs; from a larger text an evenly spaced part is taken, so that words fit in 2 GB

RUN_AGAIN = (
    "A worker process imports the program's main file, which starts the same work again. Put all that the file does, "
    'except imports and functions, under `if __name__ == "__main__":`.'
)
ENDED = (
    "A process that prepared text was killed, perhaps for lack of memory, or could not start. Finished work is kept: "
    "type the same command again; fewer --workers need less memory."
)


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
    wanted = looked_for({"dev": corpus.dev.pairs(), "test": corpus.test.pairs()})
    training = replace(held_out, rules=rules, limit=max_length, held_out=wanted)
    made = functools.partial(made, workers=workers)
    of_splits = {
        "dev": ((corpus.dev,), held_out),
        "test": ((corpus.test,), held_out),
        "train": (corpus.train, training),
    }
    splits, facts = {}, {}
    for name, (parts, encoder) in of_splits.items():
        splits[name], facts[name] = _split(parts, encoder, encoded / name, made, pieces=corpus.pieces)
    lost = Counter(corpus.left_out) + Counter(splits["train"].dropped)  # with trees that could not be read
    splits["train"] = replace(splits["train"], dropped=dict(lost))

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
    notes = (*corpus.notes, *unlisted(told, corpus.vocabulary))  # raises before the card is there
    made_once(encoded / "card", lambda empty: atomic.write_json(empty / "data_card.json", told))
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


def corpus_data(
    corpus: str,
    pair: str,
    subwords: Subwords,
    *,
    cache: Path | str = "cache",
    data_dir: Path | str | None = None,
    sizes: GrammarSizes | None = None,
    max_length: int = 128,
    **plan: Any,
) -> "TranslationData":
    """A named corpus as a LightningDataModule for any `Trainer`, the one that runs train on (`docs/lightning.md`).

    One of several processes prepares it, and the others wait and read its cache. Arguments are those of `open_corpus`
    and `prepare`; `plan` is for `TranslationData`, `budget` and `seed` first.
    """
    from repro.data.datamodule import TranslationData  # it imports Lightning, which no worker needs

    cache, data_dir = Path(cache), Path(data_dir) if data_dir else None
    opened = open_corpus(corpus, pair, data_dir=data_dir, cache=cache, sizes=sizes)
    return TranslationData.from_prepared(prepare(opened, subwords=subwords, cache=cache, max_length=max_length), **plan)


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
    held_out: HeldOut = field(default_factory=dict)  # what is looked for in the text

    def shard(self, chunk: Chunk, part: str, folder: Path) -> FolderFacts:
        """Write the ids of both sides.

        The facts are numbers of pairs, of those dropped by reason, of those that are one text on both sides, the
        held-out lines that were seen, and for each side counts of tokens and how many sentences have i of them.
        """
        tokenizer = loaded_tokenizer(self.tokenizer, self.sha256)
        dropped: Counter[str] = Counter()
        ids: list[list[Any]] = [[np.empty(0, tokenizer.dtype)] for _ in SIDES]  # [tokens] of sentences in a row
        lengths: list[list[Any]] = [[np.empty(0, np.int64)] for _ in SIDES]  # [sentences]
        counts: list[Counter[str]] = [Counter(dict.fromkeys(COUNTED, 0)) for _ in SIDES]
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
            of_each = [np.diff(offsets) for _, offsets in encoded]
            fits = np.maximum(*of_each) <= (np.inf if self.limit is None else self.limit)
            if not fits.all():
                dropped[f"longer than {self.limit} pieces"] += int((~fits).sum())
                lines = [[side[i] for i in np.flatnonzero(fits)] for side in lines]
            for i, side in enumerate(lines):
                ids[i].append(kept := encoded[i][0][fits.repeat(of_each[i])])
                lengths[i].append(of_each[i][fits])
                counts[i].update(
                    pieces=len(kept),
                    words=sum(len(line.split()) for line in side),
                    characters=sum(map(len, side)),
                    unknown=n_unknown(tokenizer, kept),
                    byte_pieces=n_lone_bytes(tokenizer, kept),
                )

            # 3. what is repeated
            same_sides += sum(same_spelling(one) == same_spelling(other) for one, other in zip(*lines, strict=True))
            for what, split, number in seen_lines(self.held_out, *lines):
                seen[what][split].add(number)
        source, target = map(np.concatenate, lengths)
        write_shard(folder, (np.concatenate(ids[0]), np.concatenate(ids[1])), (source, target))
        return {
            "part": part,
            "dtype": tokenizer.dtype.str,
            "lines": chunk.n_lines,
            "pairs": len(source),
            "dropped": dict(dropped),
            "same_sides": same_sides,
            **{what: {name: sorted(numbers) for name, numbers in found.items()} for what, found in seen.items()},
            **{name: [of[name] for of in counts] for name in COUNTED},
            "lengths": [np.bincount(side).tolist() for side in (source, target)],
        }


def looked_for(held_out: Mapping[str, Iterable[tuple[str, str]]]) -> HeldOut:
    """The held-out pairs by the words of their source; a line without a word is never found.

    Memory holds the held-out text only, however long the training text is.
    """
    places: HeldOut = {}
    for split, pairs in held_out.items():
        for number, (source, target) in enumerate(pairs, start=1):
            if normal := normalised(source):
                places.setdefault(normal, []).append((split, number, normalised(target)))
    return places


def seen_lines(held_out: HeldOut, sources: Iterable[str], targets: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    """(what, split, number of the line from 1) of each held-out source that is among `sources` (`seen`), and of those
    that are there with the same target as well (`seen_pairs`)."""
    for source, target in zip(sources, targets, strict=True) if held_out else ():
        for split, number, wanted in held_out.get(normalised(source), ()):
            yield SEEN[0], split, number
            if wanted and normalised(target) == wanted:
                yield SEEN[1], split, number


@functools.cache
def loaded_tokenizer(path: Path, sha256: str) -> Tokenizer:
    """The tokenizer, loaded once per process. Raises ValueError if the file has changed."""
    tokenizer = Tokenizer.load(path)
    if tokenizer.sha256 != sha256:
        raise ValueError(f"{path} changed: expected SHA-256 {sha256}, got {tokenizer.sha256}. Prepare again.")
    return tokenizer


def _split(
    parts: Sequence[Parallel], encoder: Encoder, folder: Path, made: Callable[..., list[FolderFacts]], *, pieces: str
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
    return Split(source=source, target=target, text=tuple(parts), dropped=dict(dropped), pieces=pieces), facts


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
    with process_pool(workers) as pool:
        pending = {pool.submit(made_once, folder, task): folder for folder, task in tasks.items()}
        for done in as_completed(pending):
            yield pending[done], done.result()


def check_main_is_guarded() -> None:
    """Raise RuntimeError in a worker process that is still importing its parent's main file.

    Call it before waiting for a lock: the parent may hold it, and both would wait for ever.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # the test that `multiprocessing` itself uses
        raise RuntimeError(RUN_AGAIN)


@contextmanager
def process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Worker processes that end with this one, whatever ends it. Raises OSError if something outside ends one of them.

    Each of several has one thread; a single one may use more.
    """
    context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(workers, context, _begin, (workers == 1,)) as pool:
        try:
            yield pool
        except BrokenProcessPool as error:
            raise OSError(ENDED) from error
        except BaseException:  # no future is cancelled first: a thread of Python 3.11's pool would fail on it
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _begin(threads: bool) -> None:
    """Start a worker: it leaves Ctrl-C to its parent, and ends when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = multiprocessing.parent_process()
    assert asked is not None

    def leave() -> None:
        asked.join()
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
    os.environ["TOKENIZERS_PARALLELISM"] = str(threads).lower()


def usable_cores() -> int:
    """The cores that this process may use; processes that train together share them equally."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
