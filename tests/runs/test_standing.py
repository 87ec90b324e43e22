"""A dry run knows what is done and half made by all that decides a run, but for the text that it does not open."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from repro.results.provenance import fingerprint
from repro.runs.options import Options, Seeds, chosen_scale
from repro.runs.session import Session
from repro.runs.standing import NOT_BEGUN, Standing, standings
from repro.runs.table import Cell, Table, cells
from repro.runs.task import Translation
from repro.tracking.run_folder import write_run
from repro.training.checkpoint_files import path_of


def options(folder: Path, **changes: Any) -> Options:
    return replace(
        Options(scale="smoke", cache_dir=folder / "cache", runs_dir=folder / "runs", seeds=Seeds((1, 2))), **changes
    )


def asked(of: Options) -> list[Cell]:
    return cells([], chosen_scale(of).base, seeds=of.seeds, chosen=["base"], task=Translation("en-de"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seed 1 at step 10 of 20, as a sweep has begun it."""
    folder = tmp_path_factory.mktemp("begun")
    mine = options(folder)
    session = Session([Table(name="t", rows=[], title="T")], chosen_scale(mine), mine, asked(mine))
    session.open_texts([Translation("en-de")], lambda said: None)
    run = session.run(asked(mine)[0])
    origin = {"decides": run.decides, "code": {}, "commit": None, "dirty": False}
    write_run(run.folder, run.id, tags=run.tags, params={}, paper={}, origin=origin)
    saved = path_of(run.folder / "checkpoints", 10)
    saved.parent.mkdir()
    saved.write_bytes(b"")
    return folder


def standing(folder: Path, **changes: Any) -> dict[int, Standing]:
    of = options(folder, **changes)
    return {cell.seed: one for cell, one in standings(asked(of), chosen_scale(of), of).items()}


def test_a_run_that_was_stopped_is_half_made(begun: Path) -> None:
    steps = chosen_scale(options(begun)).base.steps
    assert standing(begun) == {1: Standing(done=False, step=10, trained=10 / steps)}
    assert standing(begun)[1].told(steps) == f"at step 10 of {steps}"


@pytest.mark.parametrize("change", [{"precision": "bf16"}, {"steps": 7}, {"batch_tokens": 1024}, {"pair": "en-fr"}])
def test_with_other_settings_nothing_has_begun(begun: Path, change: dict[str, Any]) -> None:
    of = options(begun, **change)
    scale = chosen_scale(of)
    there = cells([], scale.base, seeds=[1], chosen=["base"], task=Translation(of.pair))
    assert standings(there, scale, of) == {}


def test_what_has_a_record_is_done_and_other_code_begins_anew(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [folder] = (begun / "runs").iterdir()
    (folder / "record.json").write_bytes(b"{}")
    assert standing(begun)[1].done
    assert standing(begun)[1].told(20) == "done"
    monkeypatch.setattr("repro.runs.run_dir.fingerprint", lambda system: f"other than {fingerprint(system)}")
    assert standing(begun) == {}
    (folder / "record.json").unlink()


def test_folders_without_a_readable_run_are_ignored(tmp_path: Path) -> None:
    assert standing(tmp_path) == {}
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "run.json").write_bytes(b"{")
    assert standing(tmp_path) == {}
    assert not NOT_BEGUN.done
