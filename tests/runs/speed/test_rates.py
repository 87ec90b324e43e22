"""What is known of the speed of rows here: by finished runs, and by trials; what is damaged says nothing."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from repro.results.provenance import provenance
from repro.runs.options import Options
from repro.runs.scales import SCALES
from repro.runs.speed import rates
from repro.runs.speed.rates import Known, Speeds, card_peaks, note_trial, row_of, speed_conditions, this_machine, tried
from repro.storage import signed_json

LAPTOP = SCALES["laptop"]
FLOPS = 2e9  # of an update
HERE = this_machine()
RECORD: dict[str, Any] = {  # of a run of the base at `laptop` here; what nobody asks for is left out
    "format": 2,
    "run": "0" * 16,
    "pair": "en-de",
    "corpus": {"name": "grammar", "n_dev": 1000, "n_test": 1000},
    "hyper": asdict(LAPTOP.base),
    "system": None,
    "settings": {
        "batch_tokens": 512,
        "fill": "slots",
        "max_length": 128,
        "vocab_size": 3000,
        "beam": 4,
        "threads": 1,
        "devices": 1,
        "precision": "fp32",
        "engine": "torch",
    },
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


TRIED = Known(
    how=speed_conditions(HERE, 1, 1, "fp32"),
    row=row_of(asdict(LAPTOP.base), None),
    flops=FLOPS,
    tokens=512,
    step=0.05,
    sentence=None,
    made="2026-11-22T18:00:00+00:00",
)


def kept(runs: Path, number: int = 1, **changes: Any) -> None:
    content = json.loads(json.dumps(RECORD))
    for path, value in changes.items():
        *parts, last = path.split("__")
        place = content
        for part in parts:
            place = place[part]
        place[last] = value
    signed_json.write(runs / f"{number:016}" / "record.json", content)


def nearest(tmp_path: Path, flops: float = FLOPS, hyper: dict[str, Any] | None = None, **options: Any) -> Known | None:
    """Of a run of the base, or of one with another setting."""
    how = replace(Options(), **options)
    known = Speeds.load(tmp_path / "cache", tmp_path / "runs", how)
    return known.nearest(replace(LAPTOP.base, **(hyper or {})), None, flops)


def test_a_processor_has_the_name_that_records_have() -> None:
    assert this_machine().cpu == provenance()["cpu"]


def test_a_trial_is_found_again_and_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    assert nearest(tmp_path) is None
    note_trial(tmp_path / "cache", TRIED)
    assert nearest(tmp_path) == TRIED
    note_trial(tmp_path / "cache", replace(TRIED, row="another"))
    note_trial(tmp_path / "cache", replace(TRIED, step=0.07))
    assert nearest(tmp_path) == replace(TRIED, step=0.07)
    assert len(tried(tmp_path / "cache")) == 2


@pytest.mark.parametrize("change", [{"threads": 2}, {"precision": "bf16"}, {"devices": 2}])
def test_other_settings_have_another_speed(tmp_path: Path, change: dict[str, Any]) -> None:
    note_trial(tmp_path / "cache", TRIED)
    assert nearest(tmp_path, **change) is None


def test_a_finished_run_says_how_fast_its_row_is_whatever_its_schedule(tmp_path: Path) -> None:
    kept(tmp_path / "runs", hyper__steps=900, hyper__warmup=7)
    found = nearest(tmp_path)
    assert found
    assert (found.step, found.sentence, found.flops, found.tokens) == (0.05, 0.005, FLOPS, 512)
    assert found.row == TRIED.row


@pytest.mark.parametrize(
    "change",
    [
        {"stamp__cpu": "Z80"},
        {"stamp__device": "NVIDIA H100"},
        {"stamp__versions__torch": "2.11.0"},
        {"stamp__n_threads": 2},
        {"cost__steps": 0},
        {"cost__train_seconds": 0},
        {"cost__train_seconds": 9.0},  # mostly the beginning of a process
    ],
)
def test_a_run_of_another_machine_or_of_nothing_says_nothing(tmp_path: Path, change: dict[str, Any]) -> None:
    kept(tmp_path / "runs", **change)
    assert nearest(tmp_path) is None


def test_the_run_most_alike_counts(tmp_path: Path) -> None:
    kept(tmp_path / "runs", 1, cost__train_seconds=18.0, cost__flops=3.6e11)  # the row, ten times fewer operations
    kept(tmp_path / "runs", 2, hyper__n_heads=4, cost__train_seconds=180.0)
    kept(tmp_path / "runs", 3, hyper__n_heads=16, cost__train_seconds=360.0, cost__flops=7.2e12)

    def step(flops: float, **hyper: Any) -> float:
        found = nearest(tmp_path, flops, hyper)
        assert found
        return found.step

    assert step(FLOPS) == 0.01, "the same row before all others"
    assert step(FLOPS, n_heads=1) == 0.1, "else as many operations"
    assert step(1.2 * FLOPS, n_heads=1) == 0.1
    assert step(1.9 * FLOPS, n_heads=1) == 0.2


def test_a_run_that_has_finished_counts_before_all_trials(tmp_path: Path) -> None:
    """A run shows what the machine does beside others; a trial of three seconds counts its processor's time alone."""
    note_trial(tmp_path / "cache", replace(TRIED, step=0.01, made="2027-01-01T00:00:00+00:00"))
    kept(tmp_path / "runs", hyper__n_heads=4, cost__flops=3.5e12)
    found = nearest(tmp_path)
    assert found
    assert found.step == 0.05


