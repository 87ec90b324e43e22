"""The page of an experiment's table: every number under its heading, and whatever is missing named as missing."""

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from kept_sentences import ladder_run, parser
from paper_runs import changed, paper_run, that_counts, told_apart
from table_records import at_the_end, columns, own, run, save

from repro.pages import tables
from repro.pages.build import build_scale
from repro.pages.columns import operations_columns, sheet, spreads
from repro.pages.tables import columns_of_table_2
from repro.render.markup import markdown
from repro.render.page import plain
from repro.render.terminal import terminal
from repro.render.text import NO_BREAK
from repro.results import frame as frames
from repro.results.details import with_brackets
from repro.results.frame import Listed, ResultSet, note_rows, noted_rows, table
from repro.results.record import PaperNumbers, path
from repro.results.sentences import Brackets
from repro.runs.table import printed

# Table 3 on one page


NUMBERS = PaperNumbers(ppl=5.16, bleu=25.1, params=58.0)


def fill(results: Path) -> None:
    for seed in (1, 2, 3):
        for record in (
            paper_run(seed=seed),
            paper_run("d_k=16", "table3_B", seed=seed, position=0, paper=NUMBERS, hyper=changed(d_k=16)),
            paper_run("h=4", "table3_A", seed=seed, position=1, hyper=changed(n_heads=4, d_k=128, d_v=128)),
        ):
            record.save(path(results, record))


def made(results: Path, *, own: bool = False) -> dict[Path, str]:
    folder = results / "paper"
    return build_scale(ResultSet.read_own(folder, results / "nowhere") if own else ResultSet.read(folder))


def test_rows_stand_in_the_papers_order_under_their_letters(tmp_path: Path) -> None:
    fill(tmp_path)
    page = made(tmp_path)[tmp_path / "paper/table3.md"]
    rows = [line.split("|")[1].strip() for line in page.split("\n") if line.startswith("|")]
    assert rows == ["row", ":" + "-" * 9, "base", "(A) h=4", "(B) d_k=16"]
    mine = made(tmp_path, own=True)
    scores = [mine[tmp_path / f"paper/{name}.md"].partition("## What")[0] for name in ("table3", "table3_B")]
    assert ["Δ" in text for text in scores] == [False, True], "the paper's Table 3 has no differences"


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


def test_the_rows_of_a_table_are_noted_anew_others_stay_and_a_damaged_list_is_named(tmp_path: Path) -> None:
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
    (tmp_path / "rows.json").write_text('{"table3_A": [{"row": "h=1"}]}')
    with pytest.raises(ValueError, match=r"rows\.json: expected tables and their rows, got KeyError"):
        noted_rows(tmp_path)


PAPER = PaperNumbers(ppl=5.29, bleu=24.9, params=58.0)


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


def with_accuracies(*of: float | None) -> Any:
    """Seeds of h=1 with these accuracies on dev; of test they are 0.25 less."""
    runs = []
    for seed, accuracy in enumerate(of, start=1):
        scores: Any = told_apart("h=1", "table3_A").scores
        if accuracy is not None:
            less = {"dev": 0.0, "test": 0.25}
            scores = {split: {**scores[split], "accuracy": accuracy - less[split]} for split in less}
        runs.append(told_apart("h=1", "table3_A", seed=seed, paper=PAPER, scores=scores))
    return frames.table(runs)


def test_accuracy_is_a_column_of_the_sheet_where_all_seeds_have_it_and_of_no_page() -> None:
    before, after, mixed = map(with_accuracies, (None, 0.5, 0.5), (None, 0.625, None), (None, 0.75, 0.75))
    assert not [name for name in before if "accuracy" in name], "sheets of older records stay as they are"
    [line] = csv.DictReader(io.StringIO(sheet(after)))
    assert [line[f"{split}/accuracy{end}"] for split in ("dev", "test") for end in ("", "_min", "_max")] == [
        "0.625", "0.5", "0.75", "0.375", "0.25", "0.5",
    ]  # fmt: skip
    assert float(line["dev/accuracy_half_width"]) == pytest.approx(4.3027 * 0.125 / 3**0.5, rel=1e-4)
    assert columns(after) == columns(before)
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


def test_without_evidence_and_of_ones_own_no_run_is_called_exploratory(tmp_path: Path) -> None:
    fill(tmp_path)
    assert "exploratory" not in made(tmp_path)[tmp_path / "paper/table3.md"]
    mine = paper_run(seed=9)
    that_counts(mine).save(path(tmp_path, mine))
    assert "exploratory" not in made(tmp_path, own=True)[tmp_path / "paper/table3.md"]


# Table 2


CORPUS = paper_run().corpus


def lines_of_table_2(results: Path) -> list[list[str]]:
    """The cells of all lines but those that say what our rows are."""
    text = made(results)[results / "paper/table2.md"].replace(NO_BREAK, " ")
    before, _, after = text.partition("## What our rows are")
    text = before + after.partition("## As printed")[2]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("|")]
    whole: dict[str, list[str]] = {}
    for name, *cells in lines:  # a table of many columns stands in parts
        whole.setdefault(name, [name]).extend(cells)
    return list(whole.values())


