"""The blocks of a page as HTML, to be put into a document: all text is escaped."""

from collections.abc import Callable, Iterable
from html import escape
from urllib.parse import quote

from repro.render.escape import flat, raised, unbroken
from repro.render.page import (
    Block,
    Code,
    Column,
    Emphasis,
    Formula,
    Heading,
    Inline,
    Link,
    Listing,
    Picture,
    Strong,
    Table,
    Text,
    Words,
    inlines,
    spans,
)

TAGS: dict[type[str], str] = {Strong: "strong", Emphasis: "em", Code: "code", Formula: "i"}


def html(blocks: Iterable[Block], table: Callable[[Table], str] | None = None) -> str:
    """The blocks of a page as a part of a document; `table` writes its tables, by default as in other pages."""
    return "\n".join(_block(block, table or whole_table) for block in blocks)


def whole_table(table: Table) -> str:
    """A table as it is, however wide."""
    return "\n".join(_table(table))


def line_html(words: Words) -> str:
    """Text of one line with its marks."""
    return "".join(map(_inline, inlines(words)))


def _block(block: Block, table: Callable[[Table], str]) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{line_html(block.words)}</h{block.level}>"
        case Text():
            return f"<p>{line_html(block.words)}</p>"
        case Listing():
            return "\n".join(["<ul>", *(f"<li>{line_html(item)}</li>" for item in block.items), "</ul>"])
        case Table():
            return table(block) + (f"\n<p>{line_html(block.note)}</p>" if block.note else "")
        case Picture():
            caption = _text(block.caption)
            shown = f'<img src="{quote(block.file)}" alt="{caption}">'
            return f"<figure>{shown}<figcaption>{caption}</figcaption></figure>"
        case _:
            return f"<pre>{_lines(block.text)}</pre>"


def _table(table: Table) -> Iterable[str]:
    yield "<table>\n<thead>"
    if any(column.group for column in table.columns):
        groups = [
            f'<th colspan="{span}">{_text(group)}</th>' if group else "<td></td>" * span
            for group, span in spans(table.columns)
        ]
        yield f"<tr>{''.join(groups)}</tr>"
    yield _row("th", [column.heading for column in table.columns], table.columns)
    yield "</thead>\n<tbody>"
    rows = list(zip(*(column.texts for column in table.columns), strict=True))
    for n, cells in enumerate(rows, start=1):
        yield _row("td", cells, table.columns, is_ruled=n in table.ruled and n < len(rows))
    yield "</tbody>\n</table>"


def _row(tag: str, cells: Iterable[Words], columns: Iterable[Column], *, is_ruled: bool = False) -> str:
    marks = [' class="words"' if column.is_words or not i else "" for i, column in enumerate(columns)]
    written = [f"<{tag}{mark}>{_cell(cell)}</{tag}>" for mark, cell in zip(marks, cells, strict=True)]
    ruled = ' class="ruled"' if is_ruled else ""
    return f"<tr{ruled}>{''.join(written)}</tr>"


def _cell(words: Words) -> str:
    return line_html(unbroken(words) if type(words) is str else words)


def _inline(part: Inline) -> str:
    if isinstance(part, Link):
        target, text = quote(part.target, safe="/#"), part.text
        if part.to_page and "/" in part.target:  # a page for all scales: a Markdown file
            target = f"{target}.md"
        elif part.to_page:  # a page of this scale: a part of the same document, named without .md
            target, text = f"#{target}", text.removesuffix(".md")
        return f'<a href="{target}">{_text(text)}</a>'
    if isinstance(part, Formula):
        return f"<i>{raised(_text(part))}</i>"
    tag = TAGS.get(type(part))
    return f"<{tag}>{_text(part)}</{tag}>" if tag else _text(part)


def _text(text: str) -> str:
    return escape(flat(text))


def _lines(text: str) -> str:
    return "\n".join(_text(line) for line in text.split("\n"))
