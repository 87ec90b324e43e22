"""What a dry run says of rows by what is known of this machine, and of runs that are done or half made."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from repro.corpora.catalogue import GrammarSizes
from repro.model.config import Hyper
from repro.runs import forecast as forecasts
from repro.runs.forecast import Estimate, duration, estimate, expected_flops, forecast, held_out, rate_here
from repro.runs.options import Options, Seeds
from repro.runs.rates import FLOPS_PER_CORE, Known, note_trial, row_of, speed_conditions, this_machine
from repro.runs.scales import SCALES, Scale
from repro.runs.standing import NOT_BEGUN, Standing
from repro.runs.table import Cell, Paper, Row, Table, cells
from repro.runs.task import Translation
from repro.storage import atomic

LAPTOP = replace(SCALES["laptop"], grammar=GrammarSizes(n_train=20_000, n_dev=500, n_test=500))  # of hand's numbers


def heads(base: Hyper) -> Hyper:
    return replace(base, n_heads=32, d_k=1, d_v=2)  # fewer operations than the base


TABLE = Table(name="t", rows=[Row("h=32", heads, Paper())], title="T")


def asked(base: Hyper = LAPTOP.base, seeds: int = 1) -> list[Cell]:
    return cells([TABLE], base, seeds=range(1, seeds + 1), chosen=[], task=Translation("en-de"))


BASE, H32 = asked()


def known(cell: Cell, step: float, sentence: float | None = 0.004, scale: Scale = LAPTOP) -> Known:
    """What a run of the cell took, an update and a sentence of it."""
    flops = expected_flops(cell.hyper, scale, "en-de") / cell.hyper.steps
    return Known(
        how=speed_conditions(this_machine(), 1, 1, "fp32"),
        row=row_of(vars(cell.hyper), None),
        flops=flops,
        tokens=scale.batch_tokens,
        train=flops / step,
        search=sentence and flops / scale.batch_tokens / sentence,
        made="2026-11-22T18:00:00+00:00",
    )


def expected(cell: Cell, *runs: Known, scale: Scale = LAPTOP, sentences: Any = None, **options: int) -> Estimate:
    """Of the cell, where these runs are known."""
    return estimate(cell, scale, rate_here(cell, scale, replace(Options(), **options), runs), sentences)


def test_an_estimate_has_training_validation_and_translation() -> None:
    both = known(BASE, 0.03), known(H32, 0.06)
    base, h32 = (expected(cell, *both) for cell in (BASE, H32))
    assert base.measured and h32.measured  # noqa: PT018 (one fact of two rows)
    # 6 validations of 500 sentences of 16 tokens; an update reads 512 tokens, a third of its time forward
    assert base.training == pytest.approx(0.03 * (1800 + 6 * 500 * 16 / 512 / 3))
    assert h32.training == pytest.approx(2 * base.training)
    assert base.scoring == pytest.approx(2 * 1000 * 0.004)
    assert base.seconds == base.to_come(0.0) == base.training + base.scoring
    assert base.to_come(0.75) == pytest.approx(base.training / 4 + base.scoring)
    own = expected(BASE, *both, sentences=(1_000, 7))  # as a text that was opened says
    assert own.training == pytest.approx(0.03 * (1800 + 6 * 1_000 * 16 / 512 / 3))
    assert own.scoring == pytest.approx(2 * 1_007 * 0.004)


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
    flops = expected_flops(LAPTOP.base, LAPTOP, "en-de") * (1 + 6 * 500 * 16 / 512 / 3 / 1800)
    assert guess.training == pytest.approx(flops / FLOPS_PER_CORE)
    assert expected(BASE, threads=2).training == pytest.approx(guess.training / 2)
    assert 0 < guess.scoring < guess.training


def test_a_translation_that_was_not_timed_follows_from_the_step() -> None:
    tried = known(BASE, 0.03, sentence=None)
    found = expected(BASE, tried)
    assert found.measured
    assert found.scoring == pytest.approx(2 * 1000 * 16 * (4 * 1.17 + 1) * 0.03 / 3 / 512)
    assert expected(BASE, tried, devices=2).scoring == pytest.approx(2 * found.scoring), "one translates"


def test_how_much_is_translated() -> None:
    assert held_out(LAPTOP, "en-de") == (500, 500, 0)
    assert held_out(SCALES["captions"], "en-de") == (1014, 1000, 1000)
    assert held_out(SCALES["paper"], "en-fr") == (3000, 3003, 0)
    assert held_out(replace(LAPTOP, corpus="folder"), "en-de") == (3000, 3000, 0)


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """Of a dry run in which an update of both rows is known to take 0.1 s, and a sentence 0.004 s."""
    found = Options(cache_dir=tmp_path, runs_dir=tmp_path / "runs", seeds=Seeds.span(1, 2), dry_run=True)
    for cell in asked():
        note_trial(tmp_path, known(cell, 0.1))
    return found


def said(options: Options, at_a_time: tuple[int, str] = (1, ""), **standing: Standing) -> str:
    """The forecast of two seeds of both rows; `standing` of the base by seed: s1, s2."""
    runs = asked(seeds=2)
    found = {cell: standing.get(f"s{cell.seed}", NOT_BEGUN) for cell in runs if cell.row.name == "base"}
    return forecast("t", runs, LAPTOP, options, at_a_time, found)


def test_guessed_times_are_announced_with_the_command_to_measure(options: Options) -> None:
    assert "guessed" not in said(options)
    text = said(replace(options, cache_dir=options.runs_dir))
    assert "No run has finished on such a machine" in text
    assert re.search(r"for about 3 s first: \S*python\S* experiments/t.py .* --dry-run --measure$", text, re.MULTILINE)


def test_each_row_is_there_once_by_hand(options: Options) -> None:
    # 1,800 updates of 512 tokens a side, in sentences of 16. Multiplications of a source token: 3 layers of
    # 2 * 8,192 + 2 * 4,096 + 32,768 + 16 * 128; of a target token: 3,000 * 64 and 3 layers of
    # 8,192 + 4 * 4,096 + 32,768 + (8 + 16) * 128
    flops = 3 * 2 * 1_800 * 512 * (3 * 59_392 + 192_000 + 3 * 60_416)
    assert expected_flops(LAPTOP.base, LAPTOP, "en-de") == flops
    lines = said(options).split("\n")
    assert lines[0] == "t at scale laptop: 4 runs on grammar, 2 seeds: 1 to 2; shows the sign of large effects."
    assert [line.split() for line in lines[2:4]] == [
        ["base", "2", "1,800", "0.54M", "65.1M", "1.8e+06", "3.0e+12", "3.2", "min", "6.4", "min"],
        ["h=32", "2", "1,800", "0.50M", "48.0M", "1.8e+06", "2.8e+12", "3.2", "min", "6.4", "min"],
    ]
    assert lines[4] == (
        "In all about 12.7 min to come (4 to begin), one run after the other: 12.2 min of training, 32 s of "
        "translating and scoring."
    )


def test_finished_and_half_made_runs_shorten_the_forecast(options: Options) -> None:
    done, half = Standing(done=True, step=1_800, trained=1.0), Standing(done=False, step=900, trained=0.5)
    lines = said(options, s1=done, s2=half).split("\n")
    # left of the base: 90 s of training, 1.5 of validation, 8 of translation by two weights; of h=32: two runs of 191 s
    assert lines[2].endswith("    100 s  seed 1 done, seed 2 at step 900 of 1,800")
    assert "In all about 8.0 min to come (1 finished, 1 half made, 2 to begin), one run after the other" in lines[4]
    assert said(options, s1=done, s2=done).split("\n")[2].split()[-8:-6] == ["0", "s"]


def test_runs_side_by_side_end_sooner(options: Options) -> None:
    note_trial(options.cache_dir, known(H32, 0.2))
    text = said(options, at_a_time=(2, "2 processors"))
    # 191 s of the base and 374 s of h=32, twice: longest first, 565 s each
    assert "In all about 18.8 min to come (4 to begin), one run after the other" in text
    assert "With 2 runs at a time (2 processors) about 9.4 min, if nothing else" in text
    assert "at a time" not in said(options)


@pytest.mark.parametrize(("on", "jobs", "expected"), [("ray", None, "4 runs"), ("slurm", 2, "2 runs")])
def test_runs_elsewhere_are_not_forecast_by_what_is_free_here(
    options: Options, on: str, jobs: int | None, expected: str
) -> None:
    text = said(replace(options, on=on, jobs=jobs))
    assert f"With {expected} at a time ({'--jobs' if jobs else '--on ray, if it gives as many'}) about " in text
    assert f"Times are those of a machine like this one, {this_machine().device}." in text
    assert re.search(r"^Memory: \S+ [GM]B for the largest run, base\.$", text, re.MULTILINE), (
        "of none that is free here"
    )


def test_a_dry_run_names_memory_disk_and_what_is_slow(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasts, "free_memory", lambda: 5_000_000_000)
    monkeypatch.setattr(forecasts, "slow_products", lambda options: [f"slow: {options.precision}"])
    monkeypatch.setattr(atomic, "free", lambda folder: 7_000_000_000)
    text = said(replace(options, precision="bf16"))
    assert " for the largest run, base; 5.0 GB free." in text
    assert "slow: bf16" in text.split("\n")
    assert re.search(r"Disk: checkpoints at most [\d.]+ MB; 7\.0 GB free\.$", text)
    monkeypatch.setattr(atomic, "free", lambda folder: None)
    assert said(options).endswith("; unknown free.")


def test_times_are_said_as_a_person_says_them() -> None:
    assert [duration(seconds) for seconds in (0.4, 119, 120, 7_199, 7_200, 172_799, 259_200)] == [
        "0 s", "119 s", "2.0 min", "120.0 min", "2.0 h", "48.0 h", "3.0 d",
    ]  # fmt: skip
