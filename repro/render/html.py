"""The blocks of a page as HTML, to be put into a document: all text is escaped."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from urllib.parse import quote

from repro.render import page
from repro.render.text import flat, raised, unbroken

TAGS: dict[type[str], str] = {page.Strong: "strong", page.Emphasis: "em", page.Code: "code", page.Formula: "i"}


def html(blocks: Iterable[page.Block], table: Callable[[page.Table], str] | None = None) -> str:
    """The blocks of a page as a part of a document; `table` writes its tables, by default as in other pages."""
    return "\n".join(_block(block, table or whole_table) for block in blocks)


def whole_table(
    table: page.Table,
    *,
    cell: Callable[[int, int, page.Words], str] = lambda row, column, words: cell_html(words),
    marks: Sequence[Mapping[str, str]] = (),
) -> str:
    """A table as it is, however wide.

    `cell` writes what stands in a cell, by its row, its column and its words. `marks` are attributes of each row.
    """
    sides = [' class="words"' if column.is_words or not i else "" for i, column in enumerate(table.columns)]
    lines = ["<table>", "<thead>"]
    if any(column.group for column in table.columns):
        groups = (
            f'<th colspan="{span}" scope="colgroup">{_text(group)}</th>' if group else "<td></td>" * span
            for group, span in page.spans(table.columns)
        )
        lines.append(f"<tr>{''.join(groups)}</tr>")
    headings = (line_html(column.heading) for column in table.columns)
    heads = (f'<th scope="col"{side}>{text}</th>' for side, text in zip(sides, headings, strict=True))
    lines += [f"<tr>{''.join(heads)}</tr>", "</thead>", "<tbody>"]
    rows = list(zip(*(column.texts for column in table.columns), strict=True))
    for n, words in enumerate(rows):
        of_row = marks[n] if marks else {}
        attributes = "".join(f' {name}="{escape(value)}"' for name, value in of_row.items())
        ruled = ' class="ruled"' if n + 1 in table.ruled and n + 1 < len(rows) else ""
        name, *cells = (cell(n, i, text) for i, text in enumerate(words))
        others = "".join(f"<td{side}>{text}</td>" for side, text in zip(sides[1:], cells, strict=True))
        lines.append(f'<tr{ruled}{attributes}><th scope="row" class="words">{name}</th>{others}</tr>')
    return "\n".join([*lines, "</tbody>", "</table>"])


def line_html(words: page.Words) -> str:
    """Text of one line with its marks."""
    return "".join(map(_inline, page.inlines(words)))


def _block(block: page.Block, table: Callable[[page.Table], str]) -> str:
    match block:
        case page.Heading():
            return f"<h{block.level}>{line_html(block.words)}</h{block.level}>"
        case page.Text():
            return f"<p>{line_html(block.words)}</p>"
        case page.Listing():
            return "\n".join(["<ul>", *(f"<li>{line_html(item)}</li>" for item in block.items), "</ul>"])
        case page.Table():
            return table(block) + (f"\n<p>{line_html(block.note)}</p>" if block.note else "")
        case page.Picture():
            caption = _text(block.caption)
            shown = f'<img src="{quote(block.file)}" alt="{caption}">'
            return f"<figure>{shown}<figcaption>{caption}</figcaption></figure>"
        case _:
            return "<pre>" + "\n".join(map(_text, block.text.split("\n"))) + "</pre>"


def cell_html(words: page.Words) -> str:
    """What stands in a cell; a number with its addition stays on one line."""
    return line_html(unbroken(words) if type(words) is str else words)


def _inline(part: page.Inline) -> str:
    if isinstance(part, page.Link):
        target, text = quote(part.target, safe="/#"), part.text
        if part.to_page and "/" in part.target:  # a page for all scales: a Markdown file
            target = f"{target}.md"
        elif part.to_page:  # a page of this scale: a part of the same document, named without .md
            target, text = f"#{target}", text.removesuffix(".md")
        return f'<a href="{target}">{_text(text)}</a>'
    if isinstance(part, page.Formula):
        return f"<i>{raised(_text(part))}</i>"
    tag = TAGS.get(type(part))
    return f"<{tag}>{_text(part)}</{tag}>" if tag else _text(part)


def _text(text: str) -> str:
    return escape(flat(text))
