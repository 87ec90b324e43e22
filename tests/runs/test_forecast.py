"""What a dry run says of rows by what is known of this machine, and of runs that are done or half made."""

from dataclasses import replace
from pathlib import Path

import pytest

from repro.corpora.catalogue import GrammarSizes
from repro.model.config import Hyper
from repro.runs import forecast as forecasts
from repro.runs.forecast import Estimate, duration, estimate, expected_flops, forecast, held_out, rate_here, rate_on
from repro.runs.hardware import CARDS
from repro.runs.options import Options, Seeds
from repro.runs.rates import FLOPS_PER_CORE, Known, Machine, row_of, this_machine
from repro.runs.scales import SCALES, Scale
from repro.runs.standing import NOT_BEGUN, Standing
from repro.runs.table import Cell, Paper, Row, Table, cells
from repro.runs.task import Translation

LAPTOP = replace(SCALES["laptop"], grammar=GrammarSizes(n_train=20_000, n_dev=500, n_test=500))  # of hand's numbers


def heads(base: Hyper) -> Hyper:
    return replace(base, n_heads=32, d_k=1, d_v=2)  # fewer operations than the base


TABLE = Table(name="t", rows=[Row("h=32", heads, Paper())], title="T")


def asked(base: Hyper = LAPTOP.base, seeds: int = 1) -> list[Cell]:
    return cells([TABLE], base, seeds=range(1, seeds + 1), chosen=[], task=Translation("en-de"))


BASE, H32 = asked()


def known(cell: Cell, step: float, sentence: float = 0.004, scale: Scale = LAPTOP) -> Known:
    """What a run of the cell took, an update and a sentence of it."""
    flops = expected_flops(cell.hyper, scale, "en-de") / cell.hyper.steps
    return Known(
        row=row_of(vars(cell.hyper), None),
        flops=flops,
        tokens=scale.batch_tokens,
        train=flops / step,
        search=flops / scale.batch_tokens / sentence,
    )


def expected(cell: Cell, *runs: Known, scale: Scale = LAPTOP, **options: int) -> Estimate:
    """Of the cell, where these runs are known."""
    return estimate(cell, scale, rate_here(cell, scale, replace(Options(), **options), runs))


def test_an_estimate_has_training_validation_and_translation() -> None:
    both = known(BASE, 0.03), known(H32, 0.06)
    base, h32 = (expected(cell, *both) for cell in (BASE, H32))
    assert base.measured and h32.measured  # noqa: PT018 (one fact of two rows)
    assert base.training == pytest.approx(0.03 * 1800)
    assert h32.training == pytest.approx(2 * base.training)
    assert base.scoring == pytest.approx(2 * 1000 * 0.004)
    assert base.seconds == base.to_come(0.0) == base.training + base.scoring
    assert base.to_come(0.75) == pytest.approx(base.training / 4 + base.scoring)


def test_other_test_sets_are_translated_too() -> None:
    captions = SCALES["captions"]
    cell, _ = asked(captions.base)
    found = expected(cell, known(cell, 0.03, scale=captions), scale=captions)
    assert found.scoring == pytest.approx((2 * (1_014 + 1_000) + 1_000) * 0.004)


def test_a_row_that_never_ran_takes_its_operations_at_the_rate_of_another() -> None:
    base, beside = (expected(cell, known(BASE, 0.08)) for cell in (BASE, H32))
    fewer = expected_flops(H32.hyper, LAPTOP, "en-de") / expected_flops(BASE.hyper, LAPTOP, "en-de")
    assert beside.measured
    assert beside.training == pytest.approx(base.training * fewer)
    assert beside.scoring == pytest.approx(2 * 1000 * 0.004 * fewer)


def test_without_known_runs_times_are_guessed() -> None:
    guess = expected(BASE)
    assert not guess.measured
    assert guess.training == pytest.approx(expected_flops(LAPTOP.base, LAPTOP, "en-de") / FLOPS_PER_CORE)
    assert expected(BASE, threads=2).training == pytest.approx(guess.training / 2)
    assert 0 < guess.scoring < guess.training
    assert expected(BASE, devices=2).scoring == pytest.approx(guess.scoring), "one translates"


def test_without_known_runs_a_card_is_as_fast_as_those_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for device, name in (("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA RTX 4090", "a100")):
        monkeypatch.setattr(forecasts, "this_machine", lambda device=device: Machine("Z80", device, "2.13.0"))
        guess, published = expected(BASE), estimate(BASE, LAPTOP, rate_on(CARDS[name], BASE, LAPTOP, 1))
        assert guess == replace(published, measured=False)


