r"""A page as LaTeX to \input into a table: its tables as tabulars, all else that it says as comments above and below.

The rules are those of booktabs where the document loads it. Nothing that a name holds is a command.
"""

import itertools
import re
import textwrap
import unicodedata
from collections.abc import Iterable

from repro.render.escape import flat
from repro.render.grid import aligned
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
    Verbatim,
    Words,
    inlines,
    plain,
    spans,
)

MINUS = "\N{MINUS SIGN}"
BOOKTABS = (  # what stands before a tabular, for documents that do not load booktabs
    *(rf"\providecommand{{\{rule}}}{{\hline}}" for rule in ("toprule", "midrule", "bottomrule")),
    r"\ifx\cmidrule\undefined\def\cmidrule(#1)#2{\cline{#2}}\fi",
)
SIZE = r"Made for \footnotesize with \tabcolsep at 3pt: each tabular is at most as wide as the text of an article."
LINE, LETTER, BETWEEN = 345.0, 4.4, 6.0  # points: the text of an article, a letter of \footnotesize, two \tabcolsep
LONGEST = 26  # letters of a cell of words: longer ones are broken
MARKS: dict[type[str], str] = {Strong: "textbf", Emphasis: "emph", Code: "texttt"}
TEX = {
    **{character: f"\\{character}" for character in "{}$&#%_"},
    **{character: f"{{{character}}}" for character in "[]*"},  # which a command before them would take
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", '"': "''"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "≤": r"$\leq$", "≥": r"$\geq$"},
    **{"Δ": r"$\Delta$", "ε": r"$\epsilon$", "±": r"$\pm$", MINUS: "$-$", "×": r"$\times$", "·": r"$\cdot$"},
    **{"√": r"$\surd$", "✓": r"$\oplus$", "✗": r"$\otimes$", "…": r"\dots{}", "†": r"\dag{}"},
    **{"–": r"\textendash{}", "—": r"\textemdash{}", "─": r"\rule{1em}{.4pt}"},
    **{"“": r"\textquotedblleft{}", "”": r"\textquotedblright{}", "’": r"\textquoteright{}"},
}
WHOLE = "ÆæØøßıŁłŒœ"  # letters without an accent that every font of LaTeX has
OGONEK = "\N{COMBINING OGONEK}"
GREEK = {"Δ": r"\Delta", "ε": r"\epsilon"}


def latex(page: Page) -> str:
    """The whole page; between two tables stands a blank of medium height."""
    lines = [*_comment(page.origin), *_comment(SIZE), *_caption(page), *BOOKTABS]
    n_tables = 0
    for block in page.blocks:
        if isinstance(block, Table):
            for part in fitting(block):
                lines += [r"\par\medskip"] if n_tables else []
                lines += tabular(part)
                n_tables += 1
        else:
            lines += _said(block)
    return "\n".join([*lines, ""])


def _caption(page: Page) -> Iterable[str]:
    """What the document may say of it: a line to be taken out of its comment."""
    heading = next((block for block in page.blocks if isinstance(block, Heading)), None)
    yield from [rf"% \caption{{{tex_line(heading.words)}.}}"] if heading else []


def fitting(table: Table) -> Iterable[Table]:
    """The table in as many parts as lines of text ask for; the first column leads each, and groups stay together."""
    names, *others = table.columns
    runs = [[*run] for _, run in itertools.groupby(others, key=lambda column: column.group or id(column))]
    part, left = [names], LINE - _width(names)
    for run in runs:
        wide = sum(map(_width, run))
        if wide > left and len(part) > 1:
            yield Table(tuple(part), table.ruled)
            part, left = [names], LINE - _width(names)
        part, left = [*part, *run], left - wide
    yield Table(tuple(part), table.ruled)


def _width(column: Column) -> float:
    """Of a column in points, about."""
    letters = max(map(len, map(plain, (column.heading, *column.texts))))
    return min(letters, LONGEST if column.is_words else letters) * LETTER + BETWEEN


def _kind(column: Column, is_first: bool) -> str:
    """How LaTeX sets a column: words to the left, broken where they are long; numbers to the right."""
    if column.is_words and max(map(len, map(plain, column.texts)), default=0) > LONGEST and not is_first:
        return f"p{{{LONGEST * LETTER:.0f}pt}}"
    return "l" if column.is_words or is_first else "r"