def test_of_one_row_the_newest_counts(tmp_path: Path) -> None:
    for hour, seconds in ((12, 90.0), (14, 180.0), (13, 45.0)):
        started = f"2026-11-22T{hour}:00:00+00:00"
        kept(tmp_path / "runs", hour, stamp__started=started, cost__train_seconds=seconds)
    found = nearest(tmp_path)
    assert found
    assert found.step == 0.1


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 2}', '{"format": 2, "known": [], "sha256": "0"}', "\0"])
def test_a_damaged_file_says_nothing_and_is_made_anew(tmp_path: Path, damage: str) -> None:
    (tmp_path / "speed.json").write_text(damage)
    assert tried(tmp_path) == []
    note_trial(tmp_path, TRIED)
    assert tried(tmp_path) == [TRIED]


def test_damaged_records_do_no_harm(tmp_path: Path) -> None:
    kept(tmp_path / "runs")
    kept(tmp_path / "runs", 2, status="diverged")
    (tmp_path / "runs" / f"{1:016}" / "record.json").write_text("{")
    found = nearest(tmp_path)
    assert found
    assert (found.step, found.sentence) == (0.05, None), "what diverged was trained, and translated nothing"


def test_a_gpu_is_found_without_asking_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.runs.cards.present", lambda: ("NVIDIA H100 80GB HBM3",))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    this_machine.cache_clear()
    try:
        assert this_machine().device == "NVIDIA H100 80GB HBM3"
        this_machine.cache_clear()
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        assert this_machine().device == this_machine().cpu
    finally:
        this_machine.cache_clear()


def test_the_peaks_of_a_card_are_of_whole_updates_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = replace(HERE, device="A card")
    monkeypatch.setattr(rates, "this_machine", lambda: card)
    stamp = RECORD["stamp"] | {"device": "A card"}
    kept(tmp_path / "runs", 1, stamp=stamp, cost__peak_memory_bytes=5)
    kept(tmp_path / "runs", 2, stamp=stamp, cost__peak_memory_bytes=7)
    kept(tmp_path / "runs", 3, stamp=stamp, cost__peak_memory_bytes=9, settings__accumulate=2)  # of half an update
    kept(tmp_path / "runs", 4, cost__peak_memory_bytes=9)  # of the host
    kept(tmp_path / "runs", 5, stamp=stamp, cost__peak_memory_bytes=None, settings__batch_tokens=99)
    how = speed_conditions(card, 1, 1, "fp32")
    note_trial(tmp_path / "cache", replace(TRIED, how=how, tokens=64, memory=3))
    assert card_peaks(tmp_path / "cache", tmp_path / "runs", Options()) == {(TRIED.row, 512): 7, (TRIED.row, 64): 3}
    monkeypatch.undo()
    assert card_peaks(tmp_path / "cache", tmp_path / "runs", Options()) == {}
