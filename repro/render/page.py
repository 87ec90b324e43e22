"""A page as data: headings, texts, lists, tables and pictures, independent of the format.

Nothing here is Markdown, LaTeX or HTML: a text is what the reader sees, so a name may hold any character. Marked text,
formulas and links are values of their own. The writers are in `render.markup` (Markdown and HTML), `render.latex` and
`render.terminal`.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from repro.render.text import NO_BREAK

COMMAND = "python -m repro report"  # which made a page and can make it again
WIDEST, LETTER, BETWEEN = 880, 8, 27  # points on a screen: a code host's page, a letter, the space between two columns


class Strong(str):
    """Text that stands out: a term that is explained, a verdict."""


class Emphasis(str):
    """A title, a caption."""


class Code(str):
    """A command to type, or a name in the code."""


class Formula(str):
    """Mathematics: d_k, P_drop, O(n^2 d); an index follows `_`, a power `^`."""


@dataclass(frozen=True)
class Link:
    """Text that leads to a file, by its path from the page; if `to_page`, `target` has no file ending."""

    text: str
    target: str
    to_page: bool = False


Inline = str | Link
Words = str | tuple[Inline, ...]  # a line of text; line breaks in it are blanks


@dataclass(frozen=True)
class Heading:
    """The title of the page (level 1) or of a part of it."""

    words: Words
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    words: Words


@dataclass(frozen=True)
class Listing:
    """A list of items."""

    items: tuple[Words, ...]


class Column(NamedTuple):
    """One cell for each row, under a heading and perhaps a heading of several columns."""

    group: str
    heading: str
    texts: Sequence[Words]
    is_words: bool = False  # aligned left, as the first column always is; numbers are aligned right


@dataclass(frozen=True)
class Table:
    """Columns side by side; the first names the rows. Raises ValueError if the columns differ in length."""

    columns: tuple[Column, ...]
    ruled: frozenset[int] = frozenset()  # a line is drawn after these numbers of rows
    note: Words = ""  # what all rows share, below the table

    def __post_init__(self) -> None:
        if len(lengths := {len(column.texts) for column in self.columns}) != 1:
            raise ValueError(f"A table: expected columns of one length, got {sorted(lengths)}.")


@dataclass(frozen=True)
class Picture:
    """A picture by its path from the page, and what it shows."""

    file: str
    caption: str


@dataclass(frozen=True)
class Verbatim:
    """Lines in a fixed-width font, such as a histogram."""

    text: str


Block = Heading | Text | Listing | Table | Picture | Verbatim


@dataclass(frozen=True)
class Page:
    """The blocks of a page in order, and what it is made from: nobody edits a page."""

    origin: str
    blocks: tuple[Block, ...]

    @property
    def title(self) -> str:
        """The first heading, without its marks."""
        return next((plain(block.words) for block in self.blocks if isinstance(block, Heading)), "")


def made_from(sources: str) -> str:
    """The origin of a generated page."""
    return f"Made by `{COMMAND}` from {sources}; do not edit."


def is_generated(text: str) -> bool:
    """Whether a Markdown page says that it was generated, so that replacing it loses nobody's work."""
    return text.startswith(f"<!-- Made by `{COMMAND}` from ")


def inlines(words: Words) -> tuple[Inline, ...]:
    """The parts of a line, marked and unmarked."""
    return (words,) if isinstance(words, str) else words


def plain(words: Words) -> str:
    """The line without its marks."""
    return "".join(str(part.text if isinstance(part, Link) else part) for part in inlines(words))


def joined(parts: Iterable[Words], between: str = " ") -> tuple[Inline, ...]:
    """Several lines joined to one; empty ones are left out."""
    kept = [inlines(part) for part in parts if plain(part)]
    return tuple(itertools.chain.from_iterable((*((between,) if i else ()), *part) for i, part in enumerate(kept)))


def blocks(*parts: Block | Iterable[Block]) -> tuple[Block, ...]:
    """Blocks and runs of blocks one after the other; texts without a word and lists without an item are left out."""
    flat = itertools.chain.from_iterable([part] if isinstance(part, Block) else part for part in parts)
    return tuple(
        part for part in flat if part != Listing(()) and not (isinstance(part, Text) and not plain(part.words))
    )


def unbroken(words: Words) -> Words:
    """Keeps a number with its addition, 62.7 ± 0.4, 1 (2) or 6 (1 exploratory), on one line; words may be broken."""
    if type(words) is not str or not re.search(r"\d", words):
        return words
    has_letters = re.search(r"[^\W\d_]", re.sub(r"\(\d+ \w+\)$", "", words))
    return words if has_letters else words.replace(" ", NO_BREAK)


def narrowest(column: Column) -> float:
    """The least width of a column: words are broken at blanks and hyphens, numbers are kept whole (`unbroken`)."""
    cells = [plain(unbroken(text)) for text in column.texts]
    pieces = [piece for text in (column.group, column.heading, *cells) for piece in re.split(r" |(?<=-)", text)]
    return BETWEEN + LETTER * max(map(len, pieces))


def parts(
    table: Table,
    widest: int = WIDEST,
    width: Callable[[Column], float] = narrowest,
    over: Callable[[str], float] = lambda group: 0.0,
) -> tuple[Table, ...]:
    """The fewest tables no wider than `widest`, about equal; each has the first column, and groups stay together.

    `width` is the width of a column by itself, and `over` that of a heading of several columns.
    """

    def wide(columns: Iterable[Measured]) -> float:
        groups = itertools.groupby(columns, key=lambda one: one[0].group)
        return sum(max(over(group), sum(own for _, own in run)) for group, run in groups)

    names, *others = [(column, width(column)) for column in table.columns]
    together = itertools.groupby(enumerate(others), key=lambda at: at[1][0].group or at[0])
    runs = [[one for _, one in run] for _, run in together]
    rooms = range(0, max(widest - int(wide([names])), 0) + 1, LETTER)
    few = len(_filled(runs, rooms[-1], wide))
    even = next(parts for room in rooms if len(parts := _filled(runs, room, wide)) == few)
    return tuple(Table((names[0], *(column for column, _ in part)), table.ruled) for part in even)


Measured = tuple[Column, float]  # with its width


def _filled(
    runs: Iterable[list[Measured]], room: int, wide: Callable[[Iterable[Measured]], float]
) -> list[list[Measured]]:
    """Runs of columns in order, as many together as there is room for; a run is split only if it is too wide alone."""
    parts: list[list[Measured]] = [[]]
    for run in runs:
        for piece in [run] if wide(run) <= room else [[one] for one in run]:
            if parts[-1] and wide([*parts[-1], *piece]) > room:
                parts.append([])
            parts[-1] += piece
    return parts


def spans(columns: Iterable[Column]) -> list[tuple[str, int]]:
    """The headings of groups of columns, each with the number of its columns."""
    return [(group, len(list(run))) for group, run in itertools.groupby(column.group for column in columns)]
