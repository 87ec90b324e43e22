"""Table 2: the printed lines, the cost column worked out again, and our runs beside them."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper_runs import changed, paper_run, that_counts, told_apart

from repro.pages import build
from repro.pages.tables import columns_of_table_2
from repro.render.escape import NO_BREAK
from repro.render.page import plain
from repro.results.frame import Listed, ResultSet, note_rows, table
from repro.results.record import PaperNumbers, path
from repro.runs.table import printed

CORPUS = paper_run().corpus


def made(results: Path) -> dict[Path, str]:
    return build.texts(build.build_scale(ResultSet.read(results / "paper")))


def page(results: Path) -> list[list[str]]:
    """The cells of all lines but those that say what our rows are."""
    text = made(results)[results / "paper/table2.md"].replace(NO_BREAK, " ")
    before, _, after = text.partition("## What our rows are")
    text = before + after.partition("## As printed")[2]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.split("\n") if line.startswith("|")]
    whole: dict[str, list[str]] = {}
    for name, *cells in lines:  # a table of many columns stands in parts
        whole.setdefault(name, [name]).extend(cells)
    return list(whole.values())


def fill(results: Path) -> None:
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
    fill(tmp_path)
    lines = {line[0]: line[1:] for line in page(tmp_path)}
    #                                   BLEU             FLOPs en-de         FLOPs en-fr
    assert lines["GNMT + RL"] == ["24.6", "39.92", "2.3e19", "2.3e19", "1.4e20", "1.4e20"]
    assert lines["Deep-Att + PosUnk"] == ["", "39.2", "", "", "1.0e20", ""]
    assert lines["Transformer (big)"] == ["28.4", "41.8", "2.3e19", "2.3e19", "2.3e19", "2.3e19"]


def test_runs_that_diverged_are_counted_beside_the_others(tmp_path: Path) -> None:
    fill(tmp_path)
    nothing: Any = dict.fromkeys(paper_run().scores["dev"])
    lost = paper_run("base en-de", "table2", seed=4, hyper=changed(average=5), status="diverged")
    lost = replace(lost, scores={"dev": nothing, "test": nothing})
    lost.save(path(tmp_path, lost))
    lines = {line[0]: line[1:] for line in page(tmp_path)}
    assert lines["base en-de"][1] == "3 (1 diverged)"
    assert lines["base en-fr"][1] == "3"


def test_our_runs_stand_beside_the_printed_scores(tmp_path: Path) -> None:
    fill(tmp_path)
    lines = {line[0]: line[1:] for line in page(tmp_path)}
    assert lines["base"][:4] == ["1", "1.5 ± 0.0", "1.5 ± 0.0", ""], "27.3 is the averaged model's"
    assert lines["base en-de"][:4] == ["5", "1.5 ± 0.0", "1.5 ± 0.0", "27.3"]
    assert lines["base en-fr"][3] == "38.1"
    text = made(tmp_path)[tmp_path / "paper/table2.md"]
    assert "None: every run follows it." in text
    assert "In all rows: n 3" in text
    sheet = list(csv.DictReader(io.StringIO(made(tmp_path)[tmp_path / "paper/table2.csv"])))
    assert [row["row"] for row in sheet] == ["base", "base en-de", "base en-fr"]


def test_a_row_without_a_run_is_missing(tmp_path: Path) -> None:
    fill(tmp_path)
    big = PaperNumbers(ppl=None, bleu=41.8, params=None)
    note_rows(tmp_path / "paper", {("table2", "big en-fr"): Listed(3, big)})
    [line] = [line for line in page(tmp_path) if line[0] == "big en-fr"]
    assert (line[2], line[3], line[5]) == ("missing", "missing", "41.8")


def test_each_number_stands_under_its_heading() -> None:
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
