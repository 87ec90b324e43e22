"""A page as LaTeX: every letter that pages use is set, and no tabular is wider than the text of an article."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from repro.render.escape import SPELT
from repro.render.latex import LINE, LONGEST, fitting, latex, tex_text
from repro.render.page import Column, Heading, Page, Table, Text

WIDE = Table(
    (
        Column("", "row", ["base", "(C) d_model=1024 (here 128)"]),
        *(Column(group, name, ["2.90 ± 0.07", ""]) for group in ("PPL", "BLEU", "F1") for name in ("ours", "paper")),
        Column("", "verdict", ["sign as printed, which is said in more words than fit", ""], is_words=True),
    )
)


def test_each_letter_that_has_another_spelling_is_set() -> None:
    for letter in (*SPELT, "†"):
        assert tex_text(letter).isascii()
        assert not tex_text(letter).startswith("U+"), letter
    assert tex_text("h=1 †") == r"h=1 \dag{}"


def test_no_published_table_names_a_letter_by_its_number() -> None:
    published = (Path(__file__).parents[2] / "results").rglob("*.tex")
    assert [file for file in published if re.search(r"U\+[0-9A-F]{4}", file.read_text("utf-8"))] == []


def test_a_wide_table_is_parts_that_each_name_the_rows() -> None:
    made = [*fitting(WIDE)]
    of_parts = [[column.group or column.heading for column in part.columns[1:]] for part in made]
    assert of_parts == [["PPL", "PPL", "BLEU", "BLEU"], ["F1", "F1"], ["verdict"]]
    assert [part.columns[0].heading for part in made] == ["row"] * len(made)
    narrow = Table(WIDE.columns[:3])
    assert [*fitting(narrow)] == [narrow]


def test_a_caption_is_ready_to_be_taken_out_of_its_comment() -> None:
    page = Page("made", (Heading("Table 3 (A) at scale laptop: 50 %", 1), Text("It shows more."), WIDE))
    assert r"% \caption{Table 3 (A) at scale laptop: 50 \%.}" in latex(page).split("\n")
    assert "p{" in latex(page), f"a cell of more than {LONGEST} letters is broken"


def test_no_line_is_overfull(tmp_path: Path) -> None:
    if not shutil.which("pdflatex"):
        pytest.skip("needs pdflatex, which is absent.")
    (tmp_path / "table.tex").write_text(latex(Page("made", (Heading("Wide", 1), WIDE))), "utf-8")
    article = (
        r"\documentclass{article}\begin{document}\begin{table}\centering\footnotesize"
        r"\setlength{\tabcolsep}{3pt}\input{table}\end{table}\end{document}"
    )
    (tmp_path / "article.tex").write_text(article, "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "article.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]
    assert b"Overfull" not in done.stdout, f"wider than {LINE} pt"
