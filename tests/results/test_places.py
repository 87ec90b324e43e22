"""Which run is meant: `best`, `base`, `latest`, a folder, an id, the beginning of one."""

import os
from pathlib import Path
from typing import Any

import pytest
from figures.conftest import record

from repro.results.places import run_folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Finished one after the other: 1a2b, 1a3c, then 7f00, which diverged; 9e11 is not finished."""
    for time, (name, status) in enumerate([("1a2b", "finished"), ("1a3c", "finished"), ("7f00", "diverged")]):
        file = tmp_path / "runs" / name / "record.json"
        record("base", 1, status=status).save(file)
        os.utime(file, (1_000 + time, 1_000 + time))
    (tmp_path / "runs" / "9e11").mkdir()
    (tmp_path / "runs" / "1a4d.json").write_text("no folder", "utf-8")
    return tmp_path / "runs"


def test_a_run_is_found_by_what_is_typed(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for typed, name in {"latest": "1a3c", "1a2": "1a2b", "1a2b": "1a2b", "7": "7f00", "9": "9e11"}.items():
        assert run_folder(typed, runs) == runs / name
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for folder in ("mine", f"{runs}/1a2b", "nowhere/1a2b"):
        assert run_folder(folder, runs) == Path(folder)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("1a", "2 runs in .*runs begin with 1a: 1a2b, 1a3c. Type more of the id."),
        ("2", r"runs holds no run 2\. Expected best, base, latest, .*the folder of a run, its id or "),
        ("", r"runs holds no run without a name\. Expected best, base, latest"),
        ("1" * 5_000, "runs holds no run 1111"),
    ],
)
def test_what_means_no_run_or_several_is_named(runs: Path, typed: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run_folder(typed, runs)


def saved(runs: Path, name: str, row: str, when: int, **about: Any) -> None:
    record(row, 1, **about).save(runs / name / "record.json")
    os.utime(runs / name / "record.json", (when, when))


def test_best_is_the_highest_score_among_runs_like_the_newest(tmp_path: Path) -> None:
    saved(tmp_path, "a", "base", 1, bleu=50.0)
    saved(tmp_path, "b", "h=1", 2, bleu=60.0)
    saved(tmp_path, "c", "h=4", 3, bleu=55.0)
    saved(tmp_path, "d", "h=1", 0, bleu=90.0, scale="captions")  # another scale
    other = {"name": "grammar", "sha256": "ff" * 32, "n_train": 5, "n_dev": 3, "n_test": 2, "dropped": {}}
    saved(tmp_path, "e", "h=1", 0, bleu=95.0, corpus=other)  # another text
    saved(tmp_path, "f", "h=1", 9, bleu=99.0, status="diverged")
    assert [run_folder(word, tmp_path).name for word in ("best", "base", "latest")] == ["b", "a", "c"]


def test_without_a_base_run_none_is_taken_for_it(tmp_path: Path) -> None:
    saved(tmp_path, "b", "h=1", 2)
    with pytest.raises(ValueError, match="holds no finished run, so there is no latest"):
        run_folder("latest", tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds no finished run of the base row, so there is no base"):
        run_folder("base", tmp_path)
    (tmp_path / "b" / "record.json").write_text("{", "utf-8")
    with pytest.raises(ValueError, match=r"b.record\.json"):  # a damaged newest run: no other is taken for it
        run_folder("latest", tmp_path)
