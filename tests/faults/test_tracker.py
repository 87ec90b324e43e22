"""A whole experiment while the tracker is away, and a journal as long as no run writes one."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tracked_runs import ROOT, describe, python, same, shown, stored

from repro.cli.commands import main
from repro.storage.journal import Journal, read
from repro.tracking.mirror import sync
from repro.tracking.views import ROW

pytestmark = pytest.mark.faults


def test_an_experiment_without_its_tracker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """V1, F7: there MLflow's own logger blocks for four minutes at the first number, and ends the training."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
        places = [f"--{name}-dir={tmp_path / name}" for name in ("runs", "results", "cache")]
        command = [sys.executable, "experiments/table3_A.py", "--scale=smoke", "--rows=h=1", "--steps=20", *places]
        done = subprocess.run(
            [*command, f"--tracking-uri={dead}"],
            cwd=ROOT, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"MLflow at {dead} does not answer" in done.stdout
    assert f"python -m repro tracking sync --tracking-uri {dead}" in done.stdout
    [folder] = (tmp_path / "runs").glob("*/")
    assert {line["kind"] for line in read(folder / "journal.jsonl")} == {"train", "dev", "final"}
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert main(["tracking", "sync", "--tracking-uri", uri, str(folder)]) == 0
    own = [point for point in stored(uri, sync(uri, folder)) if point.key not in ROW]
    assert same(own, shown(folder))  # the others are of the view


def test_eight_processes_begin_with_an_empty_database(tmp_path: Path) -> None:
    """X1: without care all but one die, or the database is left half made."""
    uri, folders = f"sqlite:///{tmp_path / 'new' / 'mlflow.db'}", [tmp_path / f"run{i}" for i in range(8)]
    code = "import sys, pathlib; from repro.tracking.mirror import sync; sync(sys.argv[1], pathlib.Path(sys.argv[2]))"
    for folder in folders:
        describe(folder, folder.name)
        with Journal(folder / "journal.jsonl") as journal:
            journal.append("train", 1, loss=1.0)
    for process in [python(code, uri, folder) for folder in folders]:
        said, _ = process.communicate()
        assert (process.returncode, said.decode()) == (0, "")
    for folder in folders:
        assert same(stored(uri, sync(uri, folder)), shown(folder))
