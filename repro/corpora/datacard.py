"""The data card: what a model was trained on, on one page, and the same as JSON. Paper: section 5.1.

Shards are encoded by independent processes, and each leaves a few numbers; here they are added up. The card depends
on those numbers alone: the same data gives the same bytes, so it has no date.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from repro.corpora.filters import FILTER_RULES
from repro.corpora.pair import languages
from repro.corpora.same_sentence import normalised
from repro.render.markdown import markdown
from repro.render.page import Column, Heading, Listing, Page, Strong, Table, Text, blocks
from repro.storage import atomic

NAME = "data_card"
SEEN = ("seen", "seen_pairs")  # held-out lines that training text repeats: the source, or both sides
SIDES = ("source", "target")
NOTHING = "–"
TOLD_FROM = 0.01  # share of a side's tokens that the vocabulary lacks: from here on the reader is told
REFUSED_FROM = 0.1  # the same share of the training text: from here on the vocabulary is refused


# Overlap ---------------------------------------------------------------------------------------------------

LETTERS = bytes(set(range(256)) - set(b"abcdefghijklmnopqrstuvwxyz0123456789"))  # deleted, these stay


class Overlap:
    """The held-out pairs, to be looked for in training text.

    Lines are compared by their words (`same_sentence.py`). A line without a word is never found. Memory
    holds the held-out text only, however long the training text is.
    """

    def __init__(self, held_out: Mapping[str, Iterable[tuple[str, str]]]) -> None:
        self._splits = tuple(held_out)
        self._places: dict[str, list[tuple[str, int, str]]] = {}  # source -> (split, number of the line, target)
        for split, pairs in held_out.items():
            for number, (source, target) in enumerate(pairs, start=1):
                if normal := normalised(source):
                    self._places.setdefault(normal, []).append((split, number, normalised(target)))
        # Equal lines have equal Latin letters and digits, which are far cheaper to extract than the words.
        self._latin = {_latin(normal) for normal in self._places}

    def seen(self, sources: Iterable[str], targets: Iterable[str]) -> dict[str, dict[str, list[int]]]:
        """The line numbers, from 1, of each split whose source is among `sources` (`seen`), and of those that are there
        with the same target as well (`seen_pairs`)."""
        found: dict[str, dict[str, set[int]]] = {what: {name: set() for name in self._splits} for what in SEEN}
        for source, target in zip(sources, targets, strict=True):
            if _latin(normalize("NFC", source).casefold()) not in self._latin:
                continue
            if places := self._places.get(normalised(source)):
                normal = normalised(target)
                for split, number, held_out in places:
                    found["seen"][split].add(number)
                    if normal and normal == held_out:
                        found["seen_pairs"][split].add(number)
        return {what: {name: sorted(of) for name, of in splits.items()} for what, splits in found.items()}


def _latin(lower: str) -> bytes:
    return lower.encode().translate(None, LETTERS)


# Sums ------------------------------------------------------------------------------------------------------

Shards = Sequence[Mapping[str, Any]]  # the facts of each shard


def card(train: Shards, dev: Shards, test: Shards, *, rules: Mapping[str, str], **said: Any) -> dict[str, Any]:
    """The card as JSON: what is `said` of the data, sums over the shards of each part and of all, numbers from these.

    The facts of a shard of train, in the order of the text: `part`, `lines` (raw), `pairs` (kept), `dropped` (pairs by
    reason), `seen` and `seen_pairs` (see Overlap), `same_sides` (pairs whose source is their target), and for each side
    [source, target] `words`, `characters`, `pieces` (tokens, an end symbol in each sentence), `unknown` and
    `byte_pieces` (tokens that are unknown, or a lone byte), `lengths` (how many sentences have i tokens, for each i).
    Shards of dev and test have the same from `pairs` on, with none dropped and none seen. `rules` are the cleaning
    rules with their identity; `prepare.py` says the rest.
    """
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for shard in train:
        parts.setdefault(shard["part"], []).append(shard)
    held_out = {"dev": dev, "test": test}
    return said | {
        "rules": [
            {"name": name, "meaning": FILTER_RULES[name].meaning, "identity": identity}
            for name, identity in rules.items()
        ],
        "train": _text(train),
        "parts": [{"part": part} | _text(shards) for part, shards in parts.items()],
        **{split: _text(shards) for split, shards in held_out.items()},
        "overlap": {split: _seen(train, split, shards) for split, shards in held_out.items()},
        "shards": len(train),
    }


def _seen(train: Shards, split: str, shards: Shards) -> dict[str, Any]:
    """How much of a held-out split the training text repeats."""
    n = sum(shard["pairs"] for shard in shards)
    numbers, pairs = (sorted({i for shard in train for i in shard.get(what, {}).get(split, ())}) for what in SEEN)
    return {
        "lines": n,
        "seen": len(numbers),
        "share": _ratio(len(numbers), n),
        "pairs_seen": len(pairs),
        "pairs_share": _ratio(len(pairs), n),
        "first": numbers[:5],
    }


def repeats(card: Mapping[str, Any]) -> dict[str, float]:
    """The shares of text that is repeated where it should not be: see `repro/results/repeats.py`."""
    found = {"same_sides": _ratio(card["train"]["same_sides"], card["train"]["pairs"]) or 0.0}
    for split, one in card["overlap"].items():
        found |= {f"{split}_sources": one["share"] or 0.0, f"{split}_pairs": one["pairs_share"] or 0.0}
    return found


def unlisted(card: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each side of each split if the vocabulary lacks more than a few of its tokens."""
    for split in ("train", "dev", "test"):
        for side, share in _unlisted(card[split]).items():
            if share >= TOLD_FROM:
                yield (
                    f"{100 * share:.1f} % of the {side} tokens of {split} are not in the vocabulary, so they are all "
                    "one token: its perplexity is low and says little."
                )


