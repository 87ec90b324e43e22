"""Aligns the cells of a table in plain text, for a terminal or a diff."""

import sys
import unicodedata
from collections.abc import Iterable, Sequence


def aligned(
    columns: Iterable[Sequence[str]], to_the_left: Sequence[bool], *, least: int = 0, most: int = sys.maxsize
) -> list[list[str]]:
    """The lines of a grid, every cell as wide as its column: words to the left, numbers to the right.

    Blanks fill a column to at least `least` places and at most `most`.
    """
    padded = []
    for texts, left in zip(columns, to_the_left, strict=True):
        room = min(max(least, *map(width, texts)), most)
        padded.append(
            [text + " " * (room - width(text)) if left else " " * (room - width(text)) + text for text in texts]
        )
    return [list(line) for line in zip(*padded, strict=True)]


def width(text: str) -> int:
    """Places that a text takes in a terminal: two for a wide letter, none for a combining mark."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
