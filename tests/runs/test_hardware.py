"""Hours and money on cards that are not here, against what their sources say."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from repro.experiment import main
from repro.model.config import BASE, Hyper
from repro.runs import forecast as forecasts
from repro.runs.forecast import card_for, estimate, forecast, hours_of, rate_on
from repro.runs.hardware import BIG, CARDS, pair_flops
from repro.runs.options import Options
from repro.runs.rates import Machine
from repro.runs.scales import SCALES
from repro.runs.sizes import size, sweep_bytes
from repro.runs.table import Cell, Paper, Row, Table, cells
from repro.runs.task import Translation

PAPER, A100 = SCALES["paper"], CARDS["a100"]
TABLE = Table(name="t", rows=[Row("big", lambda base: replace(BIG, steps=3 * base.steps), Paper())], title="T")


def asked() -> list[Cell]:
    return cells([TABLE], PAPER.base, seeds=[1], chosen=[], task=Translation("en-de"))


def test_the_papers_own_machine_takes_as_long_as_the_paper_says() -> None:
    # section 5.2: "100,000 steps or 12 hours", and "300,000 steps (3.5 days)", on 8 P100
    base, big = (hours_of(cell, PAPER, CARDS["p100"], 8) for cell in asked())
    assert base == pytest.approx(12, rel=0.1)
    assert big == pytest.approx(3.5 * 24, rel=0.05)


def test_published_rates_in_operations() -> None:
    assert A100.big / 1e12 == pytest.approx(104.2, rel=0.01)
    assert CARDS["p100"].base / 1e12 == pytest.approx(2.97, rel=0.01)
    assert CARDS["p100"].big / pair_flops(BIG) == pytest.approx(3_125)  # 25,000 a second on 8


def test_what_is_extrapolated_says_so() -> None:
    for card in CARDS.values():
        assert card.is_published == ("extrapolated" not in card.source), card.name
        assert card.rate(BASE) == card.base
        assert card.rate(replace(BASE, d_model=1024)) == card.rate(BIG) == card.big > card.base


def test_several_cards_keep_less_each() -> None:
    assert [A100.efficiency(n) for n in (1, 2, 4, 5, 8, 64)] == [1, 0.8725, 0.8725, 0.84, 0.84, 0.84]
    [cell, _] = asked()
    one, eight = (hours_of(cell, PAPER, A100, n) for n in (1, 8))
    assert 8 * 0.84 * 0.97 < one / eight <= 8 * 0.84  # but for what one card does alone


def test_what_one_card_translates_is_that_of_its_source() -> None:
    captions, base, big = SCALES["captions"], SCALES["captions"].base, replace(BIG, steps=1_000)

    def scoring(hyper: Hyper) -> float:
        cell = replace(asked()[0], hyper=hyper)
        return estimate(cell, captions, rate_on(A100, cell, captions, 8)).scoring

    # dev and test by two weights and another test set once, in sentences of 16 tokens, 7,988 tokens a second of big
    assert scoring(big) == pytest.approx((2 * 2_014 + 1_000) * 16 / 7_988, rel=0.3)  # by a smaller vocabulary
    assert scoring(base) < scoring(big)


def lines(**options: object) -> list[str]:
    chosen = replace(Options(dry_run=True), **options)  # type: ignore[arg-type]
    return forecast("t", asked(), PAPER, chosen).split("\n")


def test_hours_and_money_are_of_the_card_and_no_line_is_of_this_machine() -> None:
    hours = [hours_of(cell, PAPER, A100, 8) for cell in asked()]
    found = lines(hardware="a100", devices=8, price=2.0)
    [whole] = [
        line for line in found if line.startswith("Times are those of 8 a100, by published rates, and not of this")
    ]
    assert whole.endswith(
        f"{sum(hours):,.1f} hours, {8 * sum(hours):,.1f} device-hours, {16 * sum(hours):,.2f} in money."
    )
    assert not [line for line in found if "Memory" in line or "free" in line or "at a time" in line]
    assert "Of 8 each keeps 84% of its speed." in "".join(found)
    assert "money" not in "".join(lines(hardware="h100"))
    assert "this PyTorch has no kernels for it" in "".join(lines(hardware="p100"))
    kept = sweep_bytes((cell.hyper, PAPER, "en-de", None) for cell in asked())
    assert f"Disk: checkpoints at most {size(kept)}; wmt14 en-de " in found[-1]


CPU, GPU = Machine("Z80", "Z80", "2.13.0"), Machine("Z80", "NVIDIA H200", "2.13.0")


@pytest.mark.parametrize(
    ("machine", "scale", "options", "card"),
    [
        (CPU, "laptop", {}, None),
        (CPU, "single_gpu", {}, "a100"),  # not 344.6 d of this machine
        (CPU, "paper", {"on": "ray"}, "a100"),
        (CPU, "paper", {"dry_run": False}, None),  # who begins it here is told how long it takes here
        (CPU, "paper", {"dry_run": False, "on": "slurm"}, "a100"),
        (GPU, "single_gpu", {}, None),
    ],
)
def test_the_machine_that_makes_the_runs_is_forecast(
    machine: Machine, scale: str, options: dict[str, Any], card: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecasts, "this_machine", lambda: machine)
    found = card_for(SCALES[scale], replace(Options(dry_run=True), **options))
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