def fill_table_2(results: Path) -> None:
    """Runs that settle something, for without them a page is short."""
    test: Any = paper_run().scores["test"] | {"bleu": 2.5, "bleu_published": 2.5}
    for seed in (9, 10, 11):
        french = {"pair": "en-fr", "corpus": CORPUS | {"n_train": 36_000_000}}
        for record in (
            paper_run(seed=seed),
            paper_run(
                "base en-de", "table2", seed=seed, position=0, hyper=changed(average=5),
                paper=printed("Transformer (base model)", "en-de").numbers,
            ),
            paper_run(
                "base en-fr", "table2", seed=seed, position=2, hyper=changed(average=5), **french,
                tokenizer={"sha256": "cd", "size": 32_000}, paper=printed("Transformer (base model)", "en-fr").numbers,
                scores=paper_run().scores | {"test": test},
            ),
        ):  # fmt: skip
            counting = that_counts(record)
            counting.save(path(results, counting))


def test_what_is_printed_comes_from_the_table_of_systems() -> None:
    assert printed("Transformer (big)", "en-de").numbers == {"ppl": None, "bleu": 28.4, "params": None}
    assert printed("Transformer (big)", "en-fr").numbers == {"ppl": None, "bleu": 41.8, "params": None}


def test_the_cost_column_is_worked_out_again(tmp_path: Path) -> None:
    fill_table_2(tmp_path)
    lines = {line[0]: line[1:] for line in lines_of_table_2(tmp_path)}
    #                                   BLEU             FLOPs en-de         FLOPs en-fr
    assert lines["GNMT + RL"] == ["24.6", "39.92", "2.3e19", "2.3e19", "1.4e20", "1.4e20"]
    assert lines["Deep-Att + PosUnk"] == ["", "39.2", "", "", "1.0e20", ""]
    assert lines["Transformer (big)"] == ["28.4", "41.8", "2.3e19", "2.3e19", "2.3e19", "2.3e19"]


def test_our_runs_stand_beside_the_printed_scores_missing_and_diverged_ones_named(tmp_path: Path) -> None:
    fill_table_2(tmp_path)
    text = made(tmp_path)[tmp_path / "paper/table2.md"]
    assert "None: every run follows it." in text
    assert "In all rows: n 3" in text
    sheet = list(csv.DictReader(io.StringIO(made(tmp_path)[tmp_path / "paper/table2.csv"])))
    assert [row["row"] for row in sheet] == ["base", "base en-de", "base en-fr"]
    nothing: Any = dict.fromkeys(paper_run().scores["dev"])
    lost = paper_run("base en-de", "table2", seed=4, hyper=changed(average=5), status="diverged")
    lost = replace(lost, scores={"dev": nothing, "test": nothing})
    lost.save(path(tmp_path, lost))
    note_rows(tmp_path / "paper", {("table2", "big en-fr"): Listed(3, PaperNumbers(ppl=None, bleu=41.8, params=None))})
    lines = {line[0]: line[1:] for line in lines_of_table_2(tmp_path)}
    #                           averaged, n, sacreBLEU, multi-bleu, paper
    assert lines["base"][:5] == ["1", "3", "1.5 ± 0.0", "1.5 ± 0.0", ""], "27.3 is the averaged model's"
    assert lines["base en-de"][:5] == ["5", "3 (1 diverged)", "1.5 ± 0.0", "1.5 ± 0.0", "27.3"]
    assert (lines["base en-fr"][1], lines["base en-fr"][4]) == ("3", "38.1")
    assert (lines["big en-fr"][1], lines["big en-fr"][2], lines["big en-fr"][4]) == ("missing", "missing", "41.8")


def test_each_number_of_table_2_stands_under_its_heading() -> None:
    printed_there = PaperNumbers(ppl=None, bleu=28.4, params=None)
    shown = columns_of_table_2(table([told_apart("big en-de", "table2", position=0, paper=printed_there)]))
    places = {text: f"{column.group} {column.heading}" for column in shown for text in map(plain, column.texts)}
    assert {text: places.get(text) for text in ("33.3", "34.4", "28.4", "7.3e17", "711", "7.4", "21.1", "22.2")} == {
        "33.3": "BLEU (test) sacreBLEU",
        "34.4": "BLEU (test) multi-bleu",
        "28.4": "BLEU (test) paper",
        "7.3e17": "training FLOPs",
        "711": "training seconds",
        "7.4": "training GPU hours",
        "21.1": None,  # of dev: Table 2 is about the test set
        "22.2": None,
    }


# Tables of systems


def made_of_own(results: Path) -> dict[Path, str]:
    """One's own pages, which are whole whatever their runs settle."""
    return build_scale(ResultSet.read_own(results / "lab", results / "nowhere"))


