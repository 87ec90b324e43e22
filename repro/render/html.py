"""A page as one file of HTML: a little style, no script, and all that a name could hold escaped."""

from collections.abc import Iterable
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
    Page,
    Picture,
    Strong,
    Table,
    Text,
    Words,
    inlines,
    parts,
    spans,
)

TAGS: dict[type[str], str] = {Strong: "strong", Emphasis: "em", Code: "code", Formula: "i"}
STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.15rem 0.6rem; text-align: right; }
th.words, td.words { text-align: left; }
th[colspan] { text-align: center; border-bottom: 1px solid #999; }
thead, tr.ruled { border-bottom: 1px solid #999; }
table { border-top: 2px solid; border-bottom: 2px solid; }
img { max-width: 100%; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em; }
"""


def html(page: Page) -> str:
    """The whole document."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(page.title)}</title>",
            f"<style>\n{STYLE}</style>",
            "</head>",
            "<body>",
            *map(_block, page.blocks),
            f"<footer><small>{_text(page.origin)}</small></footer>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.level}>{_line(block.words)}</h{block.level}>"
        case Text():
            return f"<p>{_line(block.words)}</p>"
        case Listing():
            return "\n".join(["<ul>", *(f"<li>{_line(item)}</li>" for item in block.items), "</ul>"])
        case Table():
            return "\n".join(line for part in parts(block) for line in _table(part))
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
    return _line(unbroken(words) if type(words) is str else words)


def _line(words: Words) -> str:
    """Text of one line with its marks."""
    return "".join(map(_inline, inlines(words)))


def _inline(part: Inline) -> str:
    if isinstance(part, Link):
        target = quote(part.target) + ".html" * part.to_page
        return f'<a href="{target}">{_text(part.text)}</a>'
    if isinstance(part, Formula):
        return f"<i>{raised(_text(part))}</i>"
    tag = TAGS.get(type(part))
    return f"<{tag}>{_text(part)}</{tag}>" if tag else _text(part)


def _text(text: str) -> str:
    return escape(flat(text))


def _lines(text: str) -> str:
    return "\n".join(_text(line) for line in text.split("\n"))
