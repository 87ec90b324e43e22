"""Whatever the tracker does, training goes on at its speed, and afterwards MLflow shows exactly the journal."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tracking_server as faults
from tracked_runs import describe, run_of, same, shown, stored
from tracking_server import TrackingServer
from waiting import until

from repro.storage.journal import Journal, read
from repro.tracking.client import Tracker, check_store, connect, experiment_name
from repro.tracking.mirror import Mirror, sync


@pytest.fixture
def server(new_store: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[TrackingServer]:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr("repro.tracking.mirror.PAUSE", 0.05)
    with TrackingServer(new_store()) as server:
        yield server


def train(journal: Journal, first: int, n: int = 30) -> None:
    for step in range(first, first + n):
        journal.append("train", step, loss=1 / step, lr=step / 7)


BROKEN: dict[str, faults.Answer] = {
    "500": faults.status(500),
    "reply lost": faults.reply_lost,
    "error page that says 200": faults.page,
    "hangs": faults.hang,
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_tracker_that_breaks_is_caught_up_with(
    server: TrackingServer, folder: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V2: sound, then broken, then sound again, while one run is written."""
    told: list[str] = []
    with Journal(folder / "journal.jsonl") as journal:
        thread = Mirror(Tracker(server.uri, runs=folder.parent, tell=told.append), folder, every=0.02)
        train(journal, 100)
        until(lambda: thread.run_id is not None)
        server.fault = BROKEN[fault]
        train(journal, 200)
        until(lambda: bool(told))
        n_asked = len(server.asked)
        until(lambda: len(server.asked) > n_asked)  # it tries again
        assert [line["step"] for line in read(folder / "journal.jsonl")][-30:] == [*range(200, 230)]
        server.fault = faults.good
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")  # sound, though the machine may be busy
        train(journal, 300)
        assert thread.close(timeout=60)
    assert thread.run_id is not None
    assert same(stored(server.uri, thread.run_id), shown(folder))
    assert run_of(server.uri, thread.run_id).info.status == "FINISHED"
    assert len(told) == 1
    assert f"python -m repro tracking sync --tracking-uri {server.uri} --runs-dir {folder.parent}" in told[0]


@pytest.mark.parametrize("how", ["run", "experiment"])
def test_what_is_deleted_in_mlflow_is_made_again(new_store: Callable[[], str], folder: Path, how: str) -> None:
    """V3: by hand in MLflow's page, in the middle of a run."""
    uri, told = new_store(), []
    client = connect(uri)
    with Journal(folder / "journal.jsonl") as journal:
        thread = Mirror(Tracker(uri, runs=folder.parent, tell=told.append), folder, every=0.02)
        until(lambda: thread.run_id is not None)
        if how == "run":
            client.delete_run(thread.run_id)
        else:
            client.delete_experiment(client.get_experiment_by_name(experiment_name("smoke")).experiment_id)
        train(journal, 100)
        assert thread.close() or sync(uri, folder)  # the last look may be the first to notice
    run_id = sync(uri, folder)
    assert same(stored(uri, run_id), shown(folder))
    assert sum(run.data.tags["repro.runs.run"] == folder.name for run in runs(uri)) == 1


def runs(uri: str) -> list:
    client = connect(uri)
    return list(client.search_runs([client.get_experiment_by_name(experiment_name("smoke")).experiment_id]))


def test_another_execution_of_the_run_is_not_mixed_in(new_store: Callable[[], str], folder: Path) -> None:
    """V3: the same row and seed, made again or on another machine, is a run of its own in MLflow."""
    uri = new_store()
    first, before = sync(uri, folder), shown(folder)
    shutil.rmtree(folder)
    describe(folder, folder.name)
    with Journal(folder / "journal.jsonl") as journal:
        train(journal, 40, 10)
    second = sync(uri, folder)
    assert second != first
    assert same(stored(uri, first), before)
    assert same(stored(uri, second), shown(folder))


def test_garbage_at_the_port_is_a_warning(server: TrackingServer) -> None:
    server.fault = lambda handler: handler.wfile.write(b"what?\r\n\r\n") and None
    assert f"MLflow at {server.uri} does not answer (what?" in str(check_store(server.uri))
