"""A store is looked at before work begins."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from tracked_runs import python

from repro.tracking import client
from repro.tracking.client import check_store, connect, experiment_id, repair


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
    process = python(
        "import sys, repro.cli.tracking, repro.cli.ui; print({'mlflow', 'torch', 'pandas'} & {*sys.modules})"
    )
    assert process.communicate()[0] == b"set()\n"


# ------------------------------------------------------------------------------------------ a new database


class Killed(RuntimeError):
    """Stands for a signal; MLflow's libraries tidy up after an error, which a kill does not let them."""


@contextmanager
def at_each_statement(act: Callable[[int], None]) -> Iterator[None]:
    """Call `act` with 1, 2, ... before each statement that MLflow gives to any database."""
    n = 0

    def count(*_: Any) -> None:
        nonlocal n
        n += 1
        act(n)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", count)


def kill_at(last: int) -> Callable[[int], None]:
    def act(n: int) -> None:
        if n == last:
            raise Killed

    return act


def tables(path: Path) -> list[tuple[str]]:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return database.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()


@pytest.mark.slow
def test_a_new_database_is_absent_or_whole(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """K6: MLflow makes its tables one by one, and goes on with none that was left half made."""
    monkeypatch.setattr(client, "_tables", client._tables.__wrapped__)  # each time anew
    path, seen = tmp_path / "mlflow.db", []
    (wal := tmp_path / "mlflow.db-wal").write_bytes(b"of a lost one, with which SQLite would mix the new one")

    def look(n: int) -> None:
        seen.append(tables(path) if path.exists() else None)

    with at_each_statement(kill_at(250)), pytest.raises(Killed):
        connect(f"sqlite:///{path}")
    assert not path.exists()
    assert not wal.exists()
    with at_each_statement(look):
        connect(f"sqlite:///{path}")
    assert seen.count(None) > 300, "MLflow's own statements should have been seen"
    assert [found for found in seen if found not in (None, tables(template))] == []
    assert tables(path) == tables(template)
    assert sorted(file.name for file in tmp_path.iterdir() if ".db-" not in file.name) == [
        "mlflow.db", "mlflow.db.lock",
    ]  # fmt: skip
