"""Text of any origin shown as text, so that nothing in it is a command to the program that shows it; grids; counts."""

import re
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

NO_BREAK = "\N{NO-BREAK SPACE}"


def shown(text: str) -> str:
    """The text with control characters, also those for right-to-left text, as escapes: \\x1b for ESC."""
    controls = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
    return re.sub(controls, lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def flat(text: str) -> str:
    """The text on one line: a line break in a name must not end a cell or a comment."""
    return shown(re.sub(r"[\t-\r\x1c-\x1f\x85\u2028\u2029]", " ", text))


def sheet_text(text: str) -> str:
    """The text, after an apostrophe if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) or text[:1] in ("\t", "\r", "\n") else text


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


def several(n: int, what: str) -> str:
    """1 run, 2 runs."""
    return f"{n} {what}{'s' * (n != 1)}"
