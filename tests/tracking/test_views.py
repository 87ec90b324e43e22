"""A view shows a table as the paper prints it."""

import base64
import json
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tracked_runs import describe

from repro.storage.journal import Journal, encoded
from repro.tracking.client import connect
from repro.tracking.mirror import sync
from repro.tracking.views import ABOUT_NUMBERS, View, encode_view, save_views, view_of, view_path, view_state


def decode_view(text: str) -> dict[str, Any]:
    """The state of the page in a view, as MLflow reads it."""
    packed = json.loads(text)["state"].removeprefix("deflate;")
    state: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return state


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
    narrowed = (("corpus", "grammar"), ("pair", "en-de"))
    for _ in range(2):  # the second time changes nothing
        save_views(uri, [View(scale="smoke", table="table3_A", title="Table 3 (A): heads", narrowed=narrowed)])
    experiment = smoke(uri)
    path = view_path(experiment.experiment_id, "table3_A-grammar-en-de")
    assert path == (
        f"/#/experiments/{experiment.experiment_id}/runs?workflowType=machine_learning"
        "&viewStateShareKey=table3_A-grammar-en-de"
    )
    tag = experiment.tags["mlflow.sharedViewState.table3_A-grammar-en-de"]
    name = "Table 3 (A): heads (grammar, en-de)"
    assert json.loads(tag)["name"] == name
    state = decode_view(tag)
    assert state["searchFilter"] == (
        "tags.tables LIKE '% table3_A %' AND tags.current = 'true' AND tags.published = 'false'"
        " AND tags.corpus = 'grammar' AND tags.pair = 'en-de'"
    )
    assert state["groupBy"] == {
        "aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": "row"}],
    }  # fmt: skip
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`paper/row`", True)
    assert state["groupsExpanded"] == {"tag.row.base": True, "tag.row.h=1": True}
    charts = decode_view(experiment.tags["mlflow.sharedViewState.charts-table3_A-grammar-en-de"])
    assert charts["searchFilter"] == state["searchFilter"]
    assert [(one["type"], one["metricKey"], one.get("scaleType")) for one in charts["compareRunCharts"]] == [
        ("BAR", "final/dev_bleu", None), ("LINE", "dev/nll", "log"), ("LINE", "train/nll", "log"),
    ]  # fmt: skip
    assert {one["metricSectionId"] for one in charts["compareRunCharts"]} == {charts["compareRunSections"][0]["uuid"]}
    assert [column.split("`")[1] for column in state["selectedColumns"] if column.startswith("metrics")] == [
        "row_mean/ppl", "row_mean/ppl_diff", "paper_ppl", "row_mean/bleu", "row_mean/bleu_ci", "row_mean/bleu_diff",
        "paper_bleu", "row_mean/ppl_ci", "paper_ppl_diff", "paper_bleu_diff", "final/dev_ppl", "final/dev_bleu",
    ]  # fmt: skip
    drawn = view_path(experiment.experiment_id, "table3_A-grammar-en-de", charts=True)
    assert drawn.endswith("&viewStateShareKey=charts-table3_A-grammar-en-de&compareRunsMode=CHART")
    both = f"[{name}]({path[1:]}) ([charts]({drawn[1:]}))"
    assert experiment.tags["mlflow.note.content"] == f"{both}\n\n{ABOUT_NUMBERS}"
    runs = found(uri, state["searchFilter"])
    shown = sorted((run.data.tags["row"], run.data.tags["seed"], numbers_of_the_row(run)) for run in runs)
    assert [(row, seed) for row, seed, _ in shown] == [("base", "1"), ("h=1", "1"), ("h=1", "2")]
    assert shown[0][2] == [
        ("paper_bleu", 25.8), ("paper_ppl", 4.92), ("row_mean/bleu", 60.0), ("row_mean/ppl", 3.0),
    ]  # fmt: skip
    assert shown[1][2] == [
        ("paper_bleu", 24.9), ("paper_bleu_diff", -0.9), ("paper_ppl", 5.29), ("paper_ppl_diff", 0.37),
        ("row_mean/bleu", 50.75), ("row_mean/bleu_diff", -10.0), ("row_mean/ppl", 4.01), ("row_mean/ppl_diff", 1.0),
    ]  # fmt: skip
    assert shown[2][2] == []  # a number of one run of a group is shown as it is


def numbers_of_the_row(run: Any) -> list[tuple[str, float]]:
    return sorted(one for one in run.data.metrics.items() if "/" not in one[0] or one[0].startswith("row_mean/"))


