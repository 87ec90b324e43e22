"""A page comes out of every writer as it went in: what a reader sees are the values, whatever they hold."""

import itertools
import math
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from render.test_latex import faults
from rich.cells import cell_len

from repro.render import page as of_page
from repro.render.latex import latex, tex_text
from repro.render.markup import html, markdown, whole_table
from repro.render.page import Code, Column, Emphasis, Heading, Link, Listing, Page, Strong, Table, Text, Words, parts
from repro.render.terminal import terminal
from repro.render.text import NO_BREAK, flat, several

HOSTILE = [
    "a|b", "\\", "\\|", "h\\", "`", "``a`", "*", "**a**", "_i_", "~~h~~", "$h$", "#", "# h", "- a", "1. a", "1) a",
    "---", "===",
    "<script>alert(1)</script>", "<!-- a", "-->", "&amp;", "&", "%", "{a}", "[a](b)", "![a](b)", '"a"', "'a'",
    "\x1b[31ma", "a\nb",
    "a\r\nb", "\ta", "\u2028", "\x00", "", " ", "  a  ", "w" * 300, "字幅", "e\u0301",
    "\\end{tabular}", "\\input{x}", "^", "~", "62.7 ± 0.4",
    "+ a", "> a", "=cmd()", "a_b", "http://a.b", "</td>", "| --- |", ":-:", "\\\\&", "d_k", "é☃", "]]>", "\\$", "\\`",
]  # fmt: skip
hostile = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
KINDS = {"": str, "strong": Strong, "emphasis": Emphasis, "code": Code}
Drawn = str | list[tuple[str, str]]  # a line, or its parts with their kinds
lines = hostile | st.lists(st.tuples(st.sampled_from([*KINDS]), hostile), min_size=1, max_size=3)
cells = st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(lines, min_size=n, max_size=n), min_size=2, max_size=4))


def built(drawn: Drawn) -> Words:
    return drawn if isinstance(drawn, str) else tuple(KINDS[kind](text) for kind, text in drawn)


def seen(words: Words) -> str:
    """What a reader sees of a line: one line, blanks folded, none at its ends."""
    return " ".join(flat(of_page.plain(words)).replace(NO_BREAK, " ").split())


def table_of(columns: Sequence[Sequence[Words]], heading: str = "h") -> Table:
    return Table(tuple(Column("", f"{heading}{i}", texts) for i, texts in enumerate(columns)))


def read_inline(token: Token) -> str:
    shown = "".join(
        " " if child.type in ("softbreak", "hardbreak") else child.content
        for child in token.children or []
        if child.type in ("text", "text_special", "code_inline", "softbreak", "hardbreak")
    )
    assert {child.content for child in token.children or [] if child.type == "html_inline"} <= TAGS
    return " ".join(shown.replace(NO_BREAK, " ").split())


TAGS = {f"<{end}{tag}>" for tag in ("strong", "em", "code", "sub", "sup", "br") for end in ("", "/")}


