"""Aligns the cells of a table in plain text, for a terminal or a diff."""

import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len


def aligned(
    columns: Iterable[Sequence[str]], to_the_left: Sequence[bool], *, least: int = 0, most: int = sys.maxsize
) -> list[list[str]]:
    """The lines of a grid, every cell as wide as its column: words to the left, numbers to the right.

    Blanks fill a column to at least `least` places and at most `most`.
    """
    padded = []
    for texts, left in zip(columns, to_the_left, strict=True):
        room = min(max(least, *map(cell_len, texts)), most)
        blanks = [" " * (room - cell_len(text)) for text in texts]
        padded.append([text + blank if left else blank + text for text, blank in zip(texts, blanks, strict=True)])
    return [list(line) for line in zip(*padded, strict=True)]
