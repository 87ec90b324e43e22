"""A page as LaTeX: every letter that pages use is set, and what is set fits the text of an article."""

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from repro.render.latex import latex, pieces, tex_line, tex_text
from repro.render.page import Column, Formula, Heading, Page, Table, Text

PUBLISHED = sorted((Path(__file__).parents[2] / "results").glob("*/*.tex"))
WIDE = Table(
    (
        Column("", "row", ["base", "(C) d_model=1024 (here 128)"]),
        *(Column(group, name, ["2.90 ± 0.07", ""]) for group in ("PPL", "BLEU", "F1") for name in ("ours", "paper")),
        Column("", "verdict", ["sign as printed, which is said in more words than fit", ""], is_words=True),
    )
)
LONG = Table(
    (Column("", "row", [f"h={i}" for i in range(120)]), Column("", "BLEU", ["53.5"] * 120)), frozenset({1, 60})
)
GROUPS = Table(  # headings wider than their columns, and a group wider than a line
    (
        WIDE.columns[0],
        *(Column(f"F1 of a kind of sentences {i}", "all", ["1", "2"]) for i in range(4)),
        *(Column("BLEU (dev)", f"{i}", ["53.5 ± 1.1"] * 2) for i in range(8)),
    )
)


def test_each_letter_that_has_another_spelling_is_set() -> None:
    for letter in "±−–—─×·…√Δε✓✗“”’†":
        assert tex_text(letter).isascii()
        assert not tex_text(letter).startswith("U+"), letter
    assert tex_text("h=1 †") == r"h=1 \dag{}"
    assert tex_line((Formula("Δx"), Formula("log_k(n)"))) == r"$\Delta x$$\log_{k}(n)$"
    assert tex_line((Formula("P_drop"),)) == r"$P_{\mathrm{drop}}$"


def test_no_published_table_names_a_letter_by_its_number() -> None:
    assert PUBLISHED
    assert [file for file in PUBLISHED if re.search(r"U\+[0-9A-F]{4}", file.read_text("utf-8"))] == []


def test_a_wide_table_is_parts_that_each_name_the_rows() -> None:
    made = [*pieces(WIDE)]
    of_parts = [[column.group or column.heading for column in part.columns[1:]] for part in made]
    assert of_parts == [["PPL", "PPL", "BLEU", "BLEU"], ["F1", "F1", "verdict"]]
    assert [part.columns[0].heading for part in made] == ["row"] * len(made)
    assert [len(part.columns) for part in pieces(GROUPS)] == [3, 3, 5, 5], "a heading of one column may be the widest"
    narrow = Table(WIDE.columns[:3])
    assert [*pieces(narrow)] == [narrow]


def test_a_long_table_is_floats_of_about_as_many_rows_with_their_rules() -> None:
    made = [*pieces(LONG)]
    assert [len(piece.columns[0].texts) for piece in made] == [40, 40, 40]
    assert [text for piece in made for text in piece.columns[0].texts] == LONG.columns[0].texts
    assert [piece.ruled for piece in made] == [{1, 60}, {20}, frozenset()]


def test_each_float_has_a_caption_and_a_label_of_its_own() -> None:
    noted = replace(WIDE, note=("In all rows: ", Formula("d_k"), " 8"))
    page = Page("made", (Heading("Heads: 50 %", 1), Text("It shows more."), noted, Heading("Longer"), LONG))
    tex = latex(page, "laptop/table3_A")
    captions = [r"Heads: 50 \%. In all rows: $d_{k}$ 8", r"Heads: 50 \%. Continued.", r"Heads: 50 \%. Longer."]
    captions += [r"Heads: 50 \%. Longer. Continued."] * 2
    assert re.findall(r"\\caption\{(.*)\}", tex) == captions
    assert re.findall(r"\\label\{tab:laptop/table3_A(.*)\}", tex) == ["", *(f"-{i}" for i in range(2, 6))]
    assert "p{" in tex, "a cell of many words is broken"


@pytest.mark.parametrize("package", ["", "booktabs"])
def test_what_is_too_wide_or_too_long_is_set_whole(package: str, tmp_path: Path) -> None:
    (tmp_path / "table.tex").write_text(latex(Page("made", (Heading("It", 1), WIDE, LONG, GROUPS)), "it"), "utf-8")
    assert faults([tmp_path / "table.tex"], tmp_path, package) == []


@pytest.mark.parametrize("package", ["", "booktabs"])
def test_every_published_table_is_set_whole(package: str, tmp_path: Path) -> None:
    assert faults(PUBLISHED, tmp_path, package) == []


FAULT = re.compile(r"!|Overfull|Missing character|LaTeX Warning: (?:Float too large|Label .* multiply)")


def faults(files: Iterable[Path], folder: Path, package: str = "") -> list[str]:
    """Lines of the log, each with its file: errors, what is wider or taller than the page, letters and labels.

    Skips the test where LaTeX or the package is absent.
    """
    if not shutil.which("pdflatex"):
        pytest.skip("needs pdflatex, which is absent.")
    if package and subprocess.run(["kpsewhich", f"{package}.sty"], capture_output=True).returncode:
        pytest.skip(f"needs {package}.sty, which is absent.")
    told = (rf"\typeout{{=== {file.parent.name}/{file.name}}}\input{{{file.resolve()}}}\clearpage" for file in files)
    loaded = rf"\usepackage{{{package}}}" if package else ""
    lines = [rf"\documentclass{{article}}{loaded}\begin{{document}}Here.", *told, r"\end{document}"]
    (folder / "article.tex").write_text("\n".join(lines), "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "article.tex"]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = (folder / "article.log").read_text("latin-1").split("=== ")[1:]
    return [f"{part.split()[0]}: {line}" for part in log for line in part.split("\n") if FAULT.match(line)]