def test_how_much_is_translated() -> None:
    assert held_out(LAPTOP, "en-de") == (500, 500, 0)
    assert held_out(SCALES["captions"], "en-de") == (1014, 1000, 1000)
    assert held_out(SCALES["paper"], "en-fr") == (3000, 3003, 0)
    assert held_out(replace(LAPTOP, corpus="folder"), "en-de") == (3000, 3000, 0)


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Options:
    """Of a dry run in which an update of both rows is known to take 0.1 s, and a sentence 0.004 s."""
    monkeypatch.setattr(forecasts, "finished", lambda options: [known(cell, 0.1) for cell in asked()])
    return Options(runs_dir=tmp_path / "runs", seeds=Seeds.span(1, 2), dry_run=True)


def said(options: Options, at_a_time: tuple[int, str] = (1, ""), **standing: Standing) -> str:
    """The forecast of two seeds of both rows; `standing` of the base by seed: s1, s2."""
    runs = asked(seeds=2)
    found = {cell: standing.get(f"s{cell.seed}", NOT_BEGUN) for cell in runs if cell.row.name == "base"}
    return forecast("t", runs, LAPTOP, options, at_a_time, found)


def test_each_row_is_there_once_by_hand(options: Options) -> None:
    # 1,800 updates of 512 tokens a side, in sentences of 16. Multiplications of a source token: 3 layers of
    # 2 * 8,192 + 2 * 4,096 + 32,768 + 16 * 128; of a target token: 3,000 * 64 and 3 layers of
    # 8,192 + 4 * 4,096 + 32,768 + (8 + 16) * 128
    flops = 3 * 2 * 1_800 * 512 * (3 * 59_392 + 192_000 + 3 * 60_416)
    assert expected_flops(LAPTOP.base, LAPTOP, "en-de") == flops
    lines = said(options).split("\n")
    assert lines[0] == "t at scale laptop: 4 runs on grammar, 2 seeds: 1 to 2; shows the sign of large effects."
    assert [line.split() for line in lines[2:4]] == [
        ["base", "2", "1,800", "0.54M", "65.1M", "1.8e+06", "3.0e+12", "3.1", "min", "6.3", "min"],
        ["h=32", "2", "1,800", "0.50M", "48.0M", "1.8e+06", "2.8e+12", "3.1", "min", "6.3", "min"],
    ]
    assert lines[4] == (
        "In all about 12.5 min to come (0 of 4 finished), one run after the other: 12.0 min of training, 32 s of "
        "translating and scoring."
    )


def test_finished_and_half_made_runs_shorten_the_forecast(options: Options) -> None:
    done, half = Standing(done=True, step=1_800, trained=1.0), Standing(done=False, step=900, trained=0.5)
    lines = said(options, s1=done, s2=half).split("\n")
    # left of the base: 90 s of training, 8 of translation by two weights; of h=32: two runs of 188 s
    assert lines[2].endswith("     98 s  seed 1 done, seed 2 at step 900 of 1,800")
    assert "In all about 7.9 min to come (1 of 4 finished), one run after the other" in lines[4]
    assert said(options, s1=done, s2=done).split("\n")[2].split()[-8:-6] == ["0", "s"]


def test_runs_side_by_side_end_sooner(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasts, "finished", lambda options: [known(BASE, 0.1), known(H32, 0.2)])
    text = said(options, at_a_time=(2, "2 processors"))
    # 188 s of the base and 368 s of h=32, twice: longest first, 556 s each
    assert "In all about 18.5 min to come (0 of 4 finished), one run after the other" in text
    assert "With 2 runs at a time (2 processors) about 9.3 min, if nothing else" in text
    assert "at a time" not in said(options)


@pytest.mark.parametrize(("on", "jobs", "expected"), [("ray", None, "4 runs"), ("slurm", 2, "2 runs")])
def test_runs_elsewhere_are_not_forecast_by_what_is_free_here(
    options: Options, on: str, jobs: int | None, expected: str
) -> None:
    text = said(replace(options, on=on, jobs=jobs))
    assert f"With {expected} at a time ({'--jobs' if jobs else '--on ray, if it gives as many'}) about " in text
    assert f"Times are those of a machine like this one, {this_machine().device}." in text


def test_times_are_said_as_a_person_says_them() -> None:
    assert [duration(seconds) for seconds in (0.4, 119, 120, 7_199, 7_200, 172_799, 259_200)] == [
        "0 s", "119 s", "2.0 min", "120.0 min", "2.0 h", "48.0 h", "3.0 d",
    ]  # fmt: skip
