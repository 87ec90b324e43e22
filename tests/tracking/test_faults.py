"""Whatever the tracker does, training goes on at its speed, and afterwards MLflow shows exactly the journal."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tracking_server as faults
from tracked_runs import describe, run_of, same, shown, stored
from tracking_server import TrackingServer
from waiting import until

from repro.cli.tracking import main as tracking_main
from repro.storage.journal import Journal, read
from repro.tracking.client import check_store, connect, experiment_name, reason, sqlite_path
from repro.tracking.mirror import Mirror, sync
from repro.tracking.tracker import Tracker
from repro.tracking.views import View, install_view


@pytest.fixture
def server(new_store: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[TrackingServer]:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setattr("repro.tracking.mirror.LONGEST_PAUSE", 0.05)
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


def test_a_tracker_broken_to_the_end_is_synced_afterwards(
    server: TrackingServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V1, V2: MLflow never answers while the run lasts."""
    server.fault = faults.reply_lost
    told: list[str] = []
    with Journal(folder / "journal.jsonl") as journal:
        thread = Mirror(Tracker(server.uri, runs=folder.parent, tell=told.append), folder, every=0.02)
        train(journal, 100)
        until(lambda: bool(told))
        assert not thread.close("FAILED", timeout=1.5)
    server.fault = faults.good
    thread._thread.join(30)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "60")  # sound, though the machine may be busy
    for _ in range(2):
        run_id = sync(server.uri, folder)
        assert same(stored(server.uri, run_id), shown(folder))


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


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_lost_database_is_never_written_to(new_store: Callable[[], str], folder: Path, how: str) -> None:
    """V3: SQLite goes on with a file that has no name any more; the numbers would be gone without a word."""
    uri, other = new_store(), new_store()
    sync(uri, folder)
    path = sqlite_path(uri)
    for lost in path.parent.glob("mlflow.db*"):
        lost.unlink()
    if how == "replaced":
        shutil.copy(sqlite_path(other), path)
    told: list[str] = []
    thread = Mirror(Tracker(uri, runs=folder.parent, tell=told.append), folder, every=0.02)
    assert not thread.close()
    assert "was deleted or replaced" in told[0]


def test_two_that_make_a_run_at_once_agree_on_one(new_store: Callable[[], str], folder: Path) -> None:
    """X1: neither saw the other's run when it looked."""
    uri = new_store()
    client = connect(uri)
    first = sync(uri, folder)
    execution = {name: client.get_run(first).data.tags[name] for name in ("repro.runs.run", "repro.execution")}
    experiment = client.get_run(first).info.experiment_id
    second = client.create_run(experiment, 0, execution).info.run_id
    run_id = sync(uri, folder)
    assert run_id == min(first, second)
    assert [run.info.run_id for run in runs(uri)] == [run_id]
    assert same(stored(uri, run_id), shown(folder))


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


def test_a_stale_copy_that_goes_on_is_refused(new_store: Callable[[], str], folder: Path, tmp_path: Path) -> None:
    """V3: two machines go on with one run: one curve must not be made of both."""
    uri = new_store()
    copy = tmp_path / "there" / folder.name
    shutil.copytree(folder, copy)
    for place in (copy, folder):
        with Journal(place / "journal.jsonl") as journal:
            train(journal, 100, 10)
        time.sleep(0.01)
    run_id = sync(uri, copy)
    with pytest.raises(ValueError, match="another copy of this journal: its train/loss at step 100"):
        sync(uri, folder)
    assert same(stored(uri, run_id), shown(copy))
    connect(uri).delete_run(run_id)
    assert same(stored(uri, sync(uri, folder)), shown(folder))


def test_a_run_that_failed_stays_failed(new_store: Callable[[], str], folder: Path) -> None:
    uri = new_store()
    thread = Mirror(Tracker(uri), folder, every=0.02)
    assert thread.close("FAILED")
    sync(uri, folder)
    assert thread.run_id is not None
    assert run_of(uri, thread.run_id).info.status == "FAILED"


@pytest.mark.parametrize("uri", ["https://user:hush@{host}", "http://{host}/?token=hush"])
def test_an_address_with_a_password_is_refused(
    uri: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = uri.format(host="127.0.0.1:1")
    assert tracking_main(["sync", "--tracking-uri", uri, "runs/x"]) == 2
    said = capsys.readouterr()
    assert "MLFLOW_TRACKING_PASSWORD" in said.err
    assert "127.0.0.1:1" in said.err
    assert "hush" not in said.out + said.err
    with pytest.raises(ValueError, match="expected sqlite:///FILE") as caught:
        check_store(uri.replace("http", "postgresql"))
    assert "hush" not in str(caught.value)


def test_no_password_reaches_a_file_or_a_message(
    server: TrackingServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow takes it from its own environment variables; a server may well send back what it was sent."""
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "hush-hush")
    sent: list[str | None] = []

    def refuse(handler: faults.Handler) -> None:
        sent.append(handler.headers.get("Authorization"))
        message = "not hush-hush but http://ann:hush@proxy/ or /?token=hush"
        handler.send(400, json.dumps({"error_code": "INVALID_PARAMETER_VALUE", "message": message}).encode())

    server.fault = refuse
    told: list[str] = []
    thread = Mirror(Tracker(server.uri, runs=folder.parent, tell=told.append), folder, every=0.02)
    until(lambda: bool(told))
    thread.close(timeout=5)
    install_view(server.uri, View(scale="smoke", table="table2", title="Table 2"), told.append)
    with pytest.raises(Exception, match="hush") as caught:  # as MLflow raises it
        sync(server.uri, folder)
    assert "hush" not in reason(caught.value)
    assert any(sent), "MLflow should have sent the password"
    assert len(told) == 2
    assert "hush" not in "".join(told)
    assert not any(b"hush" in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_garbage_at_the_port_is_a_warning(server: TrackingServer) -> None:
    server.fault = lambda handler: handler.wfile.write(b"what?\r\n\r\n") and None
    assert f"MLflow at {server.uri} does not answer (what?" in str(check_store(server.uri))
