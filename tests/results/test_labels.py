"""A row bears the paper's name and shows what it is here: both numbers wherever they differ, in every output."""

import csv
import io
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from paper_runs import PAPER_SETTINGS, changed, paper_run
from table_records import columns

from repro.model.config import BASE
from repro.pages import build, tables
from repro.pages.columns import HEADINGS, sheet
from repro.render.latex import latex
from repro.render.markup import markdown
from repro.render.text import NO_BREAK
from repro.results import frame as frames
from repro.results.frame import ResultSet, note_rows, noted_rows
from repro.results.labels import FIELDS, SYMBOLS, both, command_of, label, relation, system_label
from repro.results.record import Record, path
from repro.runs.table import Paper, Row, Table, Translation, listed, rows_of

ROOT = Path(__file__).parents[2]
HERE = replace(BASE, n_layers=3, dropout=0.2)  # half as deep, twice the dropout
TABLE = Table(
    name="table3_C",
    rows=[
        Row("N=2", lambda base: replace(base, n_layers=base.n_layers * 2 // 6), Paper(ppl=6.11, bleu=23.7, params=36)),
        Row("P_drop=0.2", lambda base: replace(base, dropout=2 * base.dropout), Paper(ppl=4.95, bleu=25.5)),
    ],
    title="",
)
N_HERE, N_PAPER = {"base": 540_000, "N=2": 310_000, "P_drop=0.2": 540_000}, {"N=2": 35_700_000}
ROWS = listed([TABLE], BASE)


def runs() -> list[Record]:
    """One seed of the base and of both rows."""
    return [
        paper_run(
            row.name, table, position=position, scale="laptop", hyper=vars(hyper).copy(),
            params={"here": N_HERE[row.name], "paper_size": N_PAPER.get(row.name, 65_110_016)},
            paper=row.paper.numbers, settings=PAPER_SETTINGS | {"claim": "signs"},
        )
        for table, position, row, hyper in rows_of([TABLE], HERE, [], Translation("en-de"))
    ]  # fmt: skip


@pytest.fixture
def result_set(tmp_path: Path) -> ResultSet:
    for record in runs():
        record.save(path(tmp_path, record))
    note_rows(tmp_path / "laptop", ROWS)
    return ResultSet.read(tmp_path / "laptop")


def grid(page: str, row: str) -> dict[str, str]:
    """What a page of Markdown says of a row, by heading, over all its grids."""
    said: dict[str, str] = {}
    head: list[str] = []
    for line in page.replace(NO_BREAK, " ").split("\n"):
        found = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if found and found[0] == "row":
            head = found
        elif found and found[0] == row:
            said |= dict(zip(head, found, strict=True))
    return said


# The label


def test_a_name_that_says_another_value_than_stands_here_is_followed_by_it() -> None:
    here = {"n_layers": 1, "d_ff": 32_768, "label_smoothing": 0.1, "dropout": 0.25, "n_heads": 4, "d_k": 2, "d_v": None}
    for row, shown in {
        "N=2": "N=2 (here 1)",
        "N=1": "N=1",
        "d_ff=4096": "d_ff=4096 (here 32,768)",
        "eps_ls=0.2": "eps_ls=0.2 (here 0.1)",
        "dropout=0.5": "dropout=0.5 (here 0.25)",  # by the name of the field, too
        "h=4, d_k=16": "h=4, d_k=16 (here 2)",
        "d_v=16": "d_v=16",  # without a run it is not known
        "width=3": "width=3",  # no setting of a row
        "N=2x": "N=2x",
    }.items():
        assert label(row, here) == shown


def test_every_field_can_be_named_by_its_symbol_and_by_itself() -> None:
    assert [*HEADINGS] == [*vars(BASE)], "of its column"
    assert {FIELDS[name] for name in SYMBOLS} == {*vars(BASE)}
    assert {FIELDS[symbol.replace("ε", "eps")] for symbol in SYMBOLS.values()} == {*vars(BASE)}


def test_a_value_and_that_at_the_papers_size() -> None:
    assert both(1, 2) == "1 (2)"
    assert both(128, 1024) == "128 (1,024)"
    assert both(8, 8) == "8"
    assert both(1, None) == "1", "not known"
    assert both(None, 2) == "", "not run"
    assert both(False, True, "learned_positions") == "sinusoidal (learned)"


# Every output


def test_every_output_shows_both_sizes_of_a_row_and_both_counts(result_set: ResultSet) -> None:
    page = build.build_scale(replace(result_set, own=True))[result_set.folder / "table3_C.md"]
    base, shallow, dropped = (grid(page, row) for row in ("base", "N=2 (here 1)", "P_drop=0.2 (here 0.4)"))
    p_drop = "P<sub>drop</sub>"
    assert [(row["N"], row[p_drop]) for row in (base, shallow, dropped)] == [
        ("3 (6)", "0.2 (0.1)"), ("1 (2)", ""), ("", "0.4 (0.2)"),
    ]  # fmt: skip
    sizes = ["parameters (M)<br>" + name for name in ("here", "at paper size", "paper")]
    assert [shallow[size] for size in sizes] == ["0.31", "35.7", "36"]
    assert [base[size] for size in sizes] == ["0.54", "65.1", "65"]
    frame = result_set.frame(["base", "table3_C", "table3_D"])
    whole = markdown(tables.page_of_table(frame, "laptop", "table3"))
    assert [grid(whole, "(C) N=2 (here 1)")[name] for name in ("N", *sizes[:2])] == ["1 (2)", "0.31", "35.7"]
    assert "Base row: N 3 (6), d<sub>model</sub> 512, " in whole
    frame = result_set.frame(["table3_C"])
    assert frame is not None
    tex = latex(tables.page_of_table(frame, "laptop", "table3_C"), "it")
    assert all(said in tex for said in ("N=2 (here 1)", "1 (2)", "at paper size"))
    line = list(csv.DictReader(io.StringIO(sheet(frame))))[1]
    assert (line["row"], line["n_layers"], line["n_layers/paper_size"]) == ("N=2", "1", "2")
    assert (line["d_model"], line["d_model/paper_size"]) == ("512", "512")
    assert (line["learned_positions"], line["learned_positions/paper_size"]) == ("False", "False")
    assert (line["params/here"], line["params/paper_size"], line["paper/params"]) == ("310000", "35700000", "36")
    shown = build.console(result_set, ["table3_C"])
    assert all(said in shown for said in ("N=2 (here 1)", "P_drop=0.2 (here 0.4)"))
    # at the paper's own size nothing is in brackets
    base, shallow, _ = runs()
    frame = frames.table([replace(base, hyper=changed()), replace(shallow, hyper=changed(n_layers=2))], rows=ROWS)
    shown = {column.heading: column.texts for column in columns(frame)}
    assert (shown["row"], shown["N"]) == (["base", "N=2", "P_drop=0.2"], ["6", "2", ""])


# The list of rows


def test_the_published_lists_say_what_the_experiments_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    lists = {file.parent.name: noted_rows(file.parent) for file in sorted(ROOT.glob("results/*/rows.json"))}
    tables = sorted({of for rows in lists.values() for of, _ in rows} - {"base"})
    found = [runpy.run_path(str(ROOT / "experiments" / f"{of}.py")) for of in tables]
    known = listed([Table(name=one["TABLE"], rows=one["ROWS"], title="") for one in found], BASE)
    for scale, rows in lists.items():
        of_tables = {of for of, _ in rows}
        now = {key: row for key, row in known.items() if key[0] in of_tables}
        assert {key: row[:3] for key, row in rows.items()} == {key: row[:3] for key, row in now.items()}, scale


def test_a_relation_a_system_and_a_command_in_a_line() -> None:
    wide = replace(BASE, d_model=1024, dropout=0.3, warms_up=False)
    assert relation(vars(BASE), vars(wide)) == "d_model 512 -> 1,024, P_drop 0.1 -> 0.3, rate rises yes -> no"
    assert relation(vars(BASE), vars(BASE)) == "nothing"
    shown = system_label("repro.model.transformer.Transformer(clip=2, mix=repro.model.ablations.scores.UnscaledDot)")
    assert shown == "Transformer(clip=2, mix=UnscaledDot)"
    assert (system_label("toy_system.Toy(scale=0.25)"), system_label(None)) == ("Toy(scale=0.25)", "")
    assert command_of("ladder", "laptop") == "python experiments/ladder.py --scale laptop"
    assert command_of("own", "laptop") == "repro.run", "no experiment file has these rows"
