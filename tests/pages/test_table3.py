"""Table 3 on one page: every row of every experiment file, missing ones too."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from paper_runs import changed, paper_run, that_counts, told_apart
from table_records import columns

from repro.pages import build, tables
from repro.pages.columns import sheet, spreads
from repro.render.page import Column, Table, plain
from repro.results import frame as frames
from repro.results.frame import Listed, ResultSet, note_rows, noted_rows
from repro.results.record import PaperNumbers, path

NUMBERS = PaperNumbers(ppl=5.16, bleu=25.1, params=58.0)


def fill(results: Path) -> None:
    for seed in (1, 2, 3):
        for record in (
            paper_run(seed=seed),
            paper_run("d_k=16", "table3_B", seed=seed, position=0, paper=NUMBERS, hyper=changed(d_k=16)),
            paper_run("h=4", "table3_A", seed=seed, position=1, hyper=changed(n_heads=4, d_k=128, d_v=128)),
        ):
            record.save(path(results, record))


def made(results: Path) -> dict[Path, str]:
    return build.texts(build.build_scale(ResultSet.read(results / "paper")))


def test_rows_stand_in_the_papers_order_under_their_letters(tmp_path: Path) -> None:
    fill(tmp_path)
    page = made(tmp_path)[tmp_path / "paper/table3.md"]
    rows = [line.split("|")[1].strip() for line in page.split("\n") if line.startswith("|")]
    assert rows == ["row", ":" + "-" * 9, "base", "(A) h=4", "(B) d_k=16"]


def test_a_row_without_a_run_is_missing_and_not_forgotten(tmp_path: Path) -> None:
    fill(tmp_path)
    note_rows(
        tmp_path / "paper",
        {("table3_E", "learned positions"): Listed(0, PaperNumbers(ppl=4.92, bleu=25.7, params=None))},
    )
    files = made(tmp_path)
    [line] = (line for line in files[tmp_path / "paper/table3.md"].split("\n") if "learned positions |" in line)
    assert line.split("|")[1].strip() == "(E) learned positions"
    assert "missing" in line
    assert "4.92" in line
    lines = list(csv.DictReader(io.StringIO(files[tmp_path / "paper/table3.csv"])))
    assert [(row["row"], row["n"]) for row in lines][-1] == ("learned positions", "0")


def test_the_rows_of_a_table_are_noted_anew_and_others_stay(tmp_path: Path) -> None:
    a, b = ("table3_A", "h=1"), ("table3_B", "d_k=16")
    heads = Listed(0, NUMBERS, {"n_heads": 1, "d_k": 512, "d_v": 512})
    note_rows(tmp_path, {b: Listed(0, NUMBERS)})
    note_rows(tmp_path, {("table3_A", "a last one"): Listed(1, NUMBERS), a: heads})
    listed = json.loads((tmp_path / "rows.json").read_bytes())
    assert [(of, [row["row"] for row in rows]) for of, rows in listed.items()] == [
        ("table3_A", ["h=1", "a last one"]),
        ("table3_B", ["d_k=16"]),
    ]
    note_rows(tmp_path, {a: heads})
    assert noted_rows(tmp_path) == {a: heads, b: Listed(0, NUMBERS)}


def test_a_damaged_list_of_rows_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"table3_A": [{"row": "h=1"}]}')
    with pytest.raises(ValueError, match=r"rows\.json: expected tables and their rows, got KeyError"):
        noted_rows(tmp_path)


def test_names_are_text_on_the_page(tmp_path: Path) -> None:
    record = paper_run("a|b <c>", "table3_A", position=0, stamp={**paper_run().stamp, "dirty": True})
    for one in (record, that_counts(paper_run(seed=9))):  # with evidence a page is whole
        one.save(path(tmp_path, one))
    page = made(tmp_path)[tmp_path / "paper/table3.md"]
    assert "a|b" not in page
    assert r"- Run from uncommitted code, so left out: a\|b &lt;c&gt; (seed 1)." in page


def places(shown: list[Column], text: str) -> list[str]:
    """The headings over a text."""
    return [f"{column.group} {column.heading}".strip() for column in shown if text in map(plain, column.texts)]


PAPER = PaperNumbers(ppl=5.29, bleu=24.9, params=58.0)


def test_each_number_stands_under_its_heading() -> None:
    frame = frames.table([told_apart("h=1", "table3_A", position=0, paper=PAPER)])
    page = tables.page_of_table(frame, "paper", "table3")
    whole = [column for block in page.blocks if isinstance(block, Table) for column in block.columns]
    for shown in (columns(frame), whole):
        assert places(shown, "3.49") == ["PPL (dev) ours"]
        assert places(shown, "21.1") == ["BLEU (dev) ours"]
        assert places(shown, "5.29") == ["PPL (dev) paper"]
        assert places(shown, "24.9") == ["BLEU (dev) paper"]
        assert places(shown, "58") == ["parameters (M) paper"]
        assert places(shown, "51.50") == ["parameters (M) here"]
        assert places(shown, "52.6") == ["parameters (M) at paper size"]
        assert not places(shown, "22.2"), "as published is for the test set"
        assert not places(shown, "4.48"), "no perplexity of test is printed"
        assert places(shown, "33.3") == ["BLEU (test) sacreBLEU"]
        assert places(shown, "34.4") == ["BLEU (test) multi-bleu"]
        assert places(shown, "711") == ["seconds a run training"]
        assert places(shown, "722") == ["seconds a run decoding"]


def test_each_number_of_the_sheet_stands_under_its_name() -> None:
    [line] = csv.DictReader(io.StringIO(sheet(frames.table([told_apart("h=1", "table3_A", paper=PAPER)]))))
    expected = {
        "dev/nll": 1.25, "dev/ppl": 3.49034296, "dev/bleu": 21.1, "dev/bleu_published": 22.2,
        "test/nll": 1.5, "test/ppl": 4.48168907, "test/bleu": 33.3, "test/bleu_published": 34.4,
        "paper/ppl": 5.29, "paper/bleu": 24.9, "paper/params": 58.0,
        "params/here": 51_500_000, "params/paper_size": 52_600_000,
        "cost/train_seconds": 711, "cost/decode_seconds": 722, "cost/flops": 7.3e17, "cost/gpu_hours": 7.4,
    }  # fmt: skip
    assert {name: float(line[name]) for name in expected} == expected


def with_accuracy(seed: int, accuracy: float | None, **other: Any) -> Any:
    """A seed of h=1 with an accuracy; of test it is 0.25 less."""
    run = told_apart("h=1", "table3_A", seed=seed, paper=PAPER, **other)
    if accuracy is None:
        return run
    dev, test = ({**run.scores[split], "accuracy": accuracy - less} for split, less in (("dev", 0), ("test", 0.25)))  # type: ignore[literal-required]
    return told_apart("h=1", "table3_A", seed=seed, paper=PAPER, **other | {"scores": {"dev": dev, "test": test}})


def test_accuracy_is_a_column_of_the_sheet_where_records_have_it_and_of_no_page() -> None:
    before, after = (
        frames.table([with_accuracy(seed, accuracy) for seed, accuracy in enumerate(of, start=1)])
        for of in ((None, None, None), (0.5, 0.625, 0.75))
    )
    assert not [name for name in before if "accuracy" in name], "sheets of older records stay as they are"
    [line] = csv.DictReader(io.StringIO(sheet(after)))
    assert [line[f"{split}/accuracy{end}"] for split in ("dev", "test") for end in ("", "_min", "_max")] == [
        "0.625", "0.5", "0.75", "0.375", "0.25", "0.5",
    ]  # fmt: skip
    assert float(line["dev/accuracy_half_width"]) == pytest.approx(4.3027 * 0.125 / 3**0.5, rel=1e-4)
    assert columns(after) == columns(before)


def test_a_mean_accuracy_is_over_all_seeds_of_a_row_or_there_is_none() -> None:
    mixed = frames.table([with_accuracy(1, 0.5), with_accuracy(2, None), with_accuracy(3, 0.75)])
    [line] = csv.DictReader(io.StringIO(sheet(mixed)))
    assert (line["n"], line["dev/nll"]) == ("3", "1.25")
    assert [line[f"dev/accuracy{end}"] for end in ("", "_half_width", "_min", "_max")] == [""] * 4


def test_an_interval_that_would_reach_below_zero_is_not_shown() -> None:
    cells = {  # mean, half-width, lowest, highest of n runs
        "2.00 ± 0.50": (3, 2.0, 0.5, 1.8, 2.2),
        "184.51 [116.58, 312.36]": (3, 184.51, 275.23, 116.58, 312.36),
        "0.00 [0.00, 0.00]": (3, 0.001, 0.003, 0.0, 0.004),  # as it is written, it would not
        "0.60 [0.30, 0.90]": (3, 0.599, 0.601, 0.3, 0.9),
        "0.60 ± 0.60": (3, 0.601, 0.599, 0.3, 0.9),
        "3.00 [2.00, 4.00]": (2, 3.0, math.nan, 2.0, 4.0),
        "7.00": (1, 7.0, math.nan, 7.0, 7.0),
        "missing": (0, math.nan, math.nan, math.nan, math.nan),
    }
    names = ("n", "s", "s_half_width", "s_min", "s_max")
    frame = pd.DataFrame([*cells.values()], columns=names)
    assert spreads(frame, "s", 2) == [*cells]


def test_exploratory_runs_are_counted_and_noted(tmp_path: Path) -> None:
    rows = {"base": {"position": -1}, "h=4": {"table": "table3_A", "position": 0}}
    counting = [that_counts(paper_run(row, seed=seed, **of)) for row, of in rows.items() for seed in (9, 10, 11)]
    explored = [
        paper_run(row, seed=seed, **of) for row, of in rows.items() for seed in (1, 2) if (row, seed) != ("h=4", 2)
    ]
    for record in (*counting, *explored):
        record.save(path(tmp_path, record))
    page = made(tmp_path)[tmp_path / "paper/table3.md"]
    lines = page.partition("## What the rows are")[0].split("\n")
    cells = {of[1].strip(): of[2].strip() for of in (line.split("|") for line in lines) if len(of) > 5}
    assert (cells["base"], cells["(A) h=4 (here 8)"]) == ("5\u00a0(2\u00a0exploratory)", "4\u00a0(1\u00a0exploratory)")
    assert (
        "- Exploratory, in means and in no verdict: 3 of seeds below 9, whose runs were looked at when scales, "
        "claims and analysis were chosen: base (seed 1, 2), h=4 (seed 1)." in page
    )


def test_without_evidence_no_run_is_called_exploratory(tmp_path: Path) -> None:
    fill(tmp_path)
    assert "exploratory" not in made(tmp_path)[tmp_path / "paper/table3.md"]


def test_own_runs_are_never_called_exploratory(tmp_path: Path) -> None:
    for record in (that_counts(paper_run(seed=9)), paper_run(seed=1)):
        record.save(path(tmp_path / "own", record))
    own = ResultSet.read_own(tmp_path / "own/paper", tmp_path / "published")
    assert "exploratory" not in build.texts(build.build_scale(own))[tmp_path / "own/paper/table3.md"]
