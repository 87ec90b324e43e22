"""What is typed by hand."""

from pathlib import Path

import pytest
from own_limits import files_of
from tracked_runs import eventful

from repro.cli import tracking
from repro.cli.tracking import main
from repro.storage import atomic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return eventful(tmp_path / "runs", "0123456789abcdef")


def test_a_full_disk_has_an_exit_code_of_its_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tracking, "restore", lambda *_: atomic.write_bytes(tmp_path / "restored", bytes(1_001)))
    with files_of(1_000):
        assert main(["restore", "0" * 32, str(tmp_path / "new"), "--tracking-uri", f"sqlite:///{tmp_path}/m.db"]) == 74
    assert "restored cannot be written to: File too large" in capsys.readouterr().err


def test_by_hand_all_folders_are_mirrored_and_the_broken_one_named(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = folder.parent / "broken"
    broken.mkdir()
    (broken / "run.json").write_bytes(b"{}")
    monkeypatch.chdir(folder.parent.parent)
    assert main(["sync", "--tracking-uri", store]) == 1
    said = capsys.readouterr()
    assert f"runs/{folder.name}  h=1, seed 1: in {store}" in said.out
    assert "broken/run.json: expected run, tags, params and paper" in said.err
    for typed in (str(folder), folder.name, folder.name[:2]):
        assert main(["sync", "--tracking-uri", store, typed]) == 0
        assert f"runs/{folder.name}  h=1, seed 1: in {store}" in capsys.readouterr().out
    assert main(["sync", "--tracking-uri", store, "latest"]) == 2
    assert "holds no finished run, so there is no latest" in capsys.readouterr().err
    assert main(["sync", "--tracking-uri", "file:x", str(folder)]) == 2
    assert main(["restore", "--tracking-uri", store, "none", "runs/restored"]) == 2
    assert "cannot read run none" in capsys.readouterr().err


def test_the_runs_of_a_folder_of_ones_own_are_mirrored(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = folder.parent.rename(folder.parent.parent / "my runs")
    for beside in ("slurm", "killed before it had a run.json"):
        (own / beside).mkdir()
    monkeypatch.chdir(own.parent)
    for words in ([], [folder.name[:2]]):
        assert main(["sync", "--tracking-uri", store, "--runs-dir", own.name, *words]) == 0
        said = capsys.readouterr()
        assert f"my runs/{folder.name}  h=1, seed 1: in {store}" in said.out
        assert said.err == ""
    assert main(["sync", "--tracking-uri", store]) == 2
    assert "runs/ holds no runs" in capsys.readouterr().err
    assert main(["sync", "--tracking-uri", store, "--runs-dir", own.name, "--results", "results/laptop"]) == 2
    assert "name one or the other" in capsys.readouterr().err
    monkeypatch.setattr("repro.tracking.views.encode_view", lambda *_: 1 / 0)
    assert main(["sync", "--tracking-uri", store, "--runs-dir", own.name]) == 1
    assert capsys.readouterr().err.rstrip().endswith(" --runs-dir 'my runs'")


def test_a_view_that_is_not_saved_is_a_failure(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("repro.tracking.views.encode_view", lambda *_: 1 / 0)
    assert main(["sync", "--tracking-uri", store, str(folder)]) == 1
    assert "lacks the view of table3_A (division by zero)" in capsys.readouterr().err
