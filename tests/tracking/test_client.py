"""A store is looked at before work begins."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from tracked_runs import ROOT, python, same, shown, stored
from waiting import ended_process

from repro.cli.tracking import main
from repro.storage import atomic
from repro.tracking import client
from repro.tracking.client import Broken, check_store, connect, experiment_id, reason, repair, sqlite_path
from repro.tracking.mirror import sync


def test_a_store_that_can_never_work_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_bytes(b"Dear reviewer, it is not a database")
    (tmp_path / "empty.db").touch()
    for uri, said in {
        f"sqlite:///{tmp_path}": "is a folder",
        f"sqlite:///{tmp_path}/letter.txt": "not a SQLite database: it begins with b'Dear reviewer, i'",
        f"sqlite:///{tmp_path}/letter.txt/mlflow.db": "is a file",
        "sqlite:///": "expected a file",
        "sqlite:///:memory:": "expected a file",
        "./mlruns": "file store is no longer maintained",
        "postgresql://host/db": "behind an MLflow server",
    }.items():
        with pytest.raises((ValueError, OSError)) as caught:
            check_store(uri)
        assert said in str(caught.value), uri
        assert "\n" not in str(caught.value)
    for fine in ("empty.db", "new.db", "new/folder/mlflow.db"):
        assert check_store(f"sqlite:///{tmp_path}/{fine}") is None
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="read-only"):
        check_store(f"sqlite:///{tmp_path}/mlflow.db")


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
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
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


def test_a_user_without_a_home_has_mlflow(tmp_path: Path) -> None:
    # as of a container that runs under any number: neither HOME nor an entry in the system's list of users
    code = (
        "import os, pwd, sys\ndef nobody(*_): raise KeyError('uid not found')\npwd.getpwuid = pwd.getpwnam = nobody\n"
        "from repro.tracking.client import connect\nconnect(sys.argv[1])\nprint(os.environ['HOME'])"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "USER", "LOGNAME")}
    process = python(code, f"sqlite:///{tmp_path / 'mlflow.db'}", env=environment | {"TMPDIR": str(tmp_path)})
    assert process.communicate()[0].decode() == f"{tmp_path}\n"


def test_what_killed_processes_left_of_a_new_database_is_swept(template: Path, tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    living = atomic.beside(path, atomic.PARTIAL)
    left = living.with_name(living.name.replace(f".{os.getpid()}.", f".{ended_process()}."))
    others = left.with_name(left.name.replace("mlflow", "other"))
    for file in (left, others, living):
        file.write_bytes(b"half")
    shutil.copy(template, path)
    connect(f"sqlite:///{path}")
    assert [file.exists() for file in (left, others, living)] == [False, True, True]


# ------------------------------------------------------------------------------------------ a broken database


def half_made(path: Path) -> None:
    """As a kill in the midst of MLflow's own way leaves it."""
    connect("http://127.0.0.1:1")  # quietens MLflow
    from mlflow.tracking import MlflowClient

    if not (child := os.fork()):
        try:
            with at_each_statement(lambda n: os._exit(9) if n == 250 else None):
                MlflowClient(f"sqlite:///{path}").search_experiments(max_results=1)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def damaged(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096] + bytes(4096) * 20 + path.read_bytes()[4096 * 21 :])


def of_another_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE alembic_version SET version_num = '451aebb31d03'")
        database.commit()


@pytest.mark.parametrize("spoil", [damaged, of_another_version])
def test_a_broken_database_is_named_with_what_to_type(
    new_store: Callable[[], str], spoil: Callable[[Path], None]
) -> None:
    uri = new_store()
    spoil(path := sqlite_path(uri))
    with pytest.raises(Broken) as caught:
        connect(uri)
    said = str(caught.value)
    assert said.startswith(f"{path} is incomplete, damaged or of another version of MLflow (")
    assert said.endswith(f" && python -m repro tracking sync --tracking-uri {uri}")
    assert "\n" not in said


@pytest.mark.slow
def test_the_remedy_for_a_half_made_database_works_as_it_is_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    cwd, option = folder.parent.parent, " --runs-dir 'my runs'"
    folder = folder.parent.rename(cwd / "my runs") / folder.name
    (folder.parent / "slurm" / "logs").mkdir(parents=True)  # beside them are those of no run
    (folder.parent / "0123456789abcdef").mkdir()  # killed before it had a description
    half_made(cwd / "mlflow.db")
    if not (child := os.fork()):  # a process whose MLflow never opened this file
        code = 99
        try:
            os.chdir(cwd)
            with open("said", "w") as file, redirect_stderr(file):
                code = main(["sync", "--runs-dir", "my runs"])
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    [said] = (cwd / "said").read_text().strip().split("\n")  # however many runs there are
    assert "incomplete" in said
    remedy = said.partition("from the journals: ")[2]
    assert remedy.startswith("mkdir mlflow.db.broken1 && mv mlflow.db mlflow.db-journal ")
    assert remedy.endswith(f" mlflow.db.broken1 && python -m repro tracking sync{option}")
    subprocess.run(["sh", "-c", remedy], cwd=cwd, check=True)
    assert {"mlflow.db", "mlflow.db-journal"} <= {path.name for path in (cwd / "mlflow.db.broken1").iterdir()}
    uri = f"sqlite:///{cwd}/mlflow.db"
    of_run = {point.key for point in shown(folder)}
    found = [point for point in stored(uri, sync(uri, folder)) if point.key in of_run]  # the others are of the view
    assert same(found, shown(folder))


def test_a_database_that_others_hold_is_not_called_broken(
    new_store: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What passes by itself must not be moved away."""
    uri = new_store()

    def client(_: str) -> None:
        with closing(sqlite3.connect(sqlite_path(uri), timeout=0)) as database:
            try:
                database.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise RuntimeError("as MLflow words it") from error

    monkeypatch.setattr("mlflow.tracking.MlflowClient", client)
    with closing(sqlite3.connect(sqlite_path(uri), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RuntimeError, match="as MLflow words it"):
            connect(uri)


def test_the_reason_for_a_failure_is_what_sqlite_says() -> None:
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import OperationalError

    busy = sqlite3.OperationalError("database is locked")
    busy.sqlite_errorname = "SQLITE_BUSY"
    packed = OperationalError("SELECT password FROM runs", {}, busy)
    packed.__cause__ = busy
    above = MlflowException("(raised as a result of Query-invoked autoflush; consider using a session.no_autoflush")
    above.__cause__ = packed
    assert reason(above) == reason(packed) == reason(busy) == "database is locked"
    assert reason(MlflowException("no such run\nat all")) == "no such run"
