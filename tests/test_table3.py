"""Table 3 on one page: every row of every experiment file, missing ones too."""

import csv
import io
from pathlib import Path

import pytest
from paper_runs import changed, paper_run

from repro import table3
from repro.record import PaperNumbers, path
from repro.tables import Listed, Shelf, note_rows, noted_rows

NUMBERS = PaperNumbers(ppl=5.16, bleu=25.1, params=58.0)


def fill(results: Path) -> None:
    for seed in (1, 2, 3):
        for record in (
            paper_run(seed=seed),
            paper_run("d_k=16", "table3_B", seed=seed, position=0, paper=NUMBERS, hyper=changed(d_k=16)),
            paper_run("h=4", "table3_A", seed=seed, position=1, hyper=changed(n_heads=4, d_k=128, d_v=128)),
        ):
            record.save(path(results, record))


def test_rows_stand_in_the_papers_order_under_their_letters(tmp_path: Path) -> None:
    fill(tmp_path)
    page = table3.build(Shelf.read(tmp_path / "paper"))[tmp_path / "paper/table3.md"]
    rows = [line.split("|")[1].strip() for line in page.split("\n") if line.startswith("|")]
    assert rows == ["row", ":" + "-" * 10, "base", "(A) (row 1)", "(A) h=4", "(B) d_k=16"] * 2
    assert "None: every run keeps to it." in page


def test_a_row_without_a_run_is_missing_and_not_forgotten(tmp_path: Path) -> None:
    fill(tmp_path)
    note_rows(
        tmp_path / "paper",
        {("table3_E", "learned positions"): Listed(0, PaperNumbers(ppl=4.92, bleu=25.7, params=None))},
    )
    files = table3.build(Shelf.read(tmp_path / "paper"))
    line, _ = (line for line in files[tmp_path / "paper/table3.md"].split("\n") if "learned positions |" in line)
    assert line.split("|")[1].strip() == "(E) learned positions"
    assert "missing" in line
    assert "4.92" in line
    lines = list(csv.DictReader(io.StringIO(files[tmp_path / "paper/table3.csv"])))
    assert [(row["row"], row["n"]) for row in lines][-1] == ("learned positions", "0")


def test_where_nothing_was_run_there_is_no_page(tmp_path: Path) -> None:
    assert table3.build(Shelf.read(tmp_path / "paper")) == {}
    record = paper_run()
    record.save(path(tmp_path, record))
    assert len(table3.build(Shelf.read(tmp_path / "paper"))) == 3, "the base row is one of its rows"


def test_the_rows_of_a_table_are_noted_anew_and_others_stay(tmp_path: Path) -> None:
    a, b = ("table3_A", "h=1"), ("table3_B", "d_k=16")
    heads = Listed(0, NUMBERS, {"n_heads": 1, "d_k": 512, "d_v": 512})
    note_rows(tmp_path, {a: heads, ("table3_A", "h=4"): Listed(1, NUMBERS)})
    note_rows(tmp_path, {b: Listed(0, NUMBERS)})
    note_rows(tmp_path, {a: heads})
    assert noted_rows(tmp_path) == {a: heads, b: Listed(0, NUMBERS)}


def test_a_damaged_list_of_rows_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"table3_A": [{"row": "h=1"}]}')
    with pytest.raises(ValueError, match=r"rows\.json: expected tables and their rows, got KeyError"):
        noted_rows(tmp_path)


def test_names_are_text_on_the_page(tmp_path: Path) -> None:
    record = paper_run("a|b <c>", "table3_A", position=0, stamp={**paper_run().stamp, "dirty": True})
    record.save(path(tmp_path, record))
    page = table3.build(Shelf.read(tmp_path / "paper"))[tmp_path / "paper/table3.md"]
    assert "a|b" not in page
    assert r"- Run from uncommitted code, so left out: a\|b &lt;c&gt; (seed 1)." in page
