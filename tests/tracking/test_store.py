"""A store is looked at before work begins."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from tracked_runs import python

from repro.tracking.store import check_store, connect, experiment_id, repair


def test_a_store_that_can_never_work_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_bytes(b"Dear reviewer, it is not a database")
    (tmp_path / "empty.db").touch()
    for uri, said in {
        f"sqlite:///{tmp_path}": "is a folder",
        f"sqlite:///{tmp_path}/letter.txt": "no SQLite database, it begins with b'Dear reviewer, i'",
        f"sqlite:///{tmp_path}/letter.txt/mlflow.db": "is a file",
        "sqlite:///": "expected a file",
        "sqlite://": "expected a file",
        "sqlite:///:memory:": "expected a file",
        "file:./mlruns": "file store is no longer kept up",
        "./mlruns": "file store",
        "postgresql://host/db": "behind an MLflow server",
        "databricks": "expected sqlite:///FILE",
        "": "expected sqlite:///FILE",
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
    assert repair(uri, folder / "runs").endswith(f" --tracking-uri '{uri}' '{folder}/runs'")


def test_a_silent_server_is_a_warning_within_two_seconds(dead: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    warning = check_store(dead)
    assert time.monotonic() - began < 5.0
    assert warning is not None
    assert f"python -m repro.tracking sync --tracking-uri {dead}" in warning


def test_importing_brings_no_heavy_library() -> None:
    process = python(
        "import sys, repro.tracking.__main__, repro.ui; print({'mlflow', 'torch', 'pandas'} & {*sys.modules})"
    )
    assert process.communicate()[0] == b"set()\n"