def refuse_unlisted(card: Mapping[str, Any], vocabulary: Path) -> None:
    """Raise ValueError for a vocabulary that is not that of the training text: a model would learn one token."""
    for side, share in _unlisted(card["train"]).items():
        if share >= REFUSED_FROM:
            raise ValueError(
                f"{vocabulary} is not the vocabulary of this text: it lacks {100 * share:.1f} % of the {side} tokens "
                f"of train, expected less than {100 * REFUSED_FROM:.0f} %. It has one token a line and nothing after "
                "it, spelled as in the text, for both languages."
            )


def _unlisted(text: Mapping[str, Any]) -> dict[str, float]:
    """For each side the share of tokens, without end symbols, that the vocabulary lacks."""
    return {side: (text[side]["unknown_per_million"] or 0.0) / 1e6 for side in SIDES}


def _text(shards: Shards) -> dict[str, Any]:
    """The numbers of some shards together."""
    dropped: Counter[str] = sum((Counter(shard.get("dropped", {})) for shard in shards), Counter())
    pairs = sum(shard["pairs"] for shard in shards)
    return {
        "lines": pairs + dropped.total(),
        "pairs": pairs,
        "same_sides": sum(shard.get("same_sides", 0) for shard in shards),
        "dropped": dict(_by_count(dropped)),
        **{side: _side(shards, i) for i, side in enumerate(SIDES)},
    }


def _side(shards: Shards, i: int) -> dict[str, Any]:
    words, characters, tokens, unknown, of_bytes = (
        sum(shard[what][i] for shard in shards) for what in ("words", "characters", "pieces", "unknown", "byte_pieces")
    )
    lengths = _lengths(shards, i)
    sentences = int(lengths.sum())
    spelling = tokens - sentences  # without the end symbols, which spell nothing
    return {
        "words": words,
        "characters": characters,
        "pieces": tokens,
        "pieces_per_word": _ratio(spelling, words),
        "characters_per_piece": _ratio(characters, spelling),
        "unknown_per_million": _ratio(1e6 * unknown, spelling),
        "byte_pieces_per_million": _ratio(1e6 * of_bytes, spelling),
        "mean_length": _ratio(tokens, sentences),
        "quantiles": {f"{per_mille / 10:g}": _quantile(lengths, per_mille) for per_mille in (500, 900, 990, 999, 1000)},
    }


