"""What is typed by hand."""

from pathlib import Path

import pytest
from text_folders import put
from tracked_runs import eventful
from typed import typed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return eventful(tmp_path / "runs", "0123456789abcdef")


def test_by_hand_all_folders_are_mirrored_and_the_broken_one_named(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder.parent / "broken" / "run.json", "{}")
    monkeypatch.chdir(folder.parent.parent)
    command = ("tracking", "sync", "--tracking-uri", store)
    said = typed(capsys, *command, code=1)
    assert f"runs/{folder.name}  h=1, seed 1: in {store}" in said
    assert "broken/run.json: expected run, tags, params and paper" in said
    for word in (folder, folder.name, folder.name[:2]):
        assert f"runs/{folder.name}  h=1, seed 1: in {store}" in typed(capsys, *command, word)
    assert "holds no finished run, so there is no latest" in typed(capsys, *command, "latest", code=2)
    typed(capsys, "tracking", "sync", "--tracking-uri", "file:x", folder, code=2)


def test_the_runs_of_a_folder_of_ones_own_are_mirrored(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = folder.parent.rename(folder.parent.parent / "my runs")
    for beside in ("slurm", "killed before it had a run.json"):
        (own / beside).mkdir()
    monkeypatch.chdir(own.parent)
    command = ("tracking", "sync", "--tracking-uri", store)
    for words in ([], [folder.name[:2]]):
        said = typed(capsys, *command, "--runs-dir", own.name, *words)
        assert said.endswith(f"my runs/{folder.name}  h=1, seed 1: in {store}\n")  # and no error
    assert "runs/ holds no runs" in typed(capsys, *command, code=2)
    monkeypatch.setattr("repro.tracking.views.encode_view", lambda *_: 1 / 0)
    said = typed(capsys, *command, "--runs-dir", own.name, code=1)
    assert said.endswith("The views of table3_A were not saved: division by zero\n")