def tabular(table: Table) -> Iterable[str]:
    """The lines of one tabular."""
    is_left = [column.is_words or not i for i, column in enumerate(table.columns)]
    grid = aligned(map(_cells, table.columns), is_left)
    heading, *body = [" & ".join(cells) + r" \\" for cells in grid]
    groups, rules, end = [], [], 0
    for group, span in spans(table.columns):
        groups.append(rf"\multicolumn{{{span}}}{{c}}{{{tex_text(group)}}}")
        rules += [rf"\cmidrule(lr){{{end + 1}-{end + span}}}"] if group else []
        end += span
    yield rf"\begin{{tabular}}{{{''.join(_kind(column, not i) for i, column in enumerate(table.columns))}}}"
    yield r"\toprule"
    yield from (" & ".join(groups) + r" \\", " ".join(rules)) if rules else ()
    yield from (heading, r"\midrule")
    for n, line in enumerate(body, start=1):
        yield line
        if n in table.ruled and n < len(body):
            yield r"\midrule"
    yield from (r"\bottomrule", r"\end{tabular}")


def _cells(column: Column) -> list[str]:
    return [tex_line(column.heading), *map(tex_line, column.texts)]


def tex_line(words: Words) -> str:
    """Text of one line with its marks."""
    return "".join(map(_inline, inlines(words)))


def _inline(part: Inline) -> str:
    if isinstance(part, Link):
        return tex_text(part.text)
    if isinstance(part, Formula):
        return _formula(part)
    mark = MARKS.get(type(part))
    return rf"\{mark}{{{tex_text(part)}}}" if mark and part else tex_text(part)


def _formula(text: str) -> str:
    """$d_{k}$, $P_{\\mathrm{drop}}$: letters are symbols, an index of several is a word."""

    def written(found: re.Match[str]) -> str:
        if index := found["index"]:
            return found["mark"] + "{" + (index if len(index) == 1 else rf"\mathrm{{{index}}}") + "}"
        command = r"\log" if found[0] == "log" else GREEK.get(found[0])
        if command:
            return command + " " * found.string[found.end() : found.end() + 1].isalpha()
        return _in_mathematics(found[0])

    formula = re.sub(r"(?P<mark>[_^])(?P<index>[0-9A-Za-z]+)|log|.", written, flat(text))
    return f"${formula.strip()}$" if formula.strip() else ""


def _in_mathematics(letter: str) -> str:
    return letter if re.fullmatch(r"[0-9A-Za-z ()/,.+=-]", letter) else rf"\mbox{{{tex_text(letter)}}}"


def tex_text(text: str) -> str:
    """Any text as text: LaTeX's own characters escaped, those its fonts may lack by their number."""
    return "".join(TEX.get(c, c if c.isascii() or _is_set(c) else f"U+{ord(c):04X}") for c in flat(text))


def _is_set(letter: str) -> bool:
    """Whether any document sets the letter: one of the Latin-1 Supplement or Latin Extended-A, in UTF-8.

    LaTeX reads that since 2018. An ogonek, and letters like eth, thorn and eng, stop it in the encoding of fonts that
    it begins with (OT1), and a few it does not know.
    """
    base, *accents = list(unicodedata.normalize("NFD", letter))
    return letter in WHOLE or (letter <= "ž" and base.isascii() and accents not in ([], [OGONEK]))


def _said(block: Block) -> Iterable[str]:
    match block:
        case Listing():
            for item in block.items:
                yield from _comment(f"- {plain(item)}")
        case Picture():
            yield from _comment(f"{block.caption}: {block.file}")
        case Verbatim():
            yield from (f"% {flat(line)}" for line in block.text.split("\n"))
        case Table():
            raise TypeError("A table is no comment.")
        case _:
            yield from _comment(plain(block.words))


def _comment(text: str) -> Iterable[str]:
    """Lines that LaTeX does not read."""
    yield from textwrap.wrap(flat(text), 118, initial_indent="% ", subsequent_indent="%   ") or ["%"]
