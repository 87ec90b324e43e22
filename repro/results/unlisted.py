"""Sentences about tokens that the vocabulary of a text does not list: to a model they are all the same one."""

from collections.abc import Iterator, Mapping
from typing import Any

TOLD_FROM = 1e4  # in a million: fewer are on the card, but nobody is told


def unlisted(card: Mapping[str, Any]) -> Iterator[str]:
    """One for each side of each split where they are not few, from the data card."""
    for split in ("train", "dev", "test"):
        for side in ("source", "target"):
            if (share := card[split][side]["unknown_per_million"] or 0) >= TOLD_FROM:
                yield (
                    f"{share / 1e4:.1f} % of the {side} tokens of {split} are not in the vocabulary, so they are all "
                    "one token: its perplexity is low and says little."
                )
