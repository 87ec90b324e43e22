"""A store is looked at before work begins; one in trouble costs a process one wait with an end, and one sentence."""

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from tracked_runs import python

from repro.tracking import client
from repro.tracking.client import IN_TROUBLE, LIMIT, Tracker, check_store, connect, experiment_id, repair


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("sqlite:///", "expected a file"),
        ("sqlite:///:memory:", "expected a file"),
        ("./mlruns", "expected sqlite:///FILE"),
        ("postgresql://ann:hush@host/db", "expected sqlite:///FILE"),
        ("https://ann:hush@host", "MLFLOW_TRACKING_PASSWORD"),
        ("http://host/?token=hush", "MLFLOW_TRACKING_PASSWORD"),
    ],
)
def test_an_address_that_can_never_work_or_holds_a_password_is_refused(uri: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        check_store(uri)
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_may_have_any_name(tmp_path: Path) -> None:
    """In an address ? begins a query and % a spelling: MLflow would write into another file."""
    folder = tmp_path / "what? 100%#a"
    uri = f"sqlite:///{folder}/mlflow.db"
    assert check_store(uri) is None
    client = connect(uri)
    run = client.create_run(experiment_id(client, uri, "smoke"))
    client.log_metric(run.info.run_id, "loss", 2.5)
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        assert database.execute("SELECT value FROM metrics").fetchall() == [(2.5,)]
    assert repair(uri, folder / "runs").endswith(f" --tracking-uri '{uri}' --runs-dir '{folder}/runs'")


def test_a_silent_server_is_a_warning_within_two_seconds(dead: str) -> None:
    began = time.monotonic()
    warning = check_store(dead)
    assert time.monotonic() - began < 5.0
    assert warning is not None
    assert f"python -m repro tracking sync --tracking-uri {dead}" in warning


def test_importing_brings_no_heavy_library() -> None:
    process = python("import sys, repro.cli.tracking; print({'mlflow', 'torch', 'pandas'} & {*sys.modules})")
    assert process.communicate()[0] == b"set()\n"


# ------------------------------------------------------------------------------------------ a new database


def tables(path: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return database.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()


def test_a_new_database_is_absent_or_whole(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K6: MLflow makes its tables one by one, and goes on with none that was left half made: they are made apart."""
    path = tmp_path / "mlflow.db"
    (wal := tmp_path / "mlflow.db-wal").write_bytes(b"of a lost one, with which SQLite would mix the new one")
    monkeypatch.setattr(client, "_tables", lambda: 1 / 0)  # a kill
    with pytest.raises(ZeroDivisionError):
        connect(f"sqlite:///{path}")
    monkeypatch.undo()
    assert not path.exists()
    assert not wal.exists()
    connect(f"sqlite:///{path}")
    assert tables(path) == tables(template)
    assert sorted(file.name for file in tmp_path.iterdir() if ".db-" not in file.name) == [
        "mlflow.db", "mlflow.db.lock",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------ a store in trouble


def test_after_one_timeout_nothing_is_waited_for() -> None:
    told: list[str] = []
    tracker, end = Tracker("http://127.0.0.1:1", runs=Path("there"), tell=told.append), threading.Event()
    assert tracker.limit == LIMIT
    tracker.fails("503")
    assert tracker.limit == IN_TROUBLE
    tracker.limit = 0.02
    tracker.ask(end.wait)
    assert tracker.limit == 0.0
    tracker.ask(lambda: told.append("begun"))
    end.set()
    assert told == [
        "MLflow at http://127.0.0.1:1 is behind: 503. Nothing is lost: the journals in there have everything. To "
        "catch up, type: python -m repro tracking sync --tracking-uri http://127.0.0.1:1 --runs-dir there"
    ]


def test_work_that_fails_is_told_and_a_server_that_is_silent_at_the_start_but_once(dead: str) -> None:
    told: list[str] = []
    Tracker(dead, tell=told.append).ask(lambda: 1 / 0)
    assert "is behind: division by zero" in told.pop()
    tracker = Tracker(dead, tell=told.append)
    tracker.look()
    tracker.fails("it still does not answer")
    assert len(told) == 1
    assert told[0].endswith(f"python -m repro tracking sync --tracking-uri {dead}")
