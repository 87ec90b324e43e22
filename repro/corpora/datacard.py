"""The data card: what a model was trained on, as JSON that a person can read. Paper: section 5.1.

Shards are encoded by independent processes, and each leaves a few numbers; here they are added up. The card depends
on those numbers alone: the same data gives the same bytes, so it has no date.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from repro.data.shards import SIDES

SEEN = ("seen", "seen_pairs")  # held-out lines that training text repeats: the source, or both sides
SPLITS = ("train", "dev", "test")
COUNTED = ("words", "characters", "pieces", "unknown", "byte_pieces")
PER_MILLE = (500, 990, 999, 1000)  # of the sentences, whose longest is shown
TOLD_FROM = 0.01  # share of a side's tokens that the vocabulary lacks: from here on the reader is told
REFUSED_FROM = 0.1  # the same share of the training text: from here on the vocabulary is refused
ShardFacts = Sequence[Mapping[str, Any]]  # of each shard, as `Encoder.shard` of `prepare.py` returns them


def card(train: ShardFacts, dev: ShardFacts, test: ShardFacts, **said: Any) -> dict[str, Any]:
    """The card as JSON: what is `said` of the data, sums over the shards of each part and of all, numbers from these.

    Tokens have an end symbol in each sentence, but not where they are set against other counts.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for shard in train:
        parts.setdefault(shard["part"], []).append(shard)
    texts = {"train": train, "dev": dev, "test": test}
    return said | {
        **{split: _text(shards) for split, shards in texts.items()},
        "parts": [{"part": part} | _text(shards) for part, shards in parts.items()],
        "overlap": {split: _seen(train, split, texts[split]) for split in ("dev", "test")},
        "shards": len(train),
    }


def _seen(train: ShardFacts, split: str, shards: ShardFacts) -> dict[str, Any]:
    """How much of a held-out split the training text repeats."""
    n = sum(shard["pairs"] for shard in shards)
    sources, pairs = (sorted({i for shard in train for i in shard.get(what, {}).get(split, ())}) for what in SEEN)
    shares = {"share": _ratio(len(sources), n), "share of pairs": _ratio(len(pairs), n)}
    return {"lines": n, "sources seen": len(sources), "pairs seen": len(pairs), **shares, "first lines": sources[:5]}


def _text(shards: ShardFacts) -> dict[str, Any]:
    """The numbers of some shards together."""
    dropped: Counter[str] = sum((Counter(shard.get("dropped", {})) for shard in shards), Counter())
    pairs = sum(shard["pairs"] for shard in shards)
    return {
        "lines": pairs + dropped.total(),
        "pairs": pairs,
        "same_sides": sum(shard.get("same_sides", 0) for shard in shards),
        "dropped": dict(dropped.most_common()),
        **{side: _side(shards, i) for i, side in enumerate(SIDES)},
    }


def _side(shards: ShardFacts, i: int) -> dict[str, Any]:
    counts = {what: sum(shard[what][i] for shard in shards) for what in COUNTED}
    # the number of sentences that have 0, 1, 2, ... tokens
    lengths = np.array([*map(sum, zip_longest(*(shard["lengths"][i] for shard in shards), fillvalue=0))], np.int64)
    sentences = int(lengths.sum())
    spelling = counts["pieces"] - sentences  # without the end symbols, which spell nothing
    longest = [int(np.searchsorted(lengths.cumsum() * 1000, share * sentences)) for share in PER_MILLE]
    return {
        "words": counts["words"],
        "characters": counts["characters"],
        "tokens": counts["pieces"],
        "tokens a word": _ratio(spelling, counts["words"]),
        "characters a token": _ratio(counts["characters"], spelling),
        "unknown a million": _ratio(1e6 * counts["unknown"], spelling),
        "bytes a million": _ratio(1e6 * counts["byte_pieces"], spelling),
        "mean length": _ratio(counts["pieces"], sentences),
        **{f"{share / 10:g} % up to": n if sentences else None for share, n in zip(PER_MILLE, longest, strict=True)},
    }


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def repeats(card: Mapping[str, Any]) -> dict[str, float]:
    """The shares of text that is repeated where it should not be: see `repro/results/comparable.py`."""
    found = {"same_sides": _ratio(card["train"]["same_sides"], card["train"]["pairs"]) or 0.0}
    for split, one in card["overlap"].items():
        found |= {f"{split}_sources": one["share"] or 0.0, f"{split}_pairs": one["share of pairs"] or 0.0}
    return found


def unlisted(card: Mapping[str, Any], vocabulary: Path | None) -> Iterator[str]:
    """A sentence for each side of each split if the vocabulary lacks more than a few of its tokens.

    Raises ValueError if the vocabulary came with the text and is not that of train: a model would learn one token.
    """
    for split in SPLITS:
        for side in SIDES:
            share = (card[split][side]["unknown a million"] or 0.0) / 1e6
            lacks = f"{100 * share:.1f} % of the {side} tokens of {split}"
            if vocabulary and split == "train" and share >= REFUSED_FROM:
                raise ValueError(
                    f"{vocabulary} is not the vocabulary of this text: it lacks {lacks}, expected less than "
                    f"{100 * REFUSED_FROM:.0f} %. It has one token a line, spelled as in the text, for both languages."
                )
            if share >= TOLD_FROM:
                said = "are not in the vocabulary, so they are all one token: its perplexity is low and says little."
                yield f"{lacks} {said}"
