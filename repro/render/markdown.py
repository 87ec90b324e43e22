"""A page as Markdown for a code host: tables as GitHub has them, all text escaped."""

import re
from urllib.parse import quote

from repro.render import page
from repro.render.text import aligned, flat, markdown_text, raised, unbroken

FILLED = 80  # characters: longer cells of words are not aligned
MARKS: dict[type[str], tuple[str, str]] = {page.Strong: ("**", "strong"), page.Emphasis: ("*", "em")}


def markdown(shown: page.Page) -> str:
    """The whole page."""
    origin = flat(shown.origin).replace("--", "- -")  # which would end the comment
    return "\n\n".join([f"<!-- {origin} -->", *map(block, shown.blocks)]) + "\n"


def block(block: page.Block) -> str:
    """One block, without a blank line at its ends."""
    match block:
        case page.Heading():
            return f"{'#' * block.level} {line(block.words)}"
        case page.Text():
            return _paragraph(line(block.words))
        case page.Listing():
            return "\n".join(f"- {_paragraph(line(item))}" for item in block.items)
        case page.Table():
            note = [_paragraph(line(block.note))] if block.note else []
            return "\n\n".join([*map(table, page.parts(block)), *note])
        case page.Picture():
            name = markdown_text(block.file.rpartition("/")[2].partition(".")[0])  # its caption is below it
            caption = _marked(page.Emphasis(f"{block.caption}."), is_between_blanks=True)
            return f"![{name}]({quote(block.file)})\n\n{caption}"
        case _:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
            return f"{fence}text\n{block.text}\n{fence}"


def table(table: page.Table) -> str:
    """A table with one line of headings: the heading of a group of columns is repeated in each."""
    is_left = [column.is_words or not i for i, column in enumerate(table.columns)]
    head, *rows = aligned(map(_cells, table.columns), is_left, least=2, most=FILLED)
    rule = [
        f":{'-' * (min(len(cell), FILLED) - 1)}" if left else f"{'-' * (min(len(cell), FILLED) - 1)}:"
        for cell, left in zip(head, is_left, strict=True)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _cells(column: page.Column) -> list[str]:
    """The lines of a column; a number is not broken: neither 2.14 ± 0.04 nor 1 (2)."""
    heading = "<br>".join(filter(None, (markdown_text(column.group), line(column.heading))))
    return [heading, *(line(unbroken(text) if type(text) is str else text) for text in column.texts)]


def line(words: page.Words) -> str:
    """Text of one line with its marks."""
    line = [part for part in page.inlines(words) if isinstance(part, page.Link) or part]
    written = []
    for i, part in enumerate(line):
        before, after = line[i - 1] if i else " ", line[i + 1] if i + 1 < len(line) else " "
        blanks = type(before) is str and before[-1] in " (" and type(after) is str and after[0] in " .,;:)"
        written.append(_inline(part, is_between_blanks=blanks))
    return "".join(written)


def _inline(part: page.Inline, *, is_between_blanks: bool) -> str:
    match part:
        case page.Link():
            return f"[{markdown_text(part.text)}]({quote(part.target, safe='/#')}{'.md' * part.to_page})"
        case page.Code():
            code = flat(part)
            if is_between_blanks and code == code.strip() and not {*code} & {"`", "|"}:
                return f"`{code}`"
            return f"<code>{markdown_text(code)}</code>"
        case page.Formula():
            return raised(markdown_text(part))
        case page.Strong() | page.Emphasis():
            return _marked(part, is_between_blanks=is_between_blanks)
        case _:
            return markdown_text(part)


def _marked(part: str, *, is_between_blanks: bool) -> str:
    """The text marked by asterisks if blanks surround it, else by HTML tags."""
    mark, tag = MARKS[type(part)]
    text = markdown_text(part)
    if is_between_blanks and text == text.strip():
        return f"{mark}{text}{mark}"
    return f"<{tag}>{text}</{tag}>"


def _paragraph(text: str) -> str:
    """The paragraph; a start that would begin a list or draw a line is escaped."""
    return re.sub(r"^(?:(\d+)(?=[.)](?:\s|$))|(?=[-+](?:\s|$)|---))", r"\1\\", text.strip())