def read_markdown(text: str) -> dict[str, list[str]]:
    """The texts that a reader of Markdown sees, by the element they stand in."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text)
    found: dict[str, list[str]] = {}
    within: list[str] = []
    for token in tokens:
        if token.nesting == 1:
            within.append(token.tag)
        elif token.nesting == -1:
            within.pop()
        elif token.type == "inline":
            place = "li" if "li" in within else within[-1]
            found.setdefault(place, []).append(read_inline(token))
        elif token.type in ("fence", "html_block", "code_block", "hr"):
            found.setdefault(token.type, []).append(token.content)
    return found


class Reader(HTMLParser):
    """The texts that a reader of HTML sees, by the element they stand in; an element that is not closed is an error."""

    EMPTY = ("meta", "img", "br")
    PLACES = ("td", "th", "p", "li", "h1", "h2", "pre", "figcaption", "title")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.found: dict[str, list[str]] = {}
        self.links: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag != "script"
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.EMPTY:
            self.open.append(tag)
        if tag in self.PLACES:
            self.found.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        place = next((tag for tag in reversed(self.open) if tag in self.PLACES), None)
        if place:
            self.found[place][-1] += data


def folded(texts: Sequence[str]) -> list[str]:
    return [" ".join(text.replace(NO_BREAK, " ").split()) for text in texts]


@settings(max_examples=100)
@given(cells)
@example([HOSTILE, [[("strong", text)] for text in HOSTILE], [[("code", text)] for text in HOSTILE]])
@example([[[("", "a"), ("strong", text), ("", "b"), ("emphasis", text), ("", "c")] for text in HOSTILE]] * 2)
def test_cells_come_back_from_markdown_and_html(drawn: list[list[Drawn]]) -> None:
    columns = [[*map(built, column)] for column in drawn]
    page = Page("made", (table_of(columns),))
    expected = [seen(cell) for line in zip(*columns, strict=True) for cell in line]
    with patch("repro.render.page.parts", lambda table: (table,)):  # however wide
        assert read_markdown(markdown(page)).get("td", []) == expected
    found = Reader(html(page.blocks)).found
    names, others = found["th"][len(columns) :], iter(found.get("td", []))
    assert folded([text for name in names for text in (name, *itertools.islice(others, len(columns) - 1))]) == expected


@settings(max_examples=100)
@given(lines)
@example([("", "a"), ("strong", "*b*"), ("strong", "c"), ("emphasis", "d"), ("", "e")])
@example([("strong", "(In brackets)"), ("", " is")])
def test_texts_come_back_from_markdown_and_html(drawn: Drawn) -> None:
    line = built(drawn)
    page = Page("made", (Heading(line, 1), Text(line), Listing((line, "end"))))
    read = read_markdown(markdown(page))
    assert [*read.get("h1", [""]), *read.get("p", [""])][:2] == [seen(line)] * 2
    assert [text for text in read["li"] if text] == [text for text in (seen(line), "end") if text]
    assert not {"fence", "code_block", "hr"} & read.keys()
    of_html = Reader(html(page.blocks)).found
    assert folded([*of_html["h1"], *of_html["p"], *of_html["li"]]) == [*[seen(line)] * 3, "end"]


def test_an_attribute_of_a_row_ends_nothing() -> None:
    made = whole_table(
        Table((Column("", "row", HOSTILE),)), marks=[{"data-row": f'"><script>{text}'} for text in HOSTILE]
    )
    assert folded(Reader(made).found["th"][1:]) == [*map(seen, HOSTILE)]


@given(hostile)
def test_the_origin_cannot_end_its_comment(origin: str) -> None:
    assert read_markdown(markdown(Page(origin, (Text("after"),))))["p"] == ["after"]
    assert Reader(html((Text("after"),))).found["p"] == ["after"]
    assert latex(Page(origin, ()), "it").split("\n")[0].startswith("%")


def test_characters_that_reverse_text_are_escaped() -> None:
    name = "corpus \x1b[31m\u202etxet\u2069\nend"
    for page in (markdown(Page("", (Text(name),))), html((Text(name),)), latex(Page("", (Text(name),)), "it")):
        assert not {"\x1b", "\u202e", "\u2069"} & {*page}
    assert flat(name) == r"corpus \x1b[31m\u202etxet\u2069 end"


ESCAPES = {
    r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<",
    r"\textgreater{}": ">", r"\textbar{}": "|", r"$\Delta$": "Δ", r"$\epsilon$": "ε", r"$\pm$": "±", "$-$": "−",
    r"$\times$": "×", r"$\cdot$": "·", r"$\surd$": "√", r"$\oplus$": "✓", r"$\otimes$": "✗", r"\dots{}": "…",
    r"\dag{}": "†", r"\textendash{}": "–", r"\textemdash{}": "—", r"\rule{1em}{.4pt}": "─",
    r"\textquotedblleft{}": "“", r"\textquotedblright{}": "”", r"\textquoteright{}": "’",
    "{[}": "[", "{]}": "]", "{*}": "*", "''": '"', **{f"\\{c}": c for c in "{}$&#%_"},
}  # fmt: skip
SET = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ"  # by any document
TOKEN = re.compile("|".join([*map(re.escape, ESCAPES), r"[^\\{}$&#%_~^<>|\[\]*\"]"]))


def numbered(text: str) -> str:
    """With letters that LaTeX's fonts may lack by their numbers."""
    return "".join(c if c.isascii() or c in {*ESCAPES.values(), *SET} else f"U+{ord(c):04X}" for c in flat(text))


