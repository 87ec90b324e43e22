"""A store is looked at before work begins; one in trouble costs a process one wait with an end, and one sentence."""

import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from file_server import LoopbackServer
from sqlalchemy import Engine, event
from tracked_runs import describe, python
from tracking_server import Handler
from waiting import until

from repro.storage.journal import Journal
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


class Dripping(LoopbackServer):
    """Answers one byte at a time, for ever."""

    def __init__(self) -> None:
        class Drip(Handler):
            def real(self) -> tuple[int, bytes]:
                return 200, b""

        super().__init__(Drip)
        self.asked: list[str] = []
        self.mlflow = SimpleNamespace()

    def fault(self, handler: Handler) -> None:
        handler.send(200, b"", 10**9)
        while not self.closing.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()


SWEEP = """
import sys
from pathlib import Path
from repro.storage.journal import Journal
from repro.tracking import client
from repro.tracking.mirror import Mirror
from repro.tracking.views import View, install_views
client.LIMIT = client.IN_TROUBLE = 0.5
uri, runs = sys.argv[1], Path(sys.argv[2])
mlflow = client.Tracker(uri, runs=runs)
for folder in sorted(runs.iterdir()):
    mirror = Mirror(mlflow, folder, every=0.02)
    if folder.name.endswith("0"):
        sys.stdin.readline()  # it has begun to drip
    mirror.close()
install_views(mlflow, [View(scale="smoke", table="table2", title="Table 2")])
print("the end")
"""


@pytest.mark.slow
def test_a_process_ends_though_its_tracker_drips(tmp_path: Path) -> None:
    """No read ever times out, as each brings a byte."""
    for i in range(3):
        describe(folder := tmp_path / "runs" / f"{i:016x}", folder.name)
        with Journal(folder / "journal.jsonl") as journal:
            journal.append("train", 1, loss=1.0)
    with Dripping() as server:
        process = python(SWEEP, f"http://127.0.0.1:{server.server_port}", tmp_path / "runs", stdin=subprocess.PIPE)
        until(lambda: bool(server.asked) or process.poll() is not None)
        said, _ = process.communicate(b"\n", timeout=300)
        assert not server.closing.is_set(), "it still dripped"
    assert process.returncode == 0, said
    first, last = said.decode().strip().split("\n")
    assert "is behind: no answer within 0.5 s" in first
    assert last == "the end"
