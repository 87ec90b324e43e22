"""What is typed by hand."""

from pathlib import Path

import pytest
from tracked_runs import eventful

from repro.cli.commands import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return eventful(tmp_path / "runs", "0123456789abcdef")


def test_by_hand_all_folders_are_mirrored_and_the_broken_one_named(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = folder.parent / "broken"
    broken.mkdir()
    (broken / "run.json").write_bytes(b"{}")
    monkeypatch.chdir(folder.parent.parent)
    assert main(["tracking", "sync", "--tracking-uri", store]) == 1
    said = capsys.readouterr()
    assert f"runs/{folder.name}  h=1, seed 1: in {store}" in said.out
    assert "broken/run.json: expected run, tags, params and paper" in said.err
    for typed in (str(folder), folder.name, folder.name[:2]):
        assert main(["tracking", "sync", "--tracking-uri", store, typed]) == 0
        assert f"runs/{folder.name}  h=1, seed 1: in {store}" in capsys.readouterr().out
    assert main(["tracking", "sync", "--tracking-uri", store, "latest"]) == 2
    assert "holds no finished run, so there is no latest" in capsys.readouterr().err
    assert main(["tracking", "sync", "--tracking-uri", "file:x", str(folder)]) == 2


def test_the_runs_of_a_folder_of_ones_own_are_mirrored(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = folder.parent.rename(folder.parent.parent / "my runs")
    for beside in ("slurm", "killed before it had a run.json"):
        (own / beside).mkdir()
    monkeypatch.chdir(own.parent)
    for words in ([], [folder.name[:2]]):
        assert main(["tracking", "sync", "--tracking-uri", store, "--runs-dir", own.name, *words]) == 0
        said = capsys.readouterr()
        assert f"my runs/{folder.name}  h=1, seed 1: in {store}" in said.out
        assert said.err == ""
    assert main(["tracking", "sync", "--tracking-uri", store]) == 2
    assert "runs/ holds no runs" in capsys.readouterr().err
    monkeypatch.setattr("repro.tracking.views.encode_view", lambda *_: 1 / 0)
    assert main(["tracking", "sync", "--tracking-uri", store, "--runs-dir", own.name]) == 1
    assert capsys.readouterr().err == "The views of table3_A were not saved: division by zero\n"