def _lengths(shards: Iterable[Mapping[str, Any]], i: int) -> NDArray[np.int64]:
    """[longest + 1] the number of sentences of side i that have 0, 1, 2, ... tokens."""
    columns = zip_longest(*(shard["lengths"][i] for shard in shards), fillvalue=0)
    return np.array([sum(of_shards) for of_shards in columns], np.int64)


def _quantile(lengths: NDArray[np.int64], per_mille: int) -> int | None:
    """The least length that `per_mille` of a thousand sentences do not exceed."""
    if not lengths.sum():
        return None
    return int(np.argmax(lengths.cumsum() * 1000 >= per_mille * lengths.sum()))


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


# Page ------------------------------------------------------------------------------------------------------


def write_card(card: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write the card to data_card.json and data_card.md in `folder`. It returns no facts, as the card has them."""
    atomic.write_json(folder / f"{NAME}.json", card)
    atomic.write_text(folder / f"{NAME}.md", markdown(page(card)))
    return {}


def page(card: Mapping[str, Any]) -> Page:
    """The card for people."""
    train = card["train"]
    return Page(
        "Made from the data; do not edit.",
        blocks(
            Heading(f"{card['corpus']}, {card['pair']}", 1),
            Text(
                f"{train['pairs']:,} pairs of {train['lines']:,} lines to learn from; {card['dev']['pairs']:,} pairs "
                f"to choose by (dev) and {card['test']['pairs']:,} to report (test)."
            ),
            _list({"Licence": card["licence"], "Origin": card["origin"], **card.get("about", {})}),
            Heading("Text"),
            _splits(card),
            Text(
                "A word is what stands between blanks. Tokens are counted with the end symbol of each sentence, except "
                "where they are set against words, characters or a million."
            ),
            _parts(card),
            Heading("Dropped"),
            _dropped(card),
            Heading("Lengths"),
            _quantiles(train),
            Text("Of the training text, in tokens with the end symbol."),
            Heading("Held-out text in the training text"),
            _overlap(card),
            Text(
                "Lines of dev and test that also stand in the training text, by their source alone and as pairs, "
                "compared by their words: lower case, NFC, without punctuation, blanks folded. Line numbers count from "
                "1."
            ),
            Text(
                f"Training pairs with the same text on both sides: {train['same_sides']:,} of {train['pairs']:,}. "
                f"{NOTHING} stands where there is nothing to divide by."
            ),
            Heading("Provenance"),
            Text(_tokenizer(card["tokenizer"])),
            _hashes(card),
            _grid(["on disk", "bytes"], [[what, f"{n:,}"] for what, n in sorted(card["bytes_on_disk"].items())]),
        ),
    )


def _hashes(card: Mapping[str, Any]) -> tuple[Table, ...]:
    named = {
        "data": card["data_hash"],
        f"its {card['shards']:,} shard{'s' if card['shards'] > 1 else ''}": card["shards_sha256"],
        "tokenizer": card["tokenizer"]["sha256"],
        **{f"text of {name}": digest for name, digest in sorted(card["sha256"].items())},
    }
    return (Table((Column("", "hash", [*named]), Column("", "SHA-256", [*named.values()], is_words=True))),)


def _sides(card: Mapping[str, Any]) -> list[str]:
    return [f"{side} ({language})" for side, language in zip(SIDES, languages(card["pair"]), strict=True)]


def _splits(card: Mapping[str, Any]) -> tuple[Table, ...]:
    headings = ["text", "words", "characters", "tokens", "tokens a word", "characters a token"]
    rates = ["unknown a million", "bytes a million"]
    lines = []
    for split in ("train", "dev", "test"):
        for side, shown in zip(SIDES, _sides(card), strict=True):
            one = card[split][side]
            counts = [f"{one[what]:,}" for what in ("words", "characters", "pieces")]
            shares = [_number(one[what], 3) for what in ("pieces_per_word", "characters_per_piece")]
            rare = [_number(one[what], 1) for what in ("unknown_per_million", "byte_pieces_per_million")]
            lines.append([f"{split}, {shown}", *counts, *shares, *rare])
    return _grid(headings + rates, lines)


def _parts(card: Mapping[str, Any]) -> tuple[Table, ...]:
    """The parts of the training text, where there are several."""
    if len(card["parts"]) < 2:
        return ()
    headings = ["part of train", "lines", "pairs", "share of pairs"]
    headings += [f"{what}, {side}" for what in ("words", "tokens a word") for side in _sides(card)]
    lines = []
    for one in [*card["parts"], {"part": "all"} | card["train"]]:
        share = _percent(_ratio(one["pairs"], card["train"]["pairs"]))
        words = [f"{one[side]['words']:,}" for side in SIDES]
        tokens = [_number(one[side]["pieces_per_word"], 3) for side in SIDES]
        lines.append([one["part"], f"{one['lines']:,}", f"{one['pairs']:,}", share, *words, *tokens])
    return _grid(headings, lines)


def _dropped(card: Mapping[str, Any]) -> tuple[Text | Listing | Table, ...]:
    """The rules, then the pairs dropped for each reason, in each part and in all."""
    train, parts = card["train"], card["parts"]
    limit = "no limit of length" if card["max_length"] is None else f"at most {card['max_length']:,} tokens a side"
    rules = {rule["name"]: f"{rule['meaning']} (version {rule['identity']})" for rule in card["rules"]}
    said = "Cleaning rules" if rules else "No cleaning rule, as in the paper and its first code"
    shown = (Text(f"{said}; {limit}, and without lines that are not text."), _list(rules))
    if not train["dropped"]:
        return (*shown, Text("No pair was dropped."))
    of_parts = parts if len(parts) > 1 else []
    headings = ["reason", *(one["part"] for one in of_parts), "all", "share of lines"]
    lost = [
        (reason, [one["dropped"].get(reason, 0) for one in of_parts], n) for reason, n in _by_count(train["dropped"])
    ]
    lost.append(("all", [one["lines"] - one["pairs"] for one in of_parts], train["lines"] - train["pairs"]))
    lines = [
        [reason, *(f"{count:,}" for count in counts), f"{n:,}", _percent(_ratio(n, train["lines"]))]
        for reason, counts, n in lost
    ]
    return (*shown, *_grid(headings, lines))


def _by_count(dropped: Mapping[str, int]) -> list[tuple[str, int]]:
    """The reasons with their counts, the most frequent first; JSON keeps no order."""
    return sorted(dropped.items(), key=lambda item: (-item[1], item[0]))


def _quantiles(train: Mapping[str, Any]) -> tuple[Table, ...]:
    shown = {"50": "half of them up to", "90": "90 %", "99": "99 %", "99.9": "99.9 %", "100": "all"}
    lines = [
        [side, _number(train[side]["mean_length"], 1), *(_number(train[side]["quantiles"][q], 0) for q in shown)]
        for side in SIDES
    ]
    return _grid(["side", "mean", *shown.values()], lines)


def _overlap(card: Mapping[str, Any]) -> tuple[Table, ...]:
    lines = []
    for split, one in card["overlap"].items():
        first = ", ".join(f"{number}" for number in one["first"]) + (", ..." if one["seen"] > len(one["first"]) else "")
        shares = [f"{one['seen']:,}", _percent(one["share"]), f"{one['pairs_seen']:,}", _percent(one["pairs_share"])]
        lines.append([split, f"{one['lines']:,}", *shares, first])
    return _grid(["split", "lines", "sources seen", "share", "pairs seen", "share", "which sources"], lines)


def _tokenizer(tokenizer: Mapping[str, Any]) -> str:
    origin = f"learned on {tokenizer['learned_on']}" if "learned_on" in tokenizer else "given"
    return f"Tokenizer: {tokenizer['kind']}, {tokenizer['size']:,} tokens, one for both languages; {origin}."


def _number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"


def _percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.2f} %"


def _list(items: Mapping[str, str]) -> Listing:
    return Listing(tuple((Strong(name), f": {text}") for name, text in items.items()))


def _grid(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> tuple[Table, ...]:
    """Tables of lines of cells."""
    return (Table(tuple(Column("", heading, [line[i] for line in lines]) for i, heading in enumerate(headings))),)
