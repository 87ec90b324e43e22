"""MLflow shows exactly what the folder of a run holds, whatever happens on the way."""

import math
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from tracked_runs import describe, run_of, same, shown, stored
from waiting import until

from repro.storage.journal import Journal, read
from repro.tracking import mirror
from repro.tracking.client import Tracker, connect, experiment_id, sqlite_path
from repro.tracking.mirror import Mirror, _gpus, measure_system, sync
from repro.tracking.run_folder import Point
from repro.tracking.views import ROW_MEAN, View, save_views


def test_mlflow_shows_exactly_the_folder_and_twice_is_once(store: str, folder: Path) -> None:
    run_id = sync(store, folder)
    assert same(stored(store, run_id), shown(folder))
    run = run_of(store, run_id)
    assert run.info.run_name == "h=1, seed 1"
    assert run.info.status == "KILLED"  # no record, and nobody writes the journal
    assert run.data.params == {"n_heads": "1", "d_k": "512"}
    assert {tag: run.data.tags[tag] for tag in ("table", "row", "seed", "tables")} == {
        "table": "table3_A", "row": "h=1", "seed": "1", "tables": " table3_A ",
    }  # fmt: skip
    assert [p[:3] for p in stored(store, run_id) if p.key.startswith(("paper/", "final/"))] == [
        ("final/dev_bleu", 0, 57.25), ("final/dev_ppl", 0, 3.1415926535),
        ("paper/bleu", 0, 24.9), ("paper/ppl", 0, 5.29), ("paper/row", 0, 1),
    ]  # fmt: skip

    (folder / "record.json").write_bytes(b'{"status": "finished"}')
    describe(folder, folder.name)
    connect(store).log_metric(run_id, f"{ROW_MEAN}/bleu", 868.48)  # of a view: a number of the row, not of the run
    assert sync(store, folder) == run_id
    assert same([point for point in stored(store, run_id) if point.value != 868.48], shown(folder))
    assert run_of(store, run_id).info.status == "FINISHED"


def test_a_repeated_step_keeps_the_value_that_was_shown(store: str, folder: Path) -> None:
    run_id = sync(store, folder)
    before = stored(store, run_id)
    with Journal(folder / "journal.jsonl") as journal:
        journal.append("train", 42, loss=14.0, lr=42e-6, tokens_per_second=9.0)
        journal.append("train", 43, loss=13.0)
    assert sync(store, folder) == run_id
    after = stored(store, run_id)
    assert [point for point in after if point not in before and point.value == point.value] == [
        next(point for point in shown(folder) if point.step == 43)
    ]


