"""A page for a terminal: headings of groups of columns are underlined, texts are filled to the line.

What is better is green and what is worse red, by ANSI codes; the caller removes these when it prints to a file.
"""

import textwrap

from rich.cells import cell_len

from repro.render import page
from repro.render.text import aligned, flat

LINE = 80  # characters of a line
COLOURS = {page.Better: "\x1b[32m", page.Worse: "\x1b[31m"}
PLAIN = "\x1b[0m"


def terminal(shown: page.Page) -> str:
    """The whole page."""
    return "\n\n".join(map(_block, shown.blocks)) + "\n"


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
            note = [textwrap.fill(_line(block.note), LINE)] if block.note else []
            return "\n\n".join([table(block), *note])
        case page.Picture():
            return f"{flat(block.caption)}: {flat(block.file)}"
        case page.Verbatim():
            return "\n".join(map(flat, block.text.split("\n")))


def table(table: page.Table) -> str:
    """A table with aligned columns; the first names the rows."""
    is_left = [column.is_words or not i for i, column in enumerate(table.columns)]
    texts = [[flat(column.heading), *map(_line, column.texts)] for column in table.columns]
    texts[0][0] = texts[0][0] or " "
    lines = aligned(texts, is_left)
    for row, line in enumerate(lines[1:]):
        line[:] = [_coloured(cell, column.texts[row]) for cell, column in zip(line, table.columns, strict=True)]
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


def _coloured(cell: str, words: page.Words) -> str:
    return f"{COLOURS[type(words)]}{cell}{PLAIN}" if type(words) in COLOURS else cell
