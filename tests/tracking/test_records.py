"""Published records are runs of MLflow beside one's own, and never among them."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paper_runs import paper_run
from tracked_runs import describe, stored

from repro.cli.commands import main
from repro.results.artifacts import FurtherTest, write_further
from repro.results.record import path
from repro.tracking.client import connect, experiment_name
from repro.tracking.mirror import sync
from repro.tracking.records import PublishedRuns, points_of
from repro.tracking.views import PUBLISHED_TAG

CURVES = {"train": {"step": [5, 10], "nll": [4.5, 3.25]}, "dev": {"step": [10], "nll": [3.5]}}
NOON = 1_798_804_800_000  # 2027-01-01 12:00 UTC in milliseconds


def published(results: Path, row: str = "h=1", seed: int = 1, table: str = "table3_A", **other: Any) -> Path:
    stamp = paper_run().stamp | {"started": "2027-01-01T12:00:00+00:00"}
    run = f"{sum(map(ord, row)) + seed:016x}"
    fields: dict[str, Any] = {"run": run, "seed": seed, "stamp": stamp, "curves": CURVES, "scale": "laptop"} | other
    record = paper_run(row, table, **fields)
    record.save(place := path(results, record))
    return place


def runs(uri: str) -> list[Any]:
    client = connect(uri)
    return list(client.search_runs([client.get_experiment_by_name(experiment_name("laptop")).experiment_id]))


def show_record(uri: str, file: Path) -> None:
    shown = PublishedRuns(uri, "laptop")
    shown.bring(file)
    shown.settle()


def test_a_record_is_a_run_once_whatever_was_sent_of_it_and_comes_after_it(
    new_store: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, file = new_store(), published(tmp_path, position=3)
    monkeypatch.setattr(connect(uri), "log_batch", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        show_record(uri, file)
    monkeypatch.undo()
    assert [len(stored(uri, run.info.run_id)) for run in runs(uri)] == [0]
    for _ in range(2):
        show_record(uri, file)
    [run] = runs(uri)
    assert (run.info.status, run.info.start_time, run.info.end_time) == ("FINISHED", NOON, NOON + 2_000)
    assert run.info.run_name == "h=1, seed 1 (published)"
    tags = {name: run.data.tags[name] for name in ("table", "row", "seed", "corpus", "text", "threads", "published")}
    assert tags == {
        "table": "table3_A", "row": "h=1", "seed": "1", "corpus": "wmt14", "text": "ab", "threads": "1",
        "published": "true",
    }  # fmt: skip
    assert (run.data.params["beam"], run.data.params["n_layers"]) == ("4", "6")
    points = {
        ("train/nll", 5): 4.5, ("train/nll", 10): 3.25, ("dev/nll", 10): 3.5,
        ("paper/ppl", 0): 4.92, ("paper/bleu", 0): 25.8, ("paper/row", 0): 3.0,
        **{
            (f"final/{split}_{name}", 0): math.log(1.5) if name == "nll" else 1.5
            for split in ("dev", "test") for name in ("nll", "ppl", "bleu", "bleu_published")
        },
    }  # fmt: skip
    assert {(point.key, point.step): point.value for point in stored(uri, run.info.run_id)} == points
    scores: Any = {"nll": 1.0, "bleu": 30.5, "bleu_signature": "s", "bleu_published": None}
    write_further(file, f"{sum(map(ord, 'h=1')) + 1:016x}", {"x": FurtherTest("ef" * 32, scores, ["a"])})
    for _ in range(2):
        show_record(uri, file)
    [run] = runs(uri)
    found = [(point.key, point.step, point.value) for point in stored(uri, run.info.run_id)]
    further = [("further/x/bleu", 0, 30.5), ("further/x/nll", 0, 1.0)]
    assert sorted(found) == sorted([*((*at, value) for at, value in points.items()), *further]), "each once"


def test_of_a_long_curve_some_points_are_shown_and_the_last() -> None:
    steps = [*range(7, 7 * 101, 7)]
    curve: Any = {"step": steps, "nll": [1 / step for step in steps]}
    found = points_of(paper_run(curves={"train": curve, "dev": CURVES["dev"]}))
    shown = [(point.step, point.value) for point in found if point.key == "train/nll"]
    assert sorted(shown) == [(step, 1 / step) for step in steps[3::4]]


def test_a_record_that_is_published_anew_takes_the_place_of_the_old(
    new_store: Callable[[], str], tmp_path: Path
) -> None:
    uri = new_store()
    show_record(uri, published(tmp_path))
    later = paper_run().stamp | {"started": "2027-01-02T12:00:00+00:00"}
    show_record(uri, published(tmp_path, stamp=later))
    assert sorted((run.info.start_time - NOON, run.data.tags["current"]) for run in runs(uri)) == [
        (0, "false"), (86_400_000, "true"),
    ]  # fmt: skip


def test_the_command_shows_published_records_in_views_of_their_own(
    new_store: Callable[[], str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = new_store()
    for row, seed, table in (("base", 1, "base"), ("h=1", 1, "table3_A"), ("h=1", 2, "table3_A")):
        published(tmp_path / "results", row, seed, table)
    (tmp_path / "results" / "laptop" / "rows.json").write_bytes(b"{}")
    (tmp_path / "results" / "laptop" / "figures").mkdir()
    (tmp_path / "results" / "laptop" / "figures" / "attention.json").write_bytes(b"{}")
    alike = dict(scale="laptop", corpus="wmt14", text="ab", devices="unknown", precision="fp32", threads=1)
    describe(folder, folder.name, **alike, code="ef")
    sync(uri, folder)
    assert main(["tracking", "sync", "--tracking-uri", uri, "--results", str(tmp_path / "results" / "laptop")]) == 0
    said = capsys.readouterr().out.split("\n")[:-1]
    assert said[1] == f"3 published runs of 1 table in {uri}."
    assert said[-1].endswith(" ui --published --table table3_A --scale laptop")
    assert len(said) <= 10
    assert main(["tracking", "sync", "--tracking-uri", uri, str(folder)]) == 0
    client = connect(uri)
    experiment = client.get_experiment_by_name(experiment_name("laptop"))
    keys = sorted(tag.partition("ViewState.")[2] for tag in experiment.tags if "ViewState." in tag)
    assert [key.split("-")[0] for key in keys] == ["charts", "charts", PUBLISHED_TAG, "table3_A"]
    assert "published" in experiment.tags["mlflow.note.content"]
    shown = {}
    for flag in ("true", "false"):
        query = f"tags.tables LIKE '% table3_A %' AND tags.current = 'true' AND tags.published = '{flag}'"
        found = client.search_runs([experiment.experiment_id], query)
        shown[flag] = sorted(f"{run.data.tags['row']} {run.data.tags['seed']}" for run in found)
    assert shown == {"true": ["base 1", "h=1 1", "h=1 2"], "false": ["h=1 1"]}
    capsys.readouterr()


def test_a_folder_without_records_is_refused(tmp_path: Path, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in {
        ("--results", f"{tmp_path}"): "expected the folder of a scale, such as results/laptop",
        ("--results", f"{tmp_path}/own/laptop"): "holds your own records; leave out --results",
    }.items():
        assert main(["tracking", "sync", "--tracking-uri", store, *arguments]) == 2
        assert said in capsys.readouterr().err
