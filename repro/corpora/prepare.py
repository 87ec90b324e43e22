"""From lines to ids, once per corpus, vocabulary and set of rules; each step is kept in the cache.

Learn the tokens on the training text, then encode each split, a chunk of text into a shard of ids. As many processes
as there are cores make the shards; each shard is whole or absent, so whatever kills the work, it goes on at a shard,
and processes that prepare the same corpus at once share the work without knowing of each other.
"""

import functools
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from repro.corpora import parallel_text
from repro.corpora.catalogue import Corpus
from repro.corpora.datacard import Overlap, card, refuse_unlisted, repeats, unlisted, write_card
from repro.corpora.encode import Encoder
from repro.corpora.filters import check_rules, first_occurrences, identity, reasons
from repro.corpora.parallel_text import Parallel
from repro.corpora.workers import FolderFacts, Tell, made_all, made_each, usable_cores, whole
from repro.data.shards import SHARD, SIDES, Prepared, Shards, Split, Store, mapped, shard_folder
from repro.data.tokenizer import Tokenizer, given_tokenizer, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, alone, made_once, stated
from repro.storage.process_pool import check_main_is_guarded

FORMAT = 1  # raise it when the rules of reading or the tokens change: every plan changes with it
LAYOUT = 3  # raise it when shards leave other facts: they are made again, and ids and plans stay
APART_FROM = 1 << 18  # lines; the memory that learning from fewer takes is not worth a process
LEARN_FROM = 1_500_000  # pairs; of a larger text an evenly spaced part, or the words would not fit into 2 GB


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
    break one of `rules` (`repro/corpora/filters.py`). The result does not depend on `workers`, the number of processes.
    Shards are read and compared with their hashes at every start.
    """
    check_main_is_guarded()
    started = time.perf_counter()
    for name, number in (("max_length", max_length), ("workers", workers)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}.")
    _refuse_other(corpus, subwords)
    rules, workers = check_rules(rules), workers or usable_cores()
    reasons(rules, corpus.pair, [], [])  # now, not in every process, if a rule lacks something
    version = _version(corpus, subwords, max_length, rules)
    folder = cache / f"{corpus.name}-{corpus.pair}-{subwords.size}-{version[:12]}"

    overlap = Overlap({"dev": corpus.dev.pairs(), "test": corpus.test.pairs()})

    # 1. the tokens
    tokenizer = _tokenizer(corpus, subwords, folder, tell)
    # so ids are never read with another tokenizer, nor shards of another size
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
    """A hash of all that decides the ids, but for the tokens that are learned."""
    vocabulary = corpus.vocabulary and hashlib.sha256(corpus.vocabulary.read_bytes()).hexdigest()
    # what is usual goes unsaid: adding a choice must not change the plans of data made without it
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
    """Sub-words are learned on the first of so many parts of each chunk: 1 means on all text."""
    return -(-_n_lines(corpus) // LEARN_FROM)


def _part_of_text(every: int) -> str:
    return "all training text" if every == 1 else f"a part in {every} of the training text"


def _tokenizer(corpus: Corpus, subwords: Subwords, folder: Path, tell: Tell) -> Tokenizer:
    """Have the tokenizer in `folder`, learned or given."""
    every = _every(corpus)
    with alone(folder / ".tokenizer.lock", tell):
        if not whole([folder / "tokenizer"]):
            if not corpus.vocabulary:
                tell(f"learning {subwords.size:,} tokens on {_part_of_text(every)}")
            task = functools.partial(_learn, corpus, subwords, every)
            # in a process of its own, if it takes memory that is worth having back
            for _ in made_each({folder / "tokenizer": task}, workers=1, apart=_n_lines(corpus) > APART_FROM):
                pass
    return Tokenizer.load(folder / "tokenizer" / "tokenizer.json")


def _described(tokenizer: Tokenizer, corpus: Corpus, subwords: Subwords) -> dict[str, Any]:
    """What the data card says of it."""
    learned = {} if corpus.vocabulary else {"learned_on": _part_of_text(_every(corpus))}
    return {"kind": subwords.kind, "size": tokenizer.size, "sha256": tokenizer.sha256} | learned


def _refuse_other(corpus: Corpus, subwords: Subwords) -> None:
    """A text has the sub-words that it came with, or learns some."""
    if corpus.vocabulary and subwords.kind != "given":
        raise ValueError(
            f"{corpus.name} came split into sub-words, those of {corpus.vocabulary}; expected "
            f'Subwords("given", 0), got {subwords}. Ask for those, or take the file away from a text that is not split.'
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
    """A piece a line, after a byte order mark and with line ends of either kind, as texts are read."""
    lines = vocabulary.read_bytes().decode("utf-8-sig").removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if all(line.endswith("\r") for line in lines) else lines


# Ids -------------------------------------------------------------------------------------------------------


def _split(
    parts: Sequence[Parallel],
    encoder: Encoder,
    folder: Path,
    workers: int,
    tell: Tell,
) -> tuple[Split, list[FolderFacts]]:
    """Have all shards of a split, and the facts of each."""
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
    """A folder with one file a shard: of each clean pair, whether it stood nowhere before."""
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
