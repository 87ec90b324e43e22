"""The card adds up what shards say of themselves, and shows it the same way every time."""

from pathlib import Path
from typing import Any

import pytest

from repro.corpora.datacard import card, repeats, unlisted
from repro.results.comparable import repeated


def shard(part: str = "news", **changed: Any) -> dict[str, Any]:
    """Two pairs of five lines: 2 and 9 source tokens, 5 and 5 target tokens, of which an end symbol each."""
    facts = {
        "dtype": "<u2",
        "part": part,
        "pairs": 2,
        "lines": 5,
        "dropped": {"source is empty": 1, "longer than 9 pieces": 2},
        "words": [6, 4],
        "characters": [27, 24],
        "pieces": [11, 10],
        "unknown": [0, 1],
        "byte_pieces": [3, 2],
        "lengths": [[0, 0, 1, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 2]],
        "seen": {"dev": [3, 1], "test": []},
        "seen_pairs": {"dev": [3], "test": []},
        "same_sides": 1,
    }
    return facts | changed


def held_out(pairs: int) -> dict[str, Any]:
    """So many pairs of one word and two tokens a side."""
    per_side = {"words": 1, "characters": 4, "pieces": 2, "unknown": 0, "byte_pieces": 0}
    lengths = [[0, 0, pairs]] * 2
    return {"pairs": pairs, "lengths": lengths} | {what: [n * pairs] * 2 for what, n in per_side.items()}


def card_of(*train: dict[str, Any], **changed: Any) -> dict[str, Any]:
    said = {"licence": "research use", "max_length": 9, "rules": {"length_ratio": "1"}, "data_hash": "d" * 64}
    texts = {"train": train or (shard(),), "dev": [held_out(8)], "test": [held_out(4)]}
    return card(**said | texts | changed)  # type: ignore[arg-type]


def test_one_shard_by_hand() -> None:
    made = card_of(test=[held_out(0)])
    assert (made["rules"], made["licence"], made["data_hash"]) == ({"length_ratio": "1"}, "research use", "d" * 64)
    assert made["test"]["source"]["tokens a word"] is None
    train = made["train"]
    assert (train["lines"], train["pairs"], made["shards"]) == (5, 2, 1)
    assert list(train["dropped"].items()) == [("longer than 9 pieces", 2), ("source is empty", 1)]
    # 11 tokens are 9 and two end symbols: of 6 words, for 27 characters
    assert train["source"] == {
        "words": 6, "characters": 27, "tokens": 11, "tokens a word": 9 / 6, "characters a token": 27 / 9,
        "unknown a million": 0, "bytes a million": 3e6 / 9, "mean length": 5.5,
        "50 % up to": 2, "99 % up to": 9, "99.9 % up to": 9, "100 % up to": 9,
    }  # fmt: skip
    assert [train["target"][f"{what} a million"] for what in ("unknown", "bytes")] == [1e6 / 8, 2e6 / 8]
    assert [train["target"][what] for what in ("mean length", "50 % up to", "100 % up to")] == [5, 5, 5]


def test_shards_are_added_up_and_lines_that_several_hold_are_counted_once() -> None:
    one = shard(seen={"dev": [64, 1], "test": []}, seen_pairs={"dev": [64], "test": []})
    seen = {"seen": {"dev": [1, 2, 5, 6, 7], "test": [4]}, "seen_pairs": {"dev": [64, 1, 2], "test": []}}
    other = shard("crawl", dropped={}, same_sides=2, **seen)
    given = card_of(one, other, one, dev=[held_out(40), held_out(24)])
    assert [(of["part"], of["lines"], of["pairs"]) for of in given["parts"]] == [("news", 10, 4), ("crawl", 2, 2)]
    assert (given["train"]["lines"], given["train"]["pairs"], given["shards"]) == (12, 6, 3)
    assert given["train"]["source"]["tokens"] == sum(of["source"]["tokens"] for of in given["parts"]) == 33
    dev = {"lines": 64, "sources seen": 6, "share": 6 / 64, "pairs seen": 3, "share of pairs": 3 / 64}
    test = {"lines": 4, "sources seen": 1, "share": 1 / 4, "pairs seen": 0, "share of pairs": 0.0}
    assert given["overlap"] == {"dev": dev | {"first lines": [1, 2, 5, 6, 7]}, "test": test | {"first lines": [4]}}
    shares = {"dev_sources": 6 / 64, "dev_pairs": 3 / 64, "test_sources": 1 / 4, "test_pairs": 0.0}
    assert repeats(given) == shares | {"same_sides": 4 / 6}


def test_the_note_on_repeated_text() -> None:
    shares = {"dev_sources": 0.25, "dev_pairs": 0.091, "test_sources": 0.009, "test_pairs": 0.009, "same_sides": 0.0099}
    assert repeated(shares) == [
        "9.1 % of the dev pairs and 25.0 % of the dev source sentences are in the training text."
    ]
    assert repeated(shares | {"test_sources": 0.01, "same_sides": 0.5}) == [
        *repeated(shares),
        "0.9 % of the test pairs and 1.0 % of the test source sentences are in the training text.",
        "50.0 % of the training pairs have the same text on both sides.",
    ]
    assert repeated({}) == []  # of a record of the time before


def test_a_vocabulary_is_that_of_the_training_text_or_it_is_refused() -> None:
    def of(train: int, dev: int) -> dict[str, Any]:
        return card_of(shard(unknown=[train, 0]), dev=[held_out(8) | {"unknown": [dev, 0]}])

    vocabulary = Path("vocab")
    assert [*unlisted(of(0, 0), vocabulary)] == []
    [said] = unlisted(of(0, 8), vocabulary)
    assert said.startswith("100.0 % of the source tokens of dev are not in the vocabulary, so they are all one token")
    refused = "vocab is not the vocabulary of this text: it lacks 11.1 % of the source tokens of train, expected less"
    with pytest.raises(ValueError, match=refused):
        [*unlisted(of(1, 0), vocabulary)]  # of 9
    [said] = unlisted(of(1, 0), None)
    assert said.startswith("11.1 % of the source tokens of train")