def test_a_table_of_systems_shows_operations_and_parts(tmp_path: Path) -> None:
    ladder_run("Other", 2, tmp_path, places=False)
    assert "## By length" not in made_of_own(tmp_path)[tmp_path / "lab" / "ladder.md"], "no run has counts"
    for seed in (1, 3):
        ladder_run("One", seed, tmp_path)
    written = made_of_own(tmp_path)
    page, sheet = (written[tmp_path / "lab" / f"ladder.{kind}"] for kind in ("md", "csv"))
    assert page.index("(dev)<br>length") < page.index("## What the rows are") < page.index("## By length")
    heads = [line.strip("|").split("|")[1:] for line in page.split("\n") if "shortest" in line or "kept (%)" in line]
    assert [word.strip().rpartition("<br>")[2] for head in heads for word in head] == [
        "shortest", "middle", "longest", "first", "second", "last", "kept (%)",
    ]  # fmt: skip
    twice = paper_run("One", "ladder", cost=paper_run().cost | {"flops": 2 * paper_run().cost["flops"]})
    shown = [column.texts for column in operations_columns(table([twice], base=[paper_run()]))]
    assert (shown[0][0] in page, shown[1]) == (True, ["100", "200"])
    assert "dev/bleu/longest" in sheet.partition("\n")[0]
    assert "Runs differ in deciding code" not in page


# Table 4: printed numbers stand only beside runs on the paper's text


PARSERS = ("WSJ only", "semi-supervised")


def brackets(right: int) -> Brackets:
    """Of six sentences, all gold brackets found but in the longest, of which so many."""
    sizes = np.array([1, 2, 3, 5, 7, 11])
    return Brackets(sizes, sizes, sizes, np.array([1, 2, 3, 5, 7, right]), {})


def parsed(
    results: Path, *, n_seeds: int, rows: tuple[str, ...] = PARSERS, name: str = "table4", corpus: str = "grammar_trees"
) -> Any:
    records = [
        parser(results, row, seed, dict.fromkeys(("dev", "test"), of), table=name, corpus=corpus, position=i)
        for i, row in enumerate(rows)
        for seed in range(4, 4 + n_seeds)
        for of in [brackets(seed + 2 * i)]
    ]
    return with_brackets(table(records), records, results)


def page_of_parsers(frame: Any, *, name: str = "table4") -> str:
    return markdown(tables.page_of_table(frame, "laptop", name))


def test_what_is_printed_stands_beside_runs_on_the_papers_text_alone(tmp_path: Path) -> None:
    for corpora, is_papers in ((("wsj",), True), (("wsj", "wsj_silver"), True), (("craft",), False)):
        frame = parsed(tmp_path, n_seeds=1, corpus=corpora[0])
        frame.attrs["corpora"] = list(corpora)
        runs = page_of_parsers(frame).split("## Our runs")[1].split("\n## ")[0]
        assert ("91.3" in runs) == is_papers, corpora
        shown = " ".join(terminal(tables.at_the_end(frame, "table4")).split())
        assert ("91.3" in shown, "no number here can be compared" in shown) == (is_papers, not is_papers)


def test_a_grid_of_rates_has_no_printed_parsers_and_says_where_numbers_are_explained(tmp_path: Path) -> None:
    for name, is_whole in (("table4", True), ("table4_grid", False)):
        text = page_of_parsers(parsed(tmp_path, n_seeds=1, name=name), name=name)
        assert ("## As printed" in text) == is_whole
        assert "](../../docs/parsing.md#the-page)" in text


# Below the closing table: how far its numbers lie apart by chance


@pytest.mark.parametrize(
    ("seeds", "published", "told"),
    [
        (2, {"base": (60.0, 62.0, 64.4), "h=1": (50.0, 51.0, 56.3)}, "4.4 to 6.3 BLEU by chance; --seeds 9-13 narrows"),
        (2, {"base": (60.0, 62.0, 64.4), "h=1": (50.0, 51.0, 54.4)}, "about 4.4 BLEU by chance; --seeds 9-13"),
        (3, {"base": (60.0, 62.0, 64.4), "h=1": (50.0, 51.0, 56.3)}, None),
        (1, {"base": (60.0,), "h=1": (50.0,)}, None),
        (1, {}, None),
    ],
)
def test_the_published_spread_stands_below_fewer_than_three_runs(
    tmp_path: Path, seeds: int, published: dict[str, tuple[float, ...]], told: str | None
) -> None:
    mine = save(tmp_path / "own", [run(row, seed) for row in ("base", "h=1") for seed in range(1, seeds + 1)])
    found = [run(row, seed, bleu=bleu) for row, of in published.items() for seed, bleu in enumerate(of, start=4)]
    text = " ".join(at_the_end(own(mine, save(tmp_path / "there", found)).frame(["table3_A"])).split())
    assert f"Single runs of these rows differ by {told}" in text if told else "by chance" not in text
