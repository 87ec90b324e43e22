"""A page for the web: its blocks as HTML, to be put into a document, and the whole as Markdown. All text is escaped."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from urllib.parse import quote

from repro.render import page
from repro.render.text import aligned, flat

TAGS: dict[type[str], str] = {page.Strong: "strong", page.Emphasis: "em", page.Code: "code", page.Formula: "i"}
MARKS: dict[type[str], tuple[str, str]] = {page.Strong: ("**", "strong"), page.Emphasis: ("*", "em")}  # of Markdown
FILLED = 80  # characters: longer cells of words are not aligned in Markdown


def _raised(escaped: str) -> str:
    """A formula's escaped text with indices as <sub> and powers as <sup>: HTML that Markdown allows too."""
    tags = {"_": "sub", "^": "sup"}
    return re.sub(r"\\?([_^])(\w+)", lambda found: f"<{tags[found[1]]}>{found[2]}</{tags[found[1]]}>", escaped)


# ---- HTML


def html(blocks: Iterable[page.Block], table: Callable[[page.Table], str] | None = None) -> str:
    """The blocks of a page as a part of a document; `table` writes its tables, by default as in other pages."""
    return "\n".join(_block(block, table or whole_table) for block in blocks)


def whole_table(
    table: page.Table,
    *,
    cell: Callable[[int, int, page.Words], str] = lambda row, column, words: line_html(page.unbroken(words)),
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


def _inline(part: page.Inline) -> str:
    if isinstance(part, page.Link):
        target, text = quote(part.target, safe="/#"), part.text
        if part.to_page and "/" in part.target:  # a page for all scales: a Markdown file
            target = f"{target}.md"
        elif part.to_page:  # a page of this scale: a part of the same document, named without .md
            target, text = f"#{target}", text.removesuffix(".md")
        return f'<a href="{target}">{_text(text)}</a>'
    if isinstance(part, page.Formula):
        return f"<i>{_raised(_text(part))}</i>"
    tag = TAGS.get(type(part))
    return f"<{tag}>{_text(part)}</{tag}>" if tag else _text(part)


def _text(text: str) -> str:
    return escape(flat(text))


# ---- Markdown


def markdown(shown: page.Page) -> str:
    """The whole page for a code host, whose tables it has."""
    origin = flat(shown.origin).replace("--", "- -")  # which would end the comment
    return "\n\n".join([f"<!-- {origin} -->", *map(_md_block, shown.blocks)]) + "\n"


def _md_block(block: page.Block) -> str:
    match block:
        case page.Heading():
            return f"{'#' * block.level} {_md_line(block.words)}"
        case page.Text():
            return _paragraph(_md_line(block.words))
        case page.Listing():
            return "\n".join(f"- {_paragraph(_md_line(item))}" for item in block.items)
        case page.Table():
            note = [_paragraph(_md_line(block.note))] if block.note else []
            return "\n\n".join([*map(md_table, page.parts(block)), *note])
        case page.Picture():
            name = md_text(block.file.rpartition("/")[2].partition(".")[0])  # its caption is below it
            caption = _marked(page.Emphasis(f"{block.caption}."), is_between_blanks=True)
            return f"![{name}]({quote(block.file)})\n\n{caption}"
        case _:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
            return f"{fence}text\n{block.text}\n{fence}"


def md_table(table: page.Table) -> str:
    """A table with one line of headings: the heading of a group of columns is repeated in each."""
    is_left = [column.is_words or not i for i, column in enumerate(table.columns)]
    head, *rows = aligned(map(_cells, table.columns), is_left, least=2, most=FILLED)
    dashes = ["-" * (min(len(cell), FILLED) - 1) for cell in head]
    rule = [f":{of}" if left else f"{of}:" for of, left in zip(dashes, is_left, strict=True)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def _cells(column: page.Column) -> list[str]:
    """The lines of a column; a number is not broken: neither 2.14 ± 0.04 nor 1 (2)."""
    heading = "<br>".join(filter(None, (md_text(column.group), _md_line(column.heading))))
    return [heading, *(_md_line(page.unbroken(text)) for text in column.texts)]


def _md_line(words: page.Words) -> str:
    """Text of one line with its marks."""
    line = [" ", *(part for part in page.inlines(words) if isinstance(part, page.Link) or part), " "]
    written = ""
    for before, part, after in zip(line, line[1:], line[2:], strict=False):
        blanks = type(before) is str and before[-1] in " (" and type(after) is str and after[0] in " .,;:)"
        written += _md_inline(part, is_between_blanks=blanks)
    return written


def _md_inline(part: page.Inline, *, is_between_blanks: bool) -> str:
    match part:
        case page.Link():
            return f"[{md_text(part.text)}]({quote(part.target, safe='/#')}{'.md' * part.to_page})"
        case page.Code():
            code = flat(part)
            if is_between_blanks and code == code.strip() and not {*code} & {"`", "|"}:
                return f"`{code}`"
            return f"<code>{md_text(code)}</code>"
        case page.Formula():
            return _raised(md_text(part))
        case page.Strong() | page.Emphasis():
            return _marked(part, is_between_blanks=is_between_blanks)
        case _:
            return md_text(part)


def _marked(part: str, *, is_between_blanks: bool) -> str:
    """The text marked by asterisks if blanks surround it, else by HTML tags."""
    mark, tag = MARKS[type(part)]
    text = md_text(part)
    if is_between_blanks and text == text.strip():
        return f"{mark}{text}{mark}"
    return f"<{tag}>{text}</{tag}>"


def _paragraph(text: str) -> str:
    """The paragraph; a start that would begin a list or draw a line is escaped."""
    return re.sub(r"^(?:(\d+)(?=[.)](?:\s|$))|(?=[-+](?:\s|$)|---))", r"\1\\", text.strip())


def md_text(text: str) -> str:
    """The text on one line, with all that means something in Markdown or HTML escaped."""
    text = re.sub(r"([\\`*{}\[\]#|~$!]|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z]))", r"\\\1", flat(text))
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
