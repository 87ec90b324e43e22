"""What is typed by hand."""

from pathlib import Path

import pytest
from tracked_runs import eventful

from repro.cli.tracking import main


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
    assert main(["sync", "--tracking-uri", store]) == 1
    said = capsys.readouterr()
    assert f"runs/{folder.name}  h=1, seed 1: in {store}" in said.out
    assert "broken/run.json: expected run, tags, params and paper" in said.err
    for typed in (str(folder), folder.name, folder.name[:2]):
        assert main(["sync", "--tracking-uri", store, typed]) == 0
        assert f"runs/{folder.name}  h=1, seed 1: in {store}" in capsys.readouterr().out
    assert main(["sync", "--tracking-uri", store, "latest"]) == 1
    assert "holds no finished run, so there is no latest" in capsys.readouterr().err
    assert main(["sync", "--tracking-uri", "file:x", str(folder)]) == 1
    assert main(["restore", "--tracking-uri", store, "none", "runs/restored"]) == 1
    assert "cannot read run none" in capsys.readouterr().err
