"""Grids of text: columns of cells, as Markdown for a code host and as LaTeX for an article.

Whatever a cell held comes out as text: what Markdown, HTML or LaTeX would take for its own is escaped.
"""

import itertools
import math
import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from repro.render.escape import flat, markdown_text

if TYPE_CHECKING:
    from pandas import Series

MINUS = "\N{MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"
BOOKTABS = (  # what stands before a tabular, for documents that do not load booktabs
    *(rf"\providecommand{{\{rule}}}{{\hline}}" for rule in ("toprule", "midrule", "bottomrule")),
    r"\ifx\cmidrule\undefined\def\cmidrule(#1)#2{\cline{#2}}\fi",
)


class Column(NamedTuple):
    """A column as a person reads it: one text per row, under a heading and perhaps a heading of several."""

    group: str
    heading: str
    texts: list[str]


def numbers(values: "Series[float]", form: str) -> list[str]:
    """Numbers as they are written, nothing for none."""
    return ["" if math.isnan(x) else format(x, form).replace("-", MINUS) for x in values]


def spans(shown: Iterable[Column]) -> list[tuple[str, int]]:
    """The headings of several columns, and over how many each goes."""
    return [(group, len(list(of))) for group, of in itertools.groupby(column.group for column in shown)]


def aligned(columns: Iterable[Sequence[str]]) -> list[list[str]]:
    """The lines of a grid, every cell as wide as its column: names to the left, numbers to the right."""
    padded = []
    for i, texts in enumerate(columns):
        width = max(map(len, texts))
        padded.append([text.rjust(width) if i else text.ljust(width) for text in texts])
    return [list(line) for line in zip(*padded, strict=True)]


def terminal_grid(shown: Sequence[Column], notes: Iterable[str]) -> str:
    """A table for a terminal, headings of several columns ruled below, then the notes."""
    lines = aligned([column.heading, *map(flat, column.texts)] for column in shown)
    widths = iter(map(len, lines[0]))
    over = [(group, sum(next(widths) + 2 for _ in range(span)) - 2) for group, span in spans(shown)]
    lines.insert(0, [group.center(width) for group, width in over])
    lines.insert(1, [("─" if group else " ") * width for group, width in over])
    filled = [textwrap.fill(flat(note), 100, subsequent_indent="  ") for note in notes]
    return "\n".join([*("  ".join(line).rstrip() for line in lines), *([""] if filled else []), *filled]) + "\n"


def markdown_grid(shown: Iterable[Column]) -> str:
    """A table of GitHub's Markdown: one heading line, so a heading of several columns stands in each."""
    head, *lines = aligned(
        ["<br>".join(filter(None, (group, markdown_heading(heading).rjust(2)))), *map(_markdown_cell, texts)]
        for group, heading, texts in shown
    )
    rule = [f"{'-' * (len(cell) - 1)}:" if i else f":{'-' * (len(cell) - 1)}" for i, cell in enumerate(head)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def _markdown_cell(text: str) -> str:
    """Numbers are not broken into lines: neither 2.14 ± 0.04 nor 1 (2)."""
    return re.sub(r" (?=± |[(][\d.,]+[)]$)|(?<=±) ", NO_BREAK, markdown_text(text))


def markdown_heading(symbol: str) -> str:
    """d_k with its index below the line."""
    return re.sub(r"_(\w+)", r"<sub>\1</sub>", symbol)


def tabular(shown: Sequence[Column], ruled: Collection[int]) -> Iterable[str]:
    """The lines of a LaTeX tabular, with a rule after as many rows as each of `ruled` says."""
    grid = aligned([tex_heading(column.heading), *map(tex_text, column.texts)] for column in shown)
    heading, *body = [" & ".join(line) + r" \\" for line in grid]
    groups, rules, end = [], [], 0
    for group, span in spans(shown):
        groups.append(rf"\multicolumn{{{span}}}{{c}}{{{tex_text(group)}}}")
        rules += [rf"\cmidrule(lr){{{end + 1}-{end + span}}}"] if group else []
        end += span
    yield rf"\begin{{tabular}}{{l{'r' * (end - 1)}}}"
    yield from (r"\toprule", " & ".join(groups) + r" \\", " ".join(rules), heading, r"\midrule")
    for n, line in enumerate(body, start=1):
        yield line
        if n in ruled and n < len(body):
            yield r"\midrule"
    yield from (r"\bottomrule", r"\end{tabular}")


def tex_heading(symbol: str) -> str:
    """N, h, d_k and P_drop are mathematics, words are words."""
    if not (parts := re.fullmatch(r"(\w)(?:_(\w+))?", symbol)):
        return tex_text(symbol)
    letter, index = parts[1].replace("Δ", r"\Delta").replace("ε", r"\epsilon"), parts[2] or ""
    index = rf"\mathrm{{{index}}}" if len(index) > 1 else index
    return f"${letter}_{{{index}}}$" if index else f"${letter}$"


TEX = {
    **{character: f"\\{character}" for character in "{}$&#%_"},
    **{character: f"{{{character}}}" for character in "[]*"},  # which a command before them would take
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", '"': "''"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"},
    **{"Δ": r"$\Delta$", "ε": r"$\epsilon$", "±": r"$\pm$", MINUS: "$-$"},
}


def tex_text(text: str) -> str:
    """Any text as text: LaTeX's own characters escaped, those its fonts may lack by their number."""
    return "".join(TEX.get(c, c if c.isascii() else f"U+{ord(c):04X}") for c in flat(text))


SHEET_DIGITS = 9  # another processor makes sums in another order, which shows in the last of 17


def sheet_number(value: float) -> str:
    """A number as it is written into comma-separated values; full precision stays in records and journals."""
    return f"{value:.{SHEET_DIGITS}g}"
