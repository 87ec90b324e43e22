"""What a dry run says of rows, by what finished runs tell of this machine, or by what is published of cards."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from repro.experiment import main
from repro.model.config import BASE as BASE_HYPER
from repro.model.config import Hyper
from repro.runs import forecast as forecasts
from repro.runs.forecast import (
    FLOPS_PER_CORE,
    Estimate,
    Known,
    Machine,
    card_for,
    duration,
    estimate_here,
    expected_flops,
    finished,
    forecast,
    hours_of,
    row_of,
    this_machine,
)
from repro.runs.hardware import BIG, CARDS, pair_flops
from repro.runs.options import Options, Seeds
from repro.runs.run_dir import RunDir, planned
from repro.runs.scales import SCALES
from repro.runs.sizes import size, sweep_bytes
from repro.runs.table import Paper, Row, Table
from repro.storage import signed_json

LAPTOP, PAPER, A100 = SCALES["laptop"], SCALES["paper"], CARDS["a100"]


def heads(base: Hyper) -> Hyper:
    return replace(base, n_heads=32, d_k=1, d_v=2)  # fewer operations than the base


TABLE = Table(name="t", rows=[Row("h=32", heads, Paper())], title="T")


def asked(**options: Any) -> list[RunDir]:
    return planned([TABLE], LAPTOP, Options(**options))


BASE, H32 = asked()


def changed(run: RunDir, **hyper: Any) -> RunDir:
    return replace(run, spec=replace(run.spec, hyper=replace(run.spec.hyper, **hyper)))


def known(run: RunDir, seconds: float) -> Known:
    """A run that took so long."""
    flops = expected_flops(run.spec.hyper, LAPTOP, "en-de")
    return Known(row_of(vars(run.spec.hyper), None), flops / run.spec.hyper.steps, flops, flops / seconds)


def expected(run: RunDir, *runs: Known) -> Estimate:
    """Of the run, where these are known, the newest first."""
    return estimate_here(run, runs)


# ---- this machine, by runs that finished here


def test_a_run_takes_as_long_as_the_newest_of_its_row_whatever_the_schedule() -> None:
    runs = known(BASE, 60.0), known(H32, 120.0), known(BASE, 30.0)
    assert expected(BASE, *runs) == (pytest.approx(60.0), True)
    assert expected(H32, *runs) == (pytest.approx(120.0), True)
    assert expected(changed(BASE, steps=900, warmup=7), *runs).seconds == pytest.approx(30.0)
    assert expected(BASE, *runs).to_come(0.75) == pytest.approx(15.0)
    trial = changed(BASE, steps=BASE.spec.hyper.steps // 10)  # half of its 12 seconds is scoring
    assert expected(BASE, known(trial, 12.0), *runs).seconds == pytest.approx(60.0), "by the run that was as long"


def test_a_row_that_never_ran_takes_its_operations_at_the_rate_of_the_most_alike() -> None:
    fewer = expected_flops(H32.spec.hyper, LAPTOP, "en-de") / expected_flops(LAPTOP.base, LAPTOP, "en-de")
    wide = changed(BASE, d_ff=4 * LAPTOP.base.d_ff)
    assert expected(H32, known(wide, 500.0), known(BASE, 80.0)) == (pytest.approx(80.0 * fewer), True)


def test_without_known_runs_times_are_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    guess = expected_flops(LAPTOP.base, LAPTOP, "en-de") / FLOPS_PER_CORE
    assert expected(BASE) == (pytest.approx(guess), False)
    several = replace(BASE, spec=replace(BASE.spec, threads=2, devices=3))
    assert expected(several).seconds == pytest.approx(guess / 6)
    for device, name in (("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA RTX 4090", "a100")):  # a card, by its name
        monkeypatch.setattr(forecasts, "this_machine", lambda device=device: Machine("Z80", device, "2.13.0"))
        assert expected(BASE) == (3600 * hours_of(BASE, CARDS[name]), False)


HERE = this_machine()
RECORD: dict[str, Any] = {  # of a run of the base at `laptop` here; what nobody asks for is left out
    "format": 2,
    "hyper": asdict(LAPTOP.base),
    "settings": {"devices": 1, "precision": "fp32"},
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
Keep = Callable[..., list[Known]]


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    """Keeps a run's record, with other values at some places (stamp__cpu is that of the stamp); what is known then."""

    def one_more(number: int = 1, **changes: Any) -> list[Known]:
        content = json.loads(json.dumps(RECORD))
        for path, value in changes.items():
            *parts, last = path.split("__")
            place = content
            for part in parts:
                place = place[part]
            place[last] = value
        signed_json.write(tmp_path / f"{number:016}" / "record.json", content)
        return finished(Options(runs_dir=tmp_path))

    return one_more


