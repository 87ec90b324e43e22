"""A view shows a table as the paper prints it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tracked_runs import describe

from repro.journal import Journal
from repro.tracking.mirror import sync
from repro.tracking.store import connect
from repro.tracking.views import View, decode_view, encode_view, install_view, view_path, view_state


def test_a_view_shows_a_table_as_the_paper_prints_it(new_store: Callable[[], str], tmp_path: Path) -> None:
    uri = new_store()
    for i, (table, row, seed, ppl, bleu) in enumerate(
        [
            ("base", "base", 1, 3.0, 60.0),
            ("table3_A", "h=1", 1, 4.004, 50.0),
            ("table3_A", "h=1", 2, 4.016, 51.5),
            ("table3_AB", "h=1", 1, 9.0, 9.0),
        ]
    ):
        folder = tmp_path / f"run{i}"
        paper = {"ppl": 4.92, "bleu": 25.8} if table == "base" else {"ppl": 5.29, "bleu": 24.9}
        describe(folder, folder.name, table=table, row=row, seed=seed, paper=paper, order=int(table != "base"))
        with Journal(folder / "journal.jsonl") as journal:
            journal.append("final", 0, dev_ppl=ppl, dev_bleu=bleu)
        sync(uri, folder)
    told: list[str] = []
    for _ in range(2):  # the second time changes nothing
        view = View(
            scale="smoke", table="table3_A", title="Table 3 (A): heads", note="One head loses 0.9 BLEU.",
            narrowed=(("corpus", "grammar"), ("pair", "en-de")),
        )  # fmt: skip
        path = install_view(uri, view, told.append)
    assert told == []
    client = connect(uri)
    experiment = client.get_experiment_by_name("Attention Is All You Need / smoke")
    assert path == (
        f"/#/experiments/{experiment.experiment_id}/runs?workflowType=machine_learning"
        "&viewStateShareKey=table3_A-grammar-en-de"
    )
    tag = experiment.tags["mlflow.sharedViewState.table3_A-grammar-en-de"]
    assert json.loads(tag)["name"] == "Table 3 (A): heads"
    state = decode_view(tag)
    assert state["searchFilter"] == (
        "tags.tables LIKE '% table3_A %' AND tags.corpus = 'grammar' AND tags.pair = 'en-de'"
    )
    assert state["groupBy"] == {
        "aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": "row"}],
    }  # fmt: skip
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`paper/row`", True)
    assert state["groupsExpanded"] == {"tag.row.base": False, "tag.row.h=1": False}
    assert [column for column in state["selectedColumns"] if "/" in column][:4] == [
        "metrics.`row/dev_ppl`", "metrics.`row/paper_ppl`", "metrics.`row/dev_bleu`", "metrics.`row/paper_bleu`",
    ]  # fmt: skip
    assert experiment.tags["mlflow.note.content"] == (
        f"[Table 3 (A): heads]({path[1:]})\n\n* [Table 3 (A): heads]({path[1:]}): One head loses 0.9 BLEU."
    )
    runs = client.search_runs([experiment.experiment_id], state["searchFilter"])
    shown = sorted((run.data.tags["row"], run.data.tags["seed"], numbers_of_the_row(run)) for run in runs)
    assert [(row, seed) for row, seed, _ in shown] == [("base", "1"), ("h=1", "1"), ("h=1", "2")]
    assert shown[0][2] == [("dev_bleu", 60.0), ("dev_ppl", 3.0), ("paper_bleu", 25.8), ("paper_ppl", 4.92)]
    assert shown[1][2] == [
        ("dev_bleu", 50.8), ("dev_bleu_sd", 1.06), ("dev_ppl", 4.01), ("paper_bleu", 24.9), ("paper_ppl", 5.29),
    ]  # fmt: skip
    assert shown[2][2] == []  # a number of one run of a group is shown as it is


def numbers_of_the_row(run: Any) -> list[tuple[str, float]]:
    return sorted((k.removeprefix("row/"), v) for k, v in run.data.metrics.items() if k.startswith("row/"))


def test_a_view_that_fails_costs_the_view_only(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.tracking.views.encode_view", lambda *_: 1 / 0)
    told: list[str] = []
    assert install_view(store, View(scale="smoke", table="table2", title="Table 2"), told.append) is None
    assert len(told) == 1
    assert "lacks the view of table2 (division by zero)" in told[0]


def test_a_view_without_runs_or_limits_is_the_plain_table() -> None:
    view = View(scale="smoke", table="table3_A", title="Table 3 (A)")
    assert view.key == "table3_A"
    assert view.filter == "tags.tables LIKE '% table3_A %'"
    assert view_path("7") == "/#/experiments/7/runs?workflowType=machine_learning"
    state = view_state("x", [])
    assert decode_view(encode_view("t", state, 5)) == state
    assert json.loads(encode_view("t", state, 5))["updatedAt"] == 5
