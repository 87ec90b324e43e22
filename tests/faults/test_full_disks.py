"""The whole way on disks that are full, small, read-only or elsewhere: named, exit code 74, and on with more room."""

import runpy
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from faults.disk import fill, tmpfs
from own_signals import own_signals, places

from repro.experiment import main
from repro.results import record
from repro.runs.forecast import sweep_bytes
from repro.runs.options import Options
from repro.runs.run_dir import planned
from repro.runs.scales import SCALES
from repro.storage import journal
from repro.training import checkpoint

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "experiments" / "table3_A.py"
TABLE3_A = runpy.run_path(str(SCRIPT))
BASE = ("--scale=smoke", "--rows=base")
NEEDED = sweep_bytes(planned([], SCALES["smoke"], Options(scale="smoke")))


def code(*arguments: str) -> int:
    """The exit code of the experiment, of which the base row is made at smoke scale."""
    try:
        main(TABLE3_A["TABLE"], TABLE3_A["ROWS"], [*BASE, *arguments])
    except SystemExit as stopped:
        return int(str(stopped.code))
    return 0


def written(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture(autouse=True, scope="module")
def _own_signals() -> Iterator[None]:
    with own_signals():
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The row made in a folder of an odd name, with TMPDIR on a full disk of its own: nothing that lasts goes there."""
    folder = tmp_path_factory.mktemp("made") / "what? 100%#a"
    with pytest.MonkeyPatch.context() as patch, tmpfs(folder / "tmp", 2**14) as tmp:
        fill(tmp)
        patch.setattr(tempfile, "tempdir", str(tmp))
        assert code(*places(folder)) == 0
        # PyTorch makes an empty folder for code that it would compile
        assert [path.name for path in tmp.rglob("*") if not path.name.startswith("torchinductor")] == ["filling"]
    return folder


@pytest.mark.slow
def test_results_lie_in_a_folder_of_any_name_and_not_in_tmpdir(made: Path) -> None:
    """In an address ? begins a query, % a spelling, # a fragment."""
    assert not list(made.rglob("*.partial"))
    assert [path.name for path in made.parent.iterdir()] == [made.name]
    assert {path.name for path in made.iterdir()} >= {"results", "runs", "cache", "mlflow.db"}
    with closing(sqlite3.connect(made / "mlflow.db")) as database:
        [found] = database.execute("SELECT value FROM metrics WHERE key = 'final/dev_bleu'").fetchall()
    [done] = (made / "runs").glob("*/record.json")
    assert found == (record.load(done).scores["dev"]["bleu"],)


@pytest.mark.parametrize("name", ["results", "cache"])
def test_a_folder_that_is_read_only_is_refused_before_any_work(tmp_path: Path, name: str) -> None:
    with tmpfs(tmp_path / name, 2**20, read_only=True):
        command = [sys.executable, "-X", "importtime", str(SCRIPT), *BASE, *places(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.split("\n") if line.startswith("import time:")}
    said = "\n".join(line for line in done.stderr.split("\n") if not line.startswith("import time:"))
    assert done.returncode == 74, said
    assert "repro.experiment" in imported
    assert not imported & {"torch", "lightning", "tokenizers"}  # refused before what takes seconds
    assert said.startswith(f"error: {tmp_path / name} cannot be written to: Read-only file system (")
    assert said.endswith("or name another folder. Then the same command goes on.\n")
    assert written(tmp_path) == []


def test_too_little_room_is_refused_before_a_run(
    tmp_path: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with tmpfs(tmp_path / "disk", NEEDED - 2**14) as disk:
        assert code(*places(made, f"--runs-dir={disk}")) == 74
        said = capsys.readouterr().err
        assert said.startswith(f"error: Disk: {NEEDED / 1e6:.1f} MB needed in {disk}, ")
        assert written(disk) == []


@pytest.mark.slow
def test_a_disk_that_fills_during_a_run(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # room enough at the start; something else takes it after the first checkpoint, and later gives it back
    really, saved = checkpoint.save, []

    def save(path: Path, *more: Any) -> None:
        really(path, *more)
        saved.append(path)
        if len(saved) == 1:
            fill(disk, spare=8_192)

    with tmpfs(tmp_path / "disk", NEEDED + 2**20) as disk:
        asked = places(made, f"--runs-dir={disk}", f"--results-dir={tmp_path / 'results'}", "--steps=21")
        monkeypatch.setattr("repro.training.loop.save", save)
        assert code(*asked) == 74
        told, said = capsys.readouterr()
        assert f"needed in {disk}, {(NEEDED + 2**20) / 1e6:.1f} MB free." in told
        assert f"{disk}" in said
        assert "step-000000012.safetensors cannot be written to: No space left on device (" in said
        assert "bytes needed" in said
        [run] = [path for path in disk.iterdir() if path.is_dir()]
        assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-000000010.safetensors"]
        lines = journal.read(run / "journal.jsonl")
        assert [line["step"] for line in lines if line["kind"] == "train"] == [5, 10]
        (disk / "filling").unlink()
        assert code(*asked) == 0
        assert [checkpoint.step_of(path) for path in saved[1:]] == [*range(12, 22)]  # the last ten
        assert record.load(run / "record.json").cost["steps"] == 21


def test_a_full_results_folder_costs_no_run(tmp_path: Path, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in written(made / "runs")}
    with tmpfs(tmp_path / "results", 2**14) as results:
        assert code(*places(made, f"--results-dir={results}")) == 74
        assert capsys.readouterr().err.startswith(f"error: {results}")
    assert code(*places(made, f"--results-dir={tmp_path / 'elsewhere'}")) == 0
    assert {path: path.stat().st_mtime_ns for path in written(made / "runs")} == before
