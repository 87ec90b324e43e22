r"""The tables of a page as LaTeX to \input: floats with caption and label.

The rules are those of booktabs if the document loads it. Nothing in a name is a command.
"""

import itertools
import math
import re
from collections.abc import Iterable

from repro.render import page
from repro.render.text import aligned, flat

MINUS = "\N{MINUS SIGN}"
BOOKTABS = (  # before the tables, for documents that do not load booktabs
    *(rf"\providecommand{{\{rule}}}{{\hline}}" for rule in ("toprule", "midrule", "bottomrule")),
    r"\ifx\cmidrule\undefined\def\cmidrule(#1)#2{\cline{#2}}\fi",
)
USE = r"To be \input between paragraphs of an article of 10 points, one column. No package is needed, booktabs is used."
WIDTH, ROWS = 345, 40  # of an article: points of a line, and rows of \footnotesize that fit a page, some of them broken
BETWEEN, BROKEN = 6.0, 110.0  # points: two \tabcolsep; a cell of words that is wider is broken
NARROW, LETTER, BROAD = 2.8, 4.2, 6.6  # points of \footnotesize: letters like i, most letters, capitals and signs
RAGGED = r"\rightskip 0pt plus 1fil\relax "  # a broken cell is not spread to both sides
MARKS: dict[type[str], str] = {page.Strong: "textbf", page.Emphasis: "emph", page.Code: "texttt"}
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
OTHERS = "ÐðÞþ÷"  # of Latin-1: LaTeX's first fonts have no such letter
SYMBOLS = {"Δ": r"\Delta", "ε": r"\epsilon", "log": r"\log"}  # of formulas


def latex(shown: page.Page, name: str) -> str:
    """The tables of a page; their floats are labelled tab:`name`, tab:`name`-2 and so on."""
    lines = [f"% {flat(shown.origin)}", f"% {USE}", *BOOKTABS]
    labels = (f"tab:{name}{f'-{i}' if i > 1 else ''}" for i in itertools.count(1))
    caption = f"{shown.title}."
    for block in shown.blocks:
        if isinstance(block, page.Table):
            for i, piece in enumerate(pieces(block)):
                said = tex_text(f"{caption} Continued." if i else caption)
                note = f" {tex_line(block.note)}" if block.note and not i else ""
                lines += [r"\begin{table}[htbp]", rf"\caption{{{said}{note}}}", rf"\label{{{next(labels)}}}"]
                lines += [r"\centering\footnotesize\setlength{\tabcolsep}{3pt}", *tabular(piece), r"\end{table}"]
        if isinstance(block, page.Heading) and block.level > 1:
            caption = f"{shown.title}. {page.plain(block.words)}."
    return "\n".join([*lines, ""])


def pieces(table: page.Table) -> Iterable[page.Table]:
    """The table in pieces no wider than a line of text, each of about as many rows, no more than a page holds."""
    n_rows = len(table.columns[0].texts)
    n_pieces = max(1, math.ceil(n_rows / ROWS))
    for part in page.parts(table, WIDTH, _width, lambda group: _points(group) + BETWEEN):
        for start, end in itertools.pairwise(n_rows * i // n_pieces for i in range(n_pieces + 1)):
            columns = tuple(column._replace(texts=column.texts[start:end]) for column in part.columns)
            yield page.Table(columns, frozenset(row - start for row in table.ruled if row > start))


def _width(column: page.Column) -> float:
    """Approximate width of a column, in points."""
    widest = max(map(_points, (column.heading, *column.texts)))
    return (min(widest, BROKEN) if column.is_words else widest) + BETWEEN


def _points(words: page.Words) -> float:
    """Approximate width of a line of text, in points."""
    broad, narrow = f"mw+±×%&={MINUS}", " .,:;'|!ilfjt()[]"
    points = (
        BROAD if c.isupper() or c in broad else NARROW if c in narrow else LETTER for c in _named(page.plain(words))
    )
    return sum(points)


def _kind(column: page.Column, is_first: bool) -> str:
    """How LaTeX sets a column: words to the left, broken if long; numbers to the right."""
    if column.is_words and not is_first and max(map(_points, column.texts), default=0) > BROKEN:
        return f"p{{{BROKEN:.0f}pt}}"
    return "l" if column.is_words or is_first else "r"


def tabular(table: page.Table) -> Iterable[str]:
    """The lines of one tabular."""
    is_left = [column.is_words or not i for i, column in enumerate(table.columns)]
    grid = aligned(map(_cells, table.columns), is_left)
    heading, *body = [" & ".join(cells) + r" \\" for cells in grid]
    groups, rules, end = [], [], 0
    for group, span in page.spans(table.columns):
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


def _cells(column: page.Column) -> list[str]:
    texts = (RAGGED * (column.is_words and _points(text) > BROKEN) + tex_line(text) for text in column.texts)
    return [tex_line(column.heading), *texts]


def tex_line(words: page.Words) -> str:
    """Text of one line with its marks."""
    return "".join(map(_inline, page.inlines(words)))


def _inline(part: page.Inline) -> str:
    if isinstance(part, page.Formula):
        return _formula(part)
    part = part.text if isinstance(part, page.Link) else part
    mark = MARKS.get(type(part))
    return rf"\{mark}{{{tex_text(part)}}}" if mark and part else tex_text(part)


def _formula(text: str) -> str:
    """$d_{k}$, $P_{\\mathrm{drop}}$: letters are symbols, an index of several letters is a word."""

    def written(found: re.Match[str]) -> str:
        if index := found["index"]:
            return found["mark"] + "{" + (index if len(index) == 1 else rf"\mathrm{{{index}}}") + "}"
        return SYMBOLS[found[0]] + " " * found.string[found.end() : found.end() + 1].isalpha()

    return "$" + re.sub(rf"(?P<mark>[_^])(?P<index>[0-9A-Za-z]+)|{'|'.join(SYMBOLS)}", written, text) + "$"


def tex_text(text: str) -> str:
    """Any text as text: LaTeX's own characters are escaped, letters that its fonts may lack become U+NNNN."""
    return "".join(TEX.get(c, c) for c in _named(text))


def _named(text: str) -> str:
    """One line; letters that some document cannot set, which are all but those of Latin-1, become U+NNNN."""
    known = (c if c in TEX or c.isascii() or ("À" <= c <= "ÿ" and c not in OTHERS) else None for c in flat(text))
    return "".join(c or f"U+{ord(of):04X}" for c, of in zip(known, flat(text), strict=True))