def read_tex(text: str) -> str:
    """What LaTeX shows of an escaped text: every token is one of those we write, or it is an error."""
    shown, at = "", 0
    while at < len(text):
        found = TOKEN.match(text, at)
        assert found, f"{text!r} has at {at} what LaTeX would obey"
        shown += ESCAPES.get(found[0]) or found[0]
        at = found.end()
    return shown


@settings(max_examples=100)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda text: "''" not in text))
@example(r"\input{x} % & $h$ [a]* {b} ~^_#<|>")
def test_a_text_comes_back_from_latex_token_by_token(text: str) -> None:
    assert read_tex(tex_text(text)) == numbered(text)


def test_letters_that_any_document_sets_are_let_through() -> None:
    assert "".join(c for c in map(chr, range(0x80, 0x250)) if tex_text(c) == c) == SET
    assert tex_text("ð ą α 第") == "U+00F0 U+0105 U+03B1 U+7B2C"  # which would stop some


@settings(max_examples=100)
@given(cells)
@example([HOSTILE, [[("strong", text)] for text in HOSTILE], [[("code", text)] for text in HOSTILE]])
def test_latex_has_a_line_for_each_row_and_all_else_is_comment(drawn: list[list[Drawn]]) -> None:
    columns = [[*map(built, column)] for column in drawn]
    page = Page("made", (Heading(columns[0][0]), table_of(columns), Text(columns[1][0]), of_page.Verbatim("a\n\\b")))
    with patch("repro.render.latex.pieces", lambda table: [table]), patch("repro.render.latex.BROKEN", math.inf):
        lines = latex(page, "it").split("\n")
    begin, end = lines.index(rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}"), lines.index(r"\end{tabular}")
    body = [line for line in lines[begin + 1 : end] if line.endswith(r" \\")]
    assert len(body) == 1 + len(columns[0])
    for line, row in zip(body[1:], zip(*columns, strict=True), strict=True):
        cells_of_line = re.split(r"(?<!\\) *&", line.removesuffix(r" \\"))
        assert len(cells_of_line) == len(row)
        for shown, cell in zip(cells_of_line, row, strict=True):
            assert type(cell) is not str or seen(read_tex(shown)) == seen(numbered(cell).replace("''", '"'))
    others = [line for line in (*lines[:begin], *lines[end + 1 :]) if line]
    of_float = (r"\begin{table}", r"\caption{", r"\label{tab:it}", r"\centering", r"\end{table}")
    assert all(line.startswith(("%", r"\providecommand", r"\ifx\cmidrule", *of_float)) for line in others)


def test_every_kind_of_content_compiles(tmp_path: Path) -> None:
    (tmp_path / "table.tex").write_text(latex(everything(), "it"), "utf-8")
    assert [line for line in faults([tmp_path / "table.tex"], tmp_path) if "Overfull" not in line] == []


def everything() -> Page:
    """Every kind of content, every one of it hostile."""
    return Page(
        "made by a test",
        of_page.blocks(
            Heading((Emphasis("All"), " of it"), 1),
            Text(("See ", Link("that page", "sub/other", to_page=True), ", ", Link("a file", "a b(c).txt"), ".")),
            Text(("And ", Link("claims.md", "claims", to_page=True), ".")),
            Heading("A table"),
            Table(
                (
                    Column("", "row", [*HOSTILE]),
                    Column("scores", of_page.Formula("d_k"), [(of_page.Formula("O(n^2 d)"),)] * len(HOSTILE)),
                    Column("scores", "said", [(Code(text),) for text in HOSTILE], is_words=True),
                ),
                frozenset({1}),
            ),
            Listing(tuple((Strong(text), f": {text}") for text in HOSTILE)),
            of_page.Picture("figures/a.png", "What is <seen>"),
            of_page.Verbatim("```\n1  2\n</pre>"),
        ),
    )