def smoke(uri: str) -> Any:
    """The experiment of this scale in MLflow."""
    return connect(uri).get_experiment_by_name("Attention Is All You Need / smoke")


def found(uri: str, query: str = "") -> list[Any]:
    """The runs of this scale."""
    return list(connect(uri).search_runs([smoke(uri).experiment_id], query))


def test_a_view_of_trees_has_f1_and_no_bleu(new_store: Callable[[], str], tmp_path: Path) -> None:
    uri = new_store()
    for seed, dev, test in ((1, 80.03, 79.0), (2, 82.0, 79.1), (3, 81.03, 79.2)):
        folder = tmp_path / f"run{seed}"
        describe(folder, folder.name, table="table4", row="WSJ only", seed=seed, paper={"f1": 91.3}, order=1)
        with Journal(folder / "journal.jsonl") as journal:
            journal.append("final", 0, dev_ppl=1.5, dev_f1=dev, test_f1=test)
        sync(uri, folder)
    save_views(uri, [View(scale="smoke", table="table4", title="Table 4")])
    columns = decode_view(smoke(uri).tags["mlflow.sharedViewState.table4"])["selectedColumns"]
    assert [column.split("`")[1] for column in columns if column.startswith("metrics")] == [
        "row_mean/ppl", "paper_ppl", "row_mean/f1", "row_mean/f1_ci", "row_mean/test_f1", "row_mean/test_f1_ci",
        "paper_f1", "row_mean/ppl_ci", "final/dev_ppl", "final/dev_f1",
    ]  # fmt: skip
    runs = found(uri, "tags.seed != '3'")
    assert sorted(one for run in runs for one in numbers_of_the_row(run)) == [
        ("paper_f1", 91.3), ("row_mean/f1", 81.02), ("row_mean/f1_ci", 2.45), ("row_mean/ppl", 1.5),
        ("row_mean/ppl_ci", 0.0), ("row_mean/test_f1", 79.1), ("row_mean/test_f1_ci", 0.25),
    ]  # fmt: skip


def test_a_view_names_systems_where_some_are_not_the_transformer() -> None:
    plain, own = view_state("all", ["base"]), view_state("all", ["base"], systems=True)
    assert own["columnOrder"] == own["selectedColumns"] == [*plain["selectedColumns"], "tags.`system`"]
    assert own["columnWidths"].keys() == {*own["selectedColumns"]}
    assert "tags.`system`" not in plain["columnWidths"]


def test_a_view_without_runs_or_limits_is_the_plain_table() -> None:
    view = View(scale="smoke", table="table3_A", title="Table 3 (A)")
    assert view.key == "table3_A"
    assert view.filter == "tags.tables LIKE '% table3_A %' AND tags.current = 'true' AND tags.published = 'false'"
    assert view_path("7") == "/#/experiments/7/runs?workflowType=machine_learning"
    state = view_state("x", [])
    assert decode_view(encode_view("t", state, 5)) == state
    assert json.loads(encode_view("t", state, 5))["updatedAt"] == 5


def made(uri: str, folder: Path, ppl: float, began: float, *, finished: bool = True, **tags: Any) -> None:
    """A run in MLflow that began at some second and came to some perplexity."""
    describe(folder, folder.name, **tags)
    line = {"kind": "final", "step": 0, "time": began, "attempt": 1, "dev_ppl": ppl, "dev_bleu": 10 * ppl}
    (folder / "journal.jsonl").write_bytes(encoded(line))
    if finished:
        (folder / "record.json").write_text('{"status": "finished"}')
    sync(uri, folder)


OURS = {"text": "0123abcd", "devices": 1, "precision": "fp32", "threads": 1, "code": "c0de", "title": "Table 3 (A)"}


def shown(uri: str, **tags: Any) -> dict[str, float]:
    """What the view of these tags shows: the perplexity by row and seed; each of them once."""
    view = view_of({"scale": "smoke", "corpus": "grammar", "pair": "en-de"} | OURS | tags, "table3_A", "Table 3 (A)")
    save_views(uri, [view])
    runs = found(uri, view.filter)
    values = {f"{run.data.tags['row']} {run.data.tags['seed']}": run.data.metrics["final/dev_ppl"] for run in runs}
    assert len(values) == len(runs)
    for row in {run.data.tags["row"] for run in runs}:
        of_row = [run.data.metrics for run in runs if run.data.tags["row"] == row]
        mean = round(sum(one["final/dev_ppl"] for one in of_row) / len(of_row), 2)
        assert {one["row_mean/ppl"] for one in of_row if "row_mean/ppl" in one} == {mean}, "of these runs and no other"
    return values


