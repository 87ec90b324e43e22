"""The terminal: streams that take any text and show it as plain text, and a page in them.

A name may hold characters that a terminal obeys (ESC begins its commands), a console may know only ASCII, and both
streams may be closed. `open_streams` is called once, when a command begins; from then on printing is safe.
"""

import io
import os
import sys
import textwrap
from typing import Any

from rich.cells import cell_len

from repro.render import page
from repro.render.text import aligned, flat, shown

LINE = 80  # characters of a line


def open_streams() -> None:
    """Make standard output and error take any text, wherever they lead."""
    os.environ.setdefault("PYTHON_COLORS", "0")  # the colours of Python 3.13's own messages would be shown as text
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed when Python started: else the next file that is opened gets its number
            stream = io.TextIOWrapper(io.BufferedWriter(io.FileIO(os.devnull, "w")), "utf-8")
        if not isinstance(stream, Shown):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, Shown(stream))


class Shown:
    """A stream that writes control characters by their names (`text.shown`); otherwise the stream `beneath`."""

    def __init__(self, beneath: Any) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        """Write `text` as text."""
        self.beneath.write(shown(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


def beneath(stream: Any) -> Any:
    """The stream itself, for code that writes commands for the terminal, such as a progress bar."""
    return stream.beneath if isinstance(stream, Shown) else stream


# ---- a page


def terminal(whole: page.Page) -> str:
    """The page: headings of groups of columns are underlined, texts are filled to the line."""
    return "\n\n".join(map(_block, whole.blocks)) + "\n"


def _block(block: page.Block) -> str:
    match block:
        case page.Heading():
            title = _line(block.words)
            return f"{title}\n{('═' if block.level == 1 else '─') * cell_len(title)}"
        case page.Text():
            return textwrap.fill(_line(block.words), LINE)
        case page.Listing():
            return "\n".join(textwrap.fill(_line(item), LINE, subsequent_indent="  ") for item in block.items)
        case page.Table():
            return _table(block) + (f"\n\n{textwrap.fill(_line(block.note), LINE)}" if block.note else "")
        case page.Picture():
            return f"{flat(block.caption)}: {flat(block.file)}"
        case page.Verbatim():
            return "\n".join(map(flat, block.text.split("\n")))


def _table(table: page.Table) -> str:
    """A table with aligned columns; the first names the rows."""
    is_left = [column.is_words or not i for i, column in enumerate(table.columns)]
    texts = [[flat(column.heading), *map(_line, column.texts)] for column in table.columns]
    texts[0][0] = texts[0][0] or " "
    lines = aligned(texts, is_left)
    if any(column.group for column in table.columns):
        widths = iter(map(cell_len, lines[0]))
        over = [(group, sum(next(widths) + 2 for _ in range(span)) - 2) for group, span in page.spans(table.columns)]
        lines.insert(0, [flat(group).center(room) for group, room in over])
        lines.insert(1, [("─" if group else " ") * room for group, room in over])
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _line(words: page.Words) -> str:
    """The text without its marks; a link is followed by its target."""
    parts = page.inlines(words)
    return flat("".join(f"{part.text} ({part.target})" if isinstance(part, page.Link) else part for part in parts))