def test_every_kind_of_content_is_written() -> None:
    read = read_markdown(markdown(everything()))
    assert read["h1"] == ["All of it"]
    assert read["fence"] == ["```\n1  2\n</pre>\n"]
    assert "[that page](sub/other.md)" in markdown(everything())
    picture = "![a](figures/a.png)"
    assert f"\n\n{picture}\n\n*What is &lt;seen&gt;.*\n\n" in markdown(everything()), "its caption is below, not beside"
    assert "| scores<br>d<sub>k</sub> |" in markdown(everything())
    assert "O(n<sup>2</sup> d)" in markdown(everything())
    of_html = Reader(html(everything().blocks))
    assert {"sub/other.md", "a%20b%28c%29.txt", "figures/a.png", "#claims"} <= {*of_html.links}
    assert '<a href="#claims">claims</a>' in html(everything().blocks), "a part of the document, which is no file"
    assert "[claims.md](claims.md)" in markdown(everything())
    assert of_html.found["figcaption"] == ["What is <seen>"]
    assert of_html.found["pre"] == ["```\n1  2\n</pre>"]
    rows = re.findall("<tr([^>]*)><th scope=.row", html(everything().blocks))
    assert rows == [' class="ruled"', *[""] * (len(HOSTILE) - 1)], "below the first row"
    assert "$d_{k}$" in latex(everything(), "it")
    assert "$O(n^{2} d)$" in latex(everything(), "it")


def test_a_page_sends_no_command_to_the_terminal() -> None:
    shown = terminal(everything())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028]", shown)
    rows = [line for line in shown.split("\n") if "O(n^2 d)" in line]
    assert len(rows) == len(HOSTILE), "a name breaks no line"
    starts = {cell_len(line[: line.index("O(n^2 d)")]) for line in rows}
    assert len(starts) == 1, "numbers stand below each other, wide letters or not"


def test_columns_in_a_terminal_by_hand() -> None:
    page = Page(
        "",
        (
            Table(
                (
                    Column("", "row", ["a", "字"]),
                    Column("BLEU", "ours", ["1.5", "20.0"]),
                    Column("BLEU", "Δ", ["", "+1"]),
                )
            ),
            Listing(("note " * 30,)),
        ),
    )
    assert terminal(page).split("\n")[:6] == [
        "       BLEU",
        "     ────────",
        "row  ours   Δ",
        "a     1.5",
        "字   20.0  +1",
        "",
    ]
    assert [len(line) <= 80 for line in terminal(page).split("\n")] == [True] * 9


def column(group: str, heading: str) -> Column:
    return Column(group, heading, ["1"])


def plain_table(n: int) -> Table:
    return Table(tuple(column("", f"{i}") for i in range(n)))


def test_a_wide_table_stands_in_parts_that_each_name_the_rows() -> None:
    groups = [("x", 4), ("y", 4), ("z", 3), ("", 2)]
    columns = [column("", "row"), *(column(group, f"{group}{i}") for group, n in groups for i in range(n))]
    found = [[one.heading for one in table.columns] for table in parts(Table(tuple(columns)), 438)]
    assert found == [["row", "x0", "x1", "x2", "x3", "y0", "y1", "y2", "y3"], ["row", "z0", "z1", "z2", "0", "1"]]
    assert [len(table.columns) for table in parts(plain_table(12), 300)] == [7, 6], "as even as may be"
    assert [len(table.columns) for table in parts(plain_table(10))] == [10]
    alone = Table((column("", "row"), *(column("g", letter * 40) for letter in "abc")))
    assert [len(table.columns) for table in parts(alone, 600)] == [2, 2, 2], "a group that is too wide is no whole"
    assert [len(table.columns) for table in parts(alone, 20)] == [2, 2, 2], "nor are the names of the rows"


def test_numbers_stay_on_one_line_and_words_do_not() -> None:
    texts = ["62.7 ± 0.4", "1 (2)", "+0.07 [−0.03, +0.05] ✗", "h=1 (here 2)", "2 (1 diverged)", "a b"]
    lines = markdown(Page("", (table_of([texts, texts]),))).split("\n")[4:]
    assert [NO_BREAK in line for line in lines if line] == [True, True, True, False, True, False]
    assert html((table_of([texts, texts]),)).count(NO_BREAK) == 2 * (2 + 1 + 3 + 2)


def test_columns_of_unlike_length_are_no_table() -> None:
    with pytest.raises(ValueError, match=r"expected columns of one length, got \[1, 2\]"):
        Table((Column("", "a", ["1"]), Column("", "b", ["1", "2"])))


def test_what_is_empty_is_left_out() -> None:
    assert of_page.blocks(Text(""), Listing(()), [Text("a"), Text(("",))], Heading("b")) == (Text("a"), Heading("b"))
    assert of_page.joined(["a", "", ("b", Strong("c"))], "; ") == ("a", "; ", "b", Strong("c"))


def test_one_is_one_and_none_are_many() -> None:
    assert [several(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
