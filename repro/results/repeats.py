"""Sentences about text that stands where it should not: held-out text in the training text."""

from collections.abc import Mapping

TOLD_FROM = 0.01  # of the lines: a smaller share of repeated text is on the card, but nobody is told


def repeated(shares: Mapping[str, float]) -> list[str]:
    """A sentence for each of the shares that is not negligible."""
    told = [
        f"{100 * shares[f'{split}_pairs']:.1f} % of the {split} pairs and {100 * shares[f'{split}_sources']:.1f} % of "
        f"the {split} source sentences are in the training text."
        for split in ("dev", "test")
        if shares.get(f"{split}_sources", 0) >= TOLD_FROM
    ]
    if shares.get("same_sides", 0) >= TOLD_FROM:
        told.append(f"{100 * shares['same_sides']:.1f} % of the training pairs have the same text on both sides.")
    return told