def test_killed_half_way_and_repeated_it_is_exactly_the_journal(
    new_store: Callable[[], str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K6: kill -9 while it writes one metric after the other."""
    with Journal(folder / "journal.jsonl") as journal:
        for step in range(100, 766):  # 2,000 metrics and more
            journal.append("train", step, loss=1 / step, lr=1.0, tokens_per_second=2.0)
    uri = new_store()
    connect("http://127.0.0.1:1")  # imports MLflow, once for both processes
    if not (child := os.fork()):
        try:
            monkeypatch.setattr(mirror, "BATCH", 1)
            sync(uri, folder)
        finally:
            os._exit(1)
    with closing(sqlite3.connect(sqlite_path(uri))) as database:
        while database.execute("SELECT count(*) FROM metrics").fetchone()[0] < 20:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    [found] = connect(uri).search_runs([experiment_id(connect(uri), uri, "smoke")])
    assert 20 <= len(stored(uri, found.info.run_id)) < len(shown(folder))
    assert sync(uri, folder) == found.info.run_id
    assert same(stored(uri, found.info.run_id), shown(folder))
    assert (found.info.status, run_of(uri, found.info.run_id).info.status) == ("RUNNING", "KILLED")


def test_what_is_infinite_is_no_point_and_no_sign_that_a_run_diverged(store: str, tmp_path: Path) -> None:
    """MLflow keeps an infinity as the largest float, and shows a perplexity of 1.797e308."""
    describe(tmp_path / "run", "apart")
    with Journal(tmp_path / "run" / "journal.jsonl") as journal:
        journal.append("dev", 20, nll=3.5, ppl=math.exp(3.5))
        journal.append("dev", 40, nll=800.0, ppl=math.inf)
    assert "diverged" not in run_of(store, sync(store, tmp_path / "run")).data.tags
    (tmp_path / "run" / "record.json").write_bytes(b'{"status": "diverged"}')
    run_id = sync(store, tmp_path / "run")
    assert {(one.key, one.step) for one in stored(store, run_id) if one.key.startswith("dev/")} == {
        ("dev/nll", 20), ("dev/ppl", 20), ("dev/nll", 40)
    }  # fmt: skip
    assert max(abs(one.value) for one in stored(store, run_id)) == 800
    tags = run_of(store, run_id).data.tags
    assert (tags["diverged"], run_of(store, run_id).info.status) == ("true", "FAILED")


def test_a_clock_before_1970_costs_the_times_alone(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: -86_400.5)
    describe(tmp_path / "run", "clock")
    with Journal(tmp_path / "run" / "journal.jsonl") as journal:
        journal.append("train", 10, loss=2.5)
        journal.append("final", 0, dev_ppl=3.25, dev_bleu=50.0)
    line, _ = read(tmp_path / "run" / "journal.jsonl")
    assert line["time"] == -86_400.5
    run_id = sync(store, tmp_path / "run")
    assert sync(store, tmp_path / "run") == run_id
    assert Point("train/loss", 10, 2.5, 0) in stored(store, run_id)
    save_views(store, [View(scale="smoke", table="table3_A", title="Table 3 (A)")])
    assert run_of(store, run_id).info.status == "KILLED"


def test_the_thread_carries_a_run_while_it_is_written(store: str, folder: Path) -> None:
    told: list[str] = []
    for outcome, first in (("KILLED", 100), ("FINISHED", 200), ("FAILED", 300)):  # stopped, then gone on with
        with Journal(folder / "journal.jsonl") as journal:
            thread = Mirror(Tracker(store, runs=folder.parent, tell=told.append), folder, every=0.02, sample=0.05)
            for step in range(first, first + 20):
                journal.append("train", step, loss=1 / step)
            until(lambda thread=thread: thread.run_id is not None)  # type: ignore[misc]
            until(lambda thread=thread: run_of(store, thread.run_id).info.status == "RUNNING")  # type: ignore[misc]
            with pytest.raises(BlockingIOError, match="being mirrored"):
                sync(store, folder)
            until(lambda: len(read(folder / "system.jsonl")) > 2)
            journal.append("train", first + 50, loss=0.5)  # the last line before the end
            assert thread.close(outcome)
        assert thread.run_id is not None
        assert run_of(store, thread.run_id).info.status == outcome
        assert same(stored(store, thread.run_id), shown(folder))
    sync(store, folder)
    assert run_of(store, thread.run_id).info.status == "FAILED"  # and stays so
    assert told == []
    assert {"system/cpu_utilization_percentage", "system/process_memory_megabytes"} <= {p.key for p in shown(folder)}


def test_a_dead_tracker_costs_the_caller_nothing(dead: str, folder: Path) -> None:
    """V1, F7: there MLflow's own client blocks for four minutes, then stops the training."""
    told: list[str] = []
    began = time.monotonic()
    thread = Mirror(Tracker(dead, runs=folder.parent, tell=told.append), folder, every=0.05)
    here = threading.get_ident()
    with Journal(folder / "journal.jsonl") as journal:
        for step in range(100, 200):
            journal.append("train", step, loss=1.0)
    assert thread._thread.daemon, "a process that ends does not wait for it"
    assert thread._thread.ident != here
    assert time.monotonic() - began < 5.0
    began = time.monotonic()
    assert not thread.close(timeout=0.5)
    assert time.monotonic() - began < 5.0
    assert len(told) == 1
    assert f"python -m repro tracking sync --tracking-uri {dead} --runs-dir {folder.parent}" in told[0]
    assert len([line for line in read(folder / "journal.jsonl") if line["step"] >= 100]) == 100


# The machine


def test_gpus_are_measured_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetMemoryInfo=lambda gpu: SimpleNamespace(used=3e9 + gpu),
        nvmlDeviceGetUtilizationRates=lambda gpu: SimpleNamespace(gpu=90 + gpu),
        nvmlDeviceGetPowerUsage=lambda gpu: 350_000 + gpu,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    _gpus.cache_clear()
    found = measure_system()
    assert (found["gpu_0_memory_usage_megabytes"], found["gpu_0_power_usage_watts"]) == (3000, 350)
    assert found["gpu_1_utilization_percentage"] == 91
    monkeypatch.setattr(library, "nvmlDeviceGetPowerUsage", lambda gpu: 1 / 0)  # not supported
    assert found.keys() - measure_system().keys() == {"gpu_0_power_usage_watts", "gpu_1_power_usage_watts"}

    monkeypatch.setattr(library, "nvmlInit", lambda: 1 / 0)  # no driver
    _gpus.cache_clear()
    assert not any("gpu" in name for name in measure_system())
    _gpus.cache_clear()