def test_a_finished_run_says_how_fast_its_row_is(keep: Keep) -> None:
    row = row_of(asdict(LAPTOP.base), None)
    assert keep(hyper__steps=900, hyper__warmup=7) == [Known(row, 2e9, 3.6e12, 3.6e10)]  # in 90 s and 10 s
    older = keep(2, stamp__started="2026-11-22T16:00:00+00:00", cost__train_seconds=30.0)
    assert [one.rate for one in older] == [3.6e10, 9e10], "the newest first"
    assert keep(system="toy.Toy")[0].row != row


@pytest.mark.parametrize(
    "change",
    [
        {"stamp__cpu": "Z80"},
        {"stamp__device": "NVIDIA H100"},
        {"stamp__versions__torch": "2.11.0"},
        {"stamp__n_threads": 2},
        {"settings__devices": 2},
        {"settings__precision": "bf16"},
        {"status": "diverged"},
        {"cost__steps": 0},
        {"cost__train_seconds": 9.0},  # mostly the beginning of a process
    ],
)
def test_runs_of_other_machines_and_short_runs_are_ignored(keep: Keep, change: dict[str, Any]) -> None:
    assert keep(**change) == []


@pytest.mark.parametrize("damage", ["", "[]", '{"format": 3, "sha256": "0"}'])
def test_damaged_files_are_ignored(keep: Keep, tmp_path: Path, damage: str) -> None:
    keep(1)
    (tmp_path / f"{1:016}" / "record.json").write_text(damage)
    assert len(keep(2)) == 1


def test_a_gpu_is_found_without_asking_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.runs.cards.present", lambda: ("NVIDIA H100 80GB HBM3",))
    for hidden, device in ((None, "NVIDIA H100 80GB HBM3"), ("", HERE.cpu)):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if hidden is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert this_machine.__wrapped__().device == device


# ---- cards that are not here, against what their sources say


def of_paper(devices: int) -> list[RunDir]:
    big = Row("big", lambda base: replace(BIG, steps=3 * base.steps), Paper())
    return planned([replace(TABLE, rows=[big])], PAPER, Options(scale="paper", devices=devices))


def test_the_papers_own_machine_takes_as_long_as_the_paper_says() -> None:
    # section 5.2: "100,000 steps or 12 hours", and "300,000 steps (3.5 days)", on 8 P100
    base, big = (hours_of(run, CARDS["p100"]) for run in of_paper(8))
    assert base == pytest.approx(12, rel=0.1)
    assert big == pytest.approx(3.5 * 24, rel=0.05)


def test_published_rates_in_operations() -> None:
    assert A100.big / 1e12 == pytest.approx(104.2, rel=0.01)
    assert CARDS["p100"].base / 1e12 == pytest.approx(2.97, rel=0.01)
    assert CARDS["p100"].big / pair_flops(BIG) == pytest.approx(3_125)  # 25,000 a second on 8
    for card in CARDS.values():
        assert (card.name == "p100") == ("extrapolated" not in card.source), card.name
        assert card.rate(BASE_HYPER) == card.base
        assert card.rate(replace(BASE_HYPER, d_model=1024)) == card.rate(BIG) == card.big > card.base


def test_several_cards_keep_less_each() -> None:
    assert [A100.efficiency(n) for n in (1, 2, 4, 5, 8, 64)] == [1, 0.8725, 0.8725, 0.84, 0.84, 0.84]
    one, eight = (hours_of(of_paper(n)[0], A100) for n in (1, 8))
    assert one / eight == pytest.approx(8 * 0.84)


def test_hours_and_money_are_of_the_card_and_no_line_is_of_this_machine() -> None:
    def lines(**options: Any) -> list[str]:
        chosen = Options(scale="paper", dry_run=True, **options)
        return forecast("t", of_paper(chosen.processes), PAPER, chosen).split("\n")

    hours = sum(hours_of(run, A100) for run in of_paper(8))
    found = lines(hardware="a100", devices=8, price=2.0)
    [whole] = [line for line in found if line.startswith("Times are those of training on 8 a100, by published rates, ")]
    assert whole.endswith(f"{hours:,.1f} hours, {8 * hours:,.1f} device-hours, {16 * hours:,.2f} in money.")
    assert not [line for line in found if "Memory" in line or "free" in line or "at a time" in line]
    assert "Of 8 each keeps 84% of its speed." in "".join(found)
    assert "money" not in "".join(lines(hardware="h100"))
    assert "this PyTorch has no kernels for it" in "".join(lines(hardware="p100"))
    kept = sweep_bytes((run.spec.hyper, PAPER, "en-de", None) for run in of_paper(8))
    assert f"Disk: checkpoints at most {size(kept)}; wmt14 en-de " in found[-1]


