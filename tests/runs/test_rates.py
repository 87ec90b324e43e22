"""What is known of the speed of rows here: by finished runs; what is damaged says nothing."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from repro.runs.rates import (
    Known,
    finished,
    nearest,
    row_of,
    this_machine,
)

from repro.runs.options import Options
from repro.runs.scales import SCALES
from repro.storage import signed_json

LAPTOP = SCALES["laptop"]
FLOPS = 2e9  # of an update
HERE = this_machine()
CARD = replace(HERE, device="A card")
RECORD: dict[str, Any] = {  # of a run of the base at `laptop` here; what nobody asks for is left out
    "format": 2,
    "corpus": {"n_dev": 1000, "n_test": 1000},
    "hyper": asdict(LAPTOP.base),
    "settings": {"batch_tokens": 512, "devices": 1, "precision": "fp32"},
    "cost": {"steps": 1800, "train_seconds": 90.0, "decode_seconds": 10.0, "flops": 3.6e12},
    "stamp": {
        "cpu": HERE.cpu,
        "device": HERE.device,
        "n_threads": 1,
        "versions": {"torch": HERE.torch},
        "started": "2026-11-22T17:00:00+00:00",
    },
    "status": "finished",
}


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(cache_dir=tmp_path / "cache", runs_dir=tmp_path / "runs")


def kept(options: Options, number: int = 1, **changes: Any) -> None:
    """A run's record, with other values at some places: stamp__cpu is that of the stamp."""
    content = json.loads(json.dumps(RECORD))
    for path, value in changes.items():
        *parts, last = path.split("__")
        place = content
        for part in parts:
            place = place[part]
        place[last] = value
    signed_json.write(options.runs_dir / f"{number:016}" / "record.json", content)


@pytest.mark.parametrize("damage", ["", "[]", '{"format": 3, "sha256": "0"}'])
def test_damaged_files_are_ignored(options: Options, damage: str) -> None:
    kept(options, 1)
    (options.runs_dir / f"{1:016}" / "record.json").write_text(damage)
    assert finished(options) == []
    kept(options, 2)
    assert len(finished(options)) == 1


def test_a_finished_run_says_how_fast_its_row_is_whatever_its_schedule(options: Options) -> None:
    kept(options, hyper__steps=900, hyper__warmup=7)
    [found] = finished(options)
    row = row_of(asdict(LAPTOP.base), None)
    assert found == Known(row=row, flops=FLOPS, tokens=512, train=4e10, search=200 * FLOPS / 512)  # 2,000 in 10 s
    kept(options, status="diverged")
    assert finished(options)[0].search is None, "it was trained, and translated nothing"


@pytest.mark.parametrize(
    "change",
    [
        {"stamp__cpu": "Z80"},
        {"stamp__device": "NVIDIA H100"},
        {"stamp__versions__torch": "2.11.0"},
        {"stamp__n_threads": 2},
        {"settings__devices": 2},
        {"settings__precision": "bf16"},
        {"cost__steps": 0},
        {"cost__train_seconds": 9.0},  # mostly the beginning of a process
    ],
)
def test_runs_of_other_machines_and_short_runs_are_ignored(options: Options, change: dict[str, Any]) -> None:
    kept(options, **change)
    assert finished(options) == []


def test_the_newest_run_most_alike_counts(options: Options) -> None:
    of_row = {"cost__train_seconds": 18.0, "cost__flops": 3.6e11}  # the row, with ten times fewer operations
    kept(options, 1, **of_row, stamp__started="2026-11-22T16:00:00+00:00")
    kept(options, 2, **{**of_row, "cost__train_seconds": 36.0})
    kept(options, 3, hyper__n_heads=4, cost__train_seconds=180.0)
    kept(options, 4, hyper__n_heads=16, cost__train_seconds=360.0, cost__flops=7.2e12)

    def seconds(flops: float, **hyper: Any) -> float:
        """Of an update of the known run."""
        like = nearest(finished(options), replace(LAPTOP.base, **hyper), None, flops)
        assert like
        return like.flops / like.train

    assert seconds(FLOPS) == pytest.approx(0.02), "the same row before all others, of that the newest"
    assert seconds(1.2 * FLOPS, n_heads=1) == pytest.approx(0.1), "else as many operations"
    assert seconds(1.9 * FLOPS, n_heads=1) == pytest.approx(0.2)
    assert nearest([], LAPTOP.base, None, FLOPS) is None


def test_a_gpu_is_found_without_asking_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.runs.cards.present", lambda: ("NVIDIA H100 80GB HBM3",))
    for hidden, device in ((None, "NVIDIA H100 80GB HBM3"), ("", HERE.cpu)):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if hidden is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert this_machine.__wrapped__().device == device
