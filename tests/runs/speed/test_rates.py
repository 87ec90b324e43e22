"""What is known of a row's speed, and that what is damaged is not."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from repro.results.provenance import provenance
from repro.runs.options import Options
from repro.runs.scales import SCALES
from repro.runs.speed import rates
from repro.runs.speed.rates import Rates, Speeds, fastest, read_rates, save_rates, speed_key, this_machine
from repro.runs.table import Cell, cells
from repro.runs.task import Translation
from repro.storage import signed_json

LAPTOP, EN_DE = SCALES["laptop"], Translation("en-de")
RATES = Rates(step=0.05, sentence=0.004, flops=2e9, made="2026-11-22T18:00:00+00:00", origin="measured")
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


def base_cell() -> Cell:
    [one] = cells([], LAPTOP.base, seeds=[1], chosen=["base"], task=EN_DE)
    return one


def kept(runs: Path, number: int = 1, **changes: Any) -> None:
    content = json.loads(json.dumps(RECORD))
    for path, value in changes.items():
        *parts, last = path.split("__")
        place = content
        for part in parts:
            place = place[part]
        place[last] = value
    signed_json.write(runs / f"{number:016}" / "record.json", content)


def known(tmp_path: Path, **options: Any) -> Rates | None:
    how = replace(Options(), **options)
    return Speeds.load(tmp_path / "cache", tmp_path / "runs", how).of(base_cell(), LAPTOP)


def test_a_processor_has_the_name_that_records_have() -> None:
    assert this_machine().cpu == provenance()["cpu"]


def test_what_was_measured_is_found_again(tmp_path: Path) -> None:
    assert known(tmp_path) is None
    key = rates.key_of_cell(base_cell(), LAPTOP, Options())
    save_rates(tmp_path / "cache", {key: RATES})
    assert known(tmp_path) == RATES
    save_rates(tmp_path / "cache", {"0" * 64: RATES})  # another row's stands beside it
    assert known(tmp_path) == RATES


@pytest.mark.parametrize("change", [{"threads": 2}, {"precision": "bf16"}, {"backend": "ctranslate2"}, {"devices": 2}])
def test_other_settings_have_another_speed(tmp_path: Path, change: dict[str, Any]) -> None:
    save_rates(tmp_path / "cache", {rates.key_of_cell(base_cell(), LAPTOP, Options()): RATES})
    assert known(tmp_path, **change) is None


def test_row_machine_and_text_decide_and_the_schedule_does_not() -> None:
    def key(hyper: dict[str, Any] | None = None, scale: dict[str, Any] | None = None, **machine: Any) -> str:
        changed = replace(LAPTOP.base, **(hyper or {}))
        return speed_key(changed, replace(LAPTOP, **(scale or {})), EN_DE, None, Options(), replace(HERE, **machine))

    assert key() == key({"steps": 900, "warmup": 7, "average": 5, "lr_factor": 2.0})
    others = [
        key({"n_heads": 32, "d_k": 2, "d_v": 2}),
        key({"dropout": 0.0}),
        key(scale={"batch_tokens": 1024}),
        key(scale={"vocab_size": 600}),
        key(scale={"corpus": "tatoeba"}),
        key(cpu="Z80"),
        key(torch="2.11.0"),
        key(device="NVIDIA H100"),
    ]
    assert len({key(), *others}) == 1 + len(others)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"format": 1}', '{"format": 1, "rates": {}, "sha256": "0"}', "\0"])
def test_a_damaged_file_says_nothing_and_is_made_anew(tmp_path: Path, damage: str) -> None:
    (tmp_path / "speed.json").write_text(damage)
    assert read_rates(tmp_path) == {}
    save_rates(tmp_path, {"a": RATES})
    assert read_rates(tmp_path) == {"a": RATES}


def test_a_rate_that_cannot_be_is_left_out(tmp_path: Path) -> None:
    good = asdict(RATES)
    bad: list[Any] = [
        good | {"step": 0.0},
        good | {"step": -1},
        good | {"sentence": "fast"},
        good | {"step": True},
        good | {"made": "yesterday"},
        good | {"made": "2026-11-22T18:00:00"},  # where on earth?
        good | {"surplus": 1},
        {},
        None,
    ]
    content = {"format": 1, "rates": {**{f"bad{i}": one for i, one in enumerate(bad)}, "good": good}}
    signed_json.write(tmp_path / "speed.json", content)
    assert read_rates(tmp_path) == {"good": RATES}


def test_a_finished_run_is_a_measurement(tmp_path: Path) -> None:
    kept(tmp_path / "runs")
    found = known(tmp_path)
    assert found
    assert (found.step, found.sentence, found.flops, found.origin) == (0.05, 0.005, 2e9, "run")
    kept(
        tmp_path / "runs", hyper__steps=1000, cost__steps=1000, cost__train_seconds=50.0, cost__flops=2e12
    )  # a shorter one says as much
    assert known(tmp_path) == found


@pytest.mark.parametrize(
    "change",
    [
        {"stamp__cpu": "Z80"},
        {"stamp__device": "NVIDIA H100"},
        {"stamp__versions__torch": "2.11.0"},
        {"settings__threads": 2},
        {"hyper__n_heads": 4},
        {"corpus__name": "tatoeba"},
        {"system": "toy.Toy()"},
        {"cost__steps": 0},
        {"settings__batch_tokens": 1024},
    ],
)
def test_a_run_of_another_machine_or_row_says_nothing(tmp_path: Path, change: dict[str, Any]) -> None:
    kept(tmp_path / "runs", **change)
    assert known(tmp_path) is None


def test_a_run_that_learned_nothing_does_not_say_how_long_it_translates(tmp_path: Path) -> None:
    kept(tmp_path / "runs", hyper__steps=100, cost__steps=100)  # of a warm-up of 800
    found = known(tmp_path)
    assert found
    assert found.step
    assert found.sentence is None


def test_damaged_and_older_records_do_no_harm(tmp_path: Path) -> None:
    kept(tmp_path / "runs")
    (tmp_path / "runs" / f"{1:016}" / "record.json").write_text("{")
    assert known(tmp_path) is None
    kept(tmp_path / "runs")
    file = tmp_path / "runs" / f"{1:016}" / "record.json"
    content = json.loads(file.read_text())
    del content["sha256"]
    for name in ("fill", "threads", "engine"):
        del content["settings"][name]
    signed_json.write(file, content)
    assert known(tmp_path) is not None


def test_of_the_newest_the_fastest_counts() -> None:
    def made(hour: int, step: float, sentence: float | None = None) -> Rates:
        return replace(RATES, made=f"2026-11-22T{hour:02}:00:00+00:00", step=step, sentence=sentence)

    assert fastest([]) is None
    # busy hours are slow ones; what was fast before the newest three was another state of the machine
    found = fastest([made(1, 0.01), made(3, 0.09), made(2, 0.05, 0.004), made(4, 0.06, 0.007)])
    assert found
    assert (found.step, found.sentence) == (0.05, 0.004)


@dataclass(frozen=True)
class Elsewhere:
    """A machine whose files say what a test wants."""

    folder: Path

    def has(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).mkdir()
            (self.folder / name / "information").write_text(text)


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
