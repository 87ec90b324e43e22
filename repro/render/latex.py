r"""A page as LaTeX to \input: its tables as floats with caption and label, everything else as comments.

The rules are those of booktabs if the document loads it. Nothing in a name is a command.
"""

import itertools
import math
import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace

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
    parts,
    plain,
    spans,
)

MINUS = "\N{MINUS SIGN}"
BOOKTABS = (  # before the tables, for documents that do not load booktabs
    *(rf"\providecommand{{\{rule}}}{{\hline}}" for rule in ("toprule", "midrule", "bottomrule")),
    r"\ifx\cmidrule\undefined\def\cmidrule(#1)#2{\cline{#2}}\fi",
)
USE = r"To be \input between paragraphs of an article of 10 points, one column. No package is needed, booktabs is used."
WIDTH, HEIGHT = 345, 52  # text area of an article: width in points, height in lines of \footnotesize
BETWEEN, BROKEN = 6.0, 110.0  # points: two \tabcolsep; a cell of words that is wider is broken
NARROW, LETTER, BROAD = 2.8, 4.2, 6.6  # points of \footnotesize: letters like i, most letters, capitals and signs
RAGGED = r"\rightskip 0pt plus 1fil\relax "  # a broken cell is not spread to both sides
MARKS: dict[type[str], str] = {Strong: "textbf", Emphasis: "emph", Code: "texttt"}
TEX = {
    **{character: f"\\{character}" for character in "{}$&#%_"},
    **{character: f"{{{character}}}" for character in "[]*"},  # else a command before them would take them as arguments
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


def latex(page: Page, name: str) -> str:
    """The whole page; its floats are labelled tab:`name`, tab:`name`-2 and so on."""
    lines = [*_comment(page.origin), *_comment(USE), *BOOKTABS]
    labels = (f"tab:{name}{f'-{i}' if i > 1 else ''}" for i in itertools.count(1))
    caption = f"{page.title}."
    for block in page.blocks:
        if isinstance(block, Table):
            for i, pieces in enumerate(floats(block)):
                again = " Continued." if i else ""
                lines += _float(pieces, tex_text(caption + again), next(labels))
        else:
            lines += _said(block)
        if isinstance(block, Heading) and block.level > 1:
            caption = f"{page.title}. {plain(block.words)}."
    return "\n".join([*lines, ""])


def _float(pieces: Iterable[Table], caption: str, label: str) -> Iterable[str]:
    r"""A float with tabulars below each other, separated by a medium blank."""
    yield from (r"\begin{table}[htbp]", rf"\caption{{{caption}}}", rf"\label{{{label}}}")
    yield r"\centering\footnotesize\setlength{\tabcolsep}{3pt}"
    for i, piece in enumerate(pieces):
        yield from [r"\par\medskip"] if i else []
        yield from tabular(piece)
    yield r"\end{table}"


def floats(table: Table) -> Iterable[list[Table]]:
    """The table in pieces no wider than a line of text, in groups no taller than a page."""
    together, left = list[Table](), HEIGHT
    for piece in (short for part in parts(table, WIDTH, _wide) for short in _short(part)):
        tall = 5 + len(piece.ruled) // 2 + sum(_heights(piece))  # with headings, rules and a blank below
        if together and tall > left:
            yield together
            together, left = [], HEIGHT
        together, left = [*together, piece], left - tall
    yield together


def _short(table: Table) -> Iterable[Table]:
    """The table in pieces of about equally many rows, each no taller than a page."""
    n_rows = len(table.columns[0].texts)
    n_pieces = math.ceil(sum(_heights(table)) / (HEIGHT - 8)) or 1
    for start, end in itertools.pairwise(n_rows * i // n_pieces for i in range(n_pieces + 1)):
        columns = tuple(column._replace(texts=column.texts[start:end]) for column in table.columns)
        yield replace(table, columns=columns, ruled=frozenset(row - start for row in table.ruled if row > start))


def _heights(table: Table) -> Iterable[int]:
    """The height of each row, in lines."""
    broken = [column for column in table.columns[1:] if column.is_words]
    return [
        max([1, *(math.ceil(_points(column.texts[row]) / BROKEN) for column in broken)])
        for row in range(len(table.columns[0].texts))
    ]


def _wide(columns: Sequence[Column]) -> float:
    """Approximate width of columns side by side, in points; a heading over several is not broken."""
    groups = itertools.groupby(columns, key=lambda column: column.group)
    return sum(max(_points(group) + BETWEEN, sum(map(_width, run))) for group, run in groups)


def _width(column: Column) -> float:
    widest = max(map(_points, (column.heading, *column.texts)))
    return (min(widest, BROKEN) if column.is_words else widest) + BETWEEN


def _points(words: Words) -> float:
    """Approximate width of a line of text, in points."""
    broad, narrow = f"mw+±×%&={MINUS}", " .,:;'|!ilfjt()[]"
    points = (BROAD if c.isupper() or c in broad else NARROW if c in narrow else LETTER for c in _named(plain(words)))
    return sum(points)


def _kind(column: Column, is_first: bool) -> str:
    """How LaTeX sets a column: words to the left, broken if long; numbers to the right."""
    if column.is_words and not is_first and max(map(_points, column.texts), default=0) > BROKEN:
        return f"p{{{BROKEN:.0f}pt}}"
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
    texts = (RAGGED * (column.is_words and _points(text) > BROKEN) + tex_line(text) for text in column.texts)
    return [tex_line(column.heading), *texts]


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
    """$d_{k}$, $P_{\\mathrm{drop}}$: letters are symbols, an index of several letters is a word."""

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
    """Any text as text: LaTeX's own characters are escaped, letters that its fonts may lack become U+NNNN."""
    return "".join(TEX.get(c, c) for c in _named(text))


def _named(text: str) -> str:
    return "".join(c if c in TEX or c.isascii() or _is_set(c) else f"U+{ord(c):04X}" for c in flat(text))


def _is_set(letter: str) -> bool:
    """Whether any document can set the letter: most of the Latin-1 Supplement and Latin Extended-A, in UTF-8.

    LaTeX reads UTF-8 since 2018. In its default font encoding (OT1) an ogonek, and letters like eth, thorn and eng,
    stop it; a few others it does not know.
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