def test_one_finished_execution_of_each_seed_counts_the_newest(new_store: Callable[[], str], tmp_path: Path) -> None:
    """MLflow's page averages all that a view shows: executions of one seed looked like seeds."""
    uri = new_store()
    made(uri, tmp_path / "old", 4.0, 100, **OURS)
    made(uri, tmp_path / "new", 5.0, 200, **OURS)
    made(uri, tmp_path / "other", 7.0, 150, seed=2, **OURS)
    made(uri, tmp_path / "stopped", 9.0, 300, finished=False, **OURS)
    assert shown(uri) == {"h=1 1": 5.0, "h=1 2": 7.0}
    made(uri, tmp_path / "stopped", 9.0, 300, **OURS)  # it went on and finished
    assert shown(uri) == {"h=1 1": 9.0, "h=1 2": 7.0}
    sync(uri, tmp_path / "old")  # whatever is synced again
    assert shown(uri) == {"h=1 1": 9.0, "h=1 2": 7.0}
    begun = {"finished": False, **OURS, "row": "h=4"}
    made(uri, tmp_path / "first", 2.0, 400, **begun)
    made(uri, tmp_path / "second", 3.0, 500, **begun)
    assert shown(uri) == {"h=1 1": 9.0, "h=1 2": 7.0, "h=4 1": 3.0}
    made(uri, tmp_path / "newer", 8.0, 600, seed=2, **OURS | {"code": "newer"})  # of older code no seed counts
    assert shown(uri) == {"h=1 2": 8.0, "h=4 1": 3.0}


def test_runs_that_are_not_repetitions_never_share_a_view(new_store: Callable[[], str], tmp_path: Path) -> None:
    """Two texts under one name were two seeds, and so were two precisions and two numbers of threads."""
    uri = new_store()
    made(uri, tmp_path / "one", 4.0, 100, **OURS)
    others = {"text": 5.0, "devices": 6.0, "precision": 7.0, "threads": 8.0, "corpus": 9.0, "pair": 10.0}
    for tag, ppl in others.items():
        made(uri, tmp_path / tag, ppl, 200, seed=2, **OURS | {tag: "another"})
    assert shown(uri) == {"h=1 1": 4.0}
    assert {tag: shown(uri, **{tag: "another"}) for tag in others} == {tag: {"h=1 2": p} for tag, p in others.items()}


def test_the_number_of_a_row_stays_one_number(new_store: Callable[[], str], tmp_path: Path) -> None:
    """A run that counts again, as the one that took its place was deleted, still has the row's old numbers."""
    uri = new_store()
    made(uri, tmp_path / "old", 4.0, 100, **OURS)
    made(uri, tmp_path / "two", 6.0, 200, seed=2, **OURS)
    shown(uri)
    made(uri, tmp_path / "new", 8.0, 300, **OURS)
    shown(uri)
    [newest] = found(uri, "tags.`repro.runs.run` = 'new'")
    connect(uri).delete_run(newest.info.run_id)
    sync(uri, tmp_path / "old")
    assert shown(uri) == {"h=1 1": 4.0, "h=1 2": 6.0}
    metrics = [run.data.metrics for run in found(uri, "tags.current = 'true'")]
    assert {one["row_mean/ppl"] for one in metrics if "row_mean/ppl" in one} == {5.0}


def test_differences_are_over_common_seeds_and_go_with_them(new_store: Callable[[], str], tmp_path: Path) -> None:
    uri, base = new_store(), OURS | {"table": "base", "row": "base"}
    made(uri, tmp_path / "b1", 4.0, 100, **base)
    made(uri, tmp_path / "r1", 5.0, 200, **OURS)
    shown(uri)

    def of_row() -> dict[str, float]:
        [one] = found(uri, "tags.`repro.runs.run` = 'r1'")
        return dict(one.data.metrics)

    assert of_row()["row_mean/ppl_diff"] == 1.0
    made(uri, tmp_path / "b2", 40.0, 300, seed=2, **base)  # one more seed of the base
    shown(uri)
    assert of_row()["row_mean/ppl_diff"] == 1.0
    assert (of_row()["final/dev_ppl"], "ppl" in of_row()) == (5.0, False)  # a run shows its own
    [first] = found(uri, "tags.`repro.runs.run` = 'b1'")
    connect(uri).delete_run(first.info.run_id)
    shown(uri)
    assert math.isnan(of_row()["row_mean/ppl_diff"])  # no seed is left that both have
    assert of_row()["row_mean/ppl"] == 5.0