CPU, GPU = Machine("Z80", "Z80", "2.13.0"), Machine("Z80", "NVIDIA H200", "2.13.0")


@pytest.mark.parametrize(
    ("machine", "scale", "options", "card"),
    [
        (CPU, "laptop", {}, None),
        (CPU, "single_gpu", {}, "a100"),  # not 344.6 d of this machine
        (CPU, "paper", {"on": "ray"}, "a100"),
        (CPU, "paper", {"dry_run": False}, None),  # who begins it here is told how long it takes here
        (CPU, "paper", {"dry_run": False, "on": "ray"}, "a100"),
        (GPU, "single_gpu", {}, None),
    ],
)
def test_the_machine_that_makes_the_runs_is_forecast(
    machine: Machine, scale: str, options: dict[str, Any], card: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasts, "this_machine", lambda: machine)
    found = card_for(replace(Options(scale=scale, dry_run=True), **options))
    assert (found.name if found else None) == card


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--hardware=h100"], "--hardware and --price belong to a forecast: expected --dry-run as well"),
        (["--hardware=h101", "--dry-run"], "argument --hardware: invalid choice: 'h101'"),
        (["--price=nan", "--dry-run", "--hardware=h100"], "--price must be a number of at least 0"),
    ],
)
def test_options_without_effect_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main("t", TABLE.rows, ["--scale=smoke", f"--cache-dir={tmp_path}", f"--runs-dir={tmp_path}", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


# ---- what is said


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The forecast of two seeds of both rows, where a run of the base is known to take 180 s and one of h=32 360 s."""
    monkeypatch.setattr(forecasts, "finished", lambda options: [known(BASE, 180.0), known(H32, 360.0)])
    usual = Options(runs_dir=tmp_path / "runs", seeds=Seeds.span(1, 2), dry_run=True)
    monkeypatch.setattr(forecasts, "parallelism", lambda runs, options: (options.jobs or 1, "2 processors"))
    return lambda **more: forecast("t", asked(seeds=usual.seeds), LAPTOP, replace(usual, **more))


def test_each_row_is_there_once_by_hand(said: Callable[..., str]) -> None:
    # 1,800 updates of 512 tokens a side, in sentences of 16. Multiplications of a source token: 3 layers of
    # 2 * 8,192 + 2 * 4,096 + 32,768 + 16 * 128; of a target token: 3,000 * 64 and 3 layers of
    # 8,192 + 4 * 4,096 + 32,768 + (8 + 16) * 128
    flops = 3 * 2 * 1_800 * 512 * (3 * 59_392 + 192_000 + 3 * 60_416)
    assert expected_flops(LAPTOP.base, LAPTOP, "en-de") == flops
    lines = said().split("\n")
    assert lines[0] == "t at scale laptop: 4 runs on grammar, 2 seeds: 1 to 2; shows the sign of large effects."
    assert [line.split() for line in lines[2:4]] == [
        ["base", "2", "1,800", "0.54M", "65.1M", "1.8e+06", "3.0e+12", "3.0", "min"],
        ["h=32", "2", "1,800", "0.50M", "48.0M", "1.8e+06", "2.8e+12", "6.0", "min"],
    ]
    assert lines[4] == "In all about 18.0 min, one run after the other."


def test_runs_side_by_side_end_sooner(said: Callable[..., str]) -> None:
    text = said(jobs=2)
    # 180 s of the base and 360 s of h=32, twice: longest first, 540 s each
    assert "With 2 runs at a time (2 processors) about 9.0 min, if nothing else" in text
    assert "at a time" not in said()


@pytest.mark.parametrize(("on", "jobs", "n"), [("ray", None, 4), ("ray", 2, 2)])
def test_runs_elsewhere_are_not_forecast_by_what_is_free_here(
    said: Callable[..., str], on: str, jobs: int | None, n: int
) -> None:
    text = said(on=on, jobs=jobs)
    assert f"With {n} runs at a time ({'--jobs' if jobs else '--on ray, if it gives as many'}) about " in text
    assert f"Times are those of a machine like this one, {this_machine().device}." in text


def test_times_are_said_as_a_person_says_them() -> None:
    assert [duration(seconds) for seconds in (0.4, 119, 120, 7_199, 7_200, 172_799, 259_200)] == [
        "0 s", "119 s", "2.0 min", "120.0 min", "2.0 h", "48.0 h", "3.0 d",
    ]  # fmt: skip
