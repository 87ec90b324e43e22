"""What a dry run says of rows by what is known of this machine, and of runs that are done or half made."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from repro.corpora.catalogue import GrammarSizes
from repro.model.config import Hyper
from repro.runs.forecast import (
    FLOPS_PER_CORE,
    disk_needed,
    duration,
    estimate,
    expected_flops,
    forecast,
    further_sentences,
    held_out,
    run_memory,
    size,
)
from repro.runs.options import Options, Seeds
from repro.runs.processors import processors
from repro.runs.scales import SCALES
from repro.runs.speed.parallelism import parallelism
from repro.runs.speed.rates import Known, Speeds, note_trial, row_of, speed_conditions, this_machine
from repro.runs.standing import NOT_BEGUN, Standing
from repro.runs.table import Cell, Paper, Row, Table, cells
from repro.runs.task import Translation
from repro.storage import atomic

LAPTOP = replace(SCALES["laptop"], grammar=GrammarSizes(n_train=20_000, n_dev=500, n_test=500))  # of hand's numbers


def heads(base: Hyper) -> Hyper:
    return replace(base, n_heads=32, d_k=1, d_v=2)  # fewer operations than the base


TABLE = Table(name="t", rows=[Row("h=32", heads, Paper())], title="T")


def asked(base: Hyper = LAPTOP.base, seeds: int = 1, pair: str = "en-de") -> list[Cell]:
    return cells([TABLE], base, seeds=range(1, seeds + 1), chosen=[], task=Translation(pair))


def known(cell: Cell, step: float, sentence: float | None = 0.004, devices: int = 1) -> Known:
    """What a run of the cell took, an update and a sentence of it."""
    return Known(
        how=speed_conditions(this_machine(), 1, devices, "fp32"),
        row=row_of(vars(cell.hyper), None),
        flops=expected_flops(cell.hyper, LAPTOP, "en-de") / cell.hyper.steps,
        tokens=512,
        step=step,
        sentence=sentence,
        made="2026-11-22T18:00:00+00:00",
    )


def speeds(*steps: float, **options: int) -> Speeds:
    """What is known where the base and h=32, or the base alone, take so long a step."""
    how = replace(Options(), **options)
    return Speeds(how, [known(cell, step) for cell, step in zip(asked(), steps, strict=False)])


def test_an_estimate_has_training_validation_and_translation() -> None:
    base, h32 = (estimate(cell, LAPTOP, speeds(0.03, 0.06)) for cell in asked())
    assert base.measured and h32.measured  # noqa: PT018 (one fact of two rows)
    assert (base.train_seconds, h32.train_seconds) == pytest.approx((1800 * 0.03, 1800 * 0.06))
    # 6 validations of 500 sentences of 16 tokens; an update reads 512 tokens, a third of its time forward
    assert base.validation_seconds == pytest.approx(6 * 500 * 16 / 512 * 0.03 / 3)
    assert base.decode_seconds == pytest.approx(2 * 1000 * 0.004)
    assert base.seconds == base.train_seconds + base.validation_seconds + base.decode_seconds


def test_of_a_run_that_is_half_trained_the_rest_is_to_come() -> None:
    found = estimate(asked()[0], LAPTOP, speeds(0.03))
    assert found.to_come(0.0) == found.seconds
    assert found.to_come(0.75) == pytest.approx(
        (found.train_seconds + found.validation_seconds) / 4 + found.decode_seconds
    )


def test_a_text_that_was_opened_says_how_many_sentences_it_has() -> None:
    found = estimate(asked()[0], LAPTOP, speeds(0.03), sentences=(1_000, 7))
    assert found.validation_seconds == pytest.approx(6 * 1_000 * 16 / 512 * 0.03 / 3)
    assert found.decode_seconds == pytest.approx(2 * 1_007 * 0.004)


def test_other_test_sets_are_translated_too() -> None:
    captions = SCALES["captions"]
    cell, _ = asked(captions.base)
    fact = replace(
        known(cell, 0.03), flops=expected_flops(cell.hyper, captions, "en-de") / cell.hyper.steps, tokens=2_048
    )
    assert estimate(cell, captions, Speeds(Options(), [fact])).decode_seconds == pytest.approx(
        (2 * (1_014 + 1_000) + 1_000) * 0.004
    )


def test_a_row_that_never_ran_takes_its_operations_at_the_rate_of_another() -> None:
    cell, other = asked()
    flops = {one: expected_flops(one.hyper, LAPTOP, "en-de") for one in (cell, other)}
    beside = estimate(other, LAPTOP, speeds(0.08))
    assert beside.measured
    assert beside.train_seconds == pytest.approx(1800 * 0.08 * flops[other] / flops[cell])
    assert beside.decode_seconds == pytest.approx(2 * 1000 * 0.004 * flops[other] / flops[cell])


def test_where_nothing_is_known_operations_are_guessed_from() -> None:
    cell = asked()[0]
    guess = estimate(cell, LAPTOP, speeds())
    assert not guess.measured
    assert guess.train_seconds == pytest.approx(expected_flops(LAPTOP.base, LAPTOP, "en-de") / FLOPS_PER_CORE)
    assert estimate(cell, LAPTOP, speeds(threads=2)).train_seconds == pytest.approx(guess.train_seconds / 2)
    assert 0 < guess.decode_seconds < guess.train_seconds


def test_a_translation_that_was_not_timed_follows_from_the_step() -> None:
    found = estimate(asked()[0], LAPTOP, Speeds(Options(), [known(asked()[0], 0.03, sentence=None)]))
    assert found.measured
    assert found.decode_seconds == pytest.approx(2 * 1000 * 16 * (4 * 1.17 + 1) * 0.03 / 3 / 512)
    two = Speeds(Options(devices=2), [known(asked()[0], 0.03, sentence=None, devices=2)])
    assert estimate(asked()[0], LAPTOP, two).decode_seconds == pytest.approx(2 * found.decode_seconds), "one translates"


def test_how_much_is_translated() -> None:
    assert held_out(LAPTOP, "en-de") == (500, 500)
    assert held_out(SCALES["captions"], "en-de") == (1014, 1000)
    assert held_out(SCALES["paper"], "en-fr") == (3000, 3003)
    assert held_out(replace(LAPTOP, corpus="folder"), "en-de") == (3000, 3000)
    assert [further_sentences(SCALES[name], "en-de") for name in ("laptop", "captions", "paper")] == [0, 1000, 0]


def said(tmp_path: Path, seeds: int = 1, at_a_time: tuple[int, str] = (1, ""), **standing: Standing) -> str:
    """The forecast of both rows; `standing` of the base by seed: s1, s2."""
    found = {cell: standing.get(f"s{cell.seed}", NOT_BEGUN) for cell in asked(seeds=seeds) if cell.row.name == "base"}
    options = Options(cache_dir=tmp_path, runs_dir=tmp_path / "runs", seeds=Seeds.span(1, seeds))
    return forecast("t", asked(seeds=seeds), LAPTOP, options, at_a_time, found)


def test_where_no_run_has_finished_it_is_said_and_a_trial_helps(tmp_path: Path) -> None:
    text = said(tmp_path, seeds=2)
    assert "No run has finished on such a machine" in text
    assert re.search(r"for about 3 s first: \S*python\S* experiments/t.py .* --dry-run --measure$", text, re.MULTILINE)
    for cell in asked():
        note_trial(tmp_path, known(cell, 0.1))
    text = said(tmp_path, seeds=2)
    assert "guessed" not in text
    assert "In all about 12.7 min to come (4 to begin), one run after the other: 12.0 min of training" in text


def test_each_row_is_there_once_by_hand(tmp_path: Path) -> None:
    # 1,800 updates of 512 tokens a side, in sentences of 16. Multiplications of a source token: 3 layers of
    # 2 * 8,192 + 2 * 4,096 + 32,768 + 16 * 128; of a target token: 3,000 * 64 and 3 layers of
    # 8,192 + 4 * 4,096 + 32,768 + (8 + 16) * 128
    flops = 3 * 2 * 1_800 * 512 * (3 * 59_392 + 192_000 + 3 * 60_416)
    assert expected_flops(LAPTOP.base, LAPTOP, "en-de") == flops
    for cell in asked():
        note_trial(tmp_path, known(cell, 0.1))
    lines = said(tmp_path, seeds=2).split("\n")
    assert lines[0] == "t at scale laptop: 4 runs on grammar, 2 seeds: 1 to 2; shows the sign of large effects."
    assert [line.split() for line in lines[2:4]] == [
        ["base", "2", "1,800", "0.54M", "65.1M", "1.8e+06", "3.0e+12", "3.2", "min", "6.4", "min"],
        ["h=32", "2", "1,800", "0.50M", "48.0M", "1.8e+06", "2.8e+12", "3.2", "min", "6.4", "min"],
    ]
    assert lines[4].startswith("In all about")


def test_what_is_done_or_half_made_is_known(tmp_path: Path) -> None:
    for cell in asked():
        note_trial(tmp_path, known(cell, 0.1))
    done, half = Standing(done=True, step=1_800, trained=1.0), Standing(done=False, step=900, trained=0.5)
    lines = said(tmp_path, seeds=2, s1=done, s2=half).split("\n")
    # left of the base: 90 s of training, 1.5 of validation, 8 of translation by two weights; of h=32: two runs of 191 s
    assert lines[2].endswith("     100 s  seed 1 done, seed 2 at step 900 of 1,800")
    assert (
        "In all about 8.0 min to come (1 finished, 1 half made, 2 to begin), one run after the other: 7.5" in lines[4]
    )
    everything = said(tmp_path, seeds=1, s1=done).split("\n")
    assert everything[2].split()[-5:] == ["0", "s", "seed", "1", "done"]


def test_text_ids_and_archives_take_room_and_what_two_pairs_share_takes_it_once() -> None:
    captions = SCALES["captions"]
    both = [*asked(captions.base), *asked(captions.base, pair="en-fr")]
    # ids: 2 sides of 29,000 sentences, each 16 tokens of 2 bytes and an offset of 4
    text = "11.6 MB of text, 2.1 MB of ids"
    assert disk_needed(both, captions).partition("; ")[2] == (
        f"multi30k en-de {text}; multi30k en-fr {text}; archives at most 256.0 MB"
    )
    assert disk_needed(asked(), LAPTOP).count(";") == 0, "generated text is neither fetched nor kept"


def test_times_and_sizes_are_said_as_a_person_says_them() -> None:
    assert [duration(seconds) for seconds in (0.4, 119, 120, 7_199, 7_200, 172_799, 259_200)] == [
        "0 s", "119 s", "2.0 min", "120.0 min", "2.0 h", "48.0 h", "3.0 d",
    ]  # fmt: skip
    assert [size(n) for n in (64_000, 1e6, 2.56e8, 1e9, 1.57e10)] == [
        "64 kB", "1.0 MB", "256.0 MB", "1.0 GB", "15.7 GB",
    ]  # fmt: skip


def test_runs_side_by_side_end_sooner(tmp_path: Path) -> None:
    for cell, step in zip(asked(), (0.1, 0.2), strict=True):
        note_trial(tmp_path, known(cell, step))
    text = said(tmp_path, seeds=2, at_a_time=(2, "2 processors"))
    # 191 s of the base and 374 s of h=32, twice: longest first, 565 s each
    assert "In all about 18.8 min to come (4 to begin), one run after the other" in text
    assert "With 2 runs at a time (2 processors) about 9.4 min, if nothing else" in text
    assert "at a time" not in said(tmp_path, seeds=2)


@pytest.mark.parametrize(("on", "jobs", "expected"), [("ray", None, "4 runs"), ("slurm", 2, "2 runs")])
def test_runs_elsewhere_are_not_forecast_by_what_is_free_here(
    tmp_path: Path, on: str, jobs: int | None, expected: str
) -> None:
    for cell in asked():
        note_trial(tmp_path, known(cell, 0.1))
    options = Options(cache_dir=tmp_path, runs_dir=tmp_path / "runs", on=on, jobs=jobs)
    text = forecast("t", asked(seeds=2), LAPTOP, options)
    assert f"With {expected} at a time ({'--jobs' if jobs else '--on ray, if it gives as many'}) about " in text
    assert f"Times are those of a machine like this one, {this_machine().device}." in text
    assert re.search(r"^Memory: \S+ [GM]B for the largest run, base\.$", text, re.MULTILINE), (
        "of none that is free here"
    )


@pytest.mark.parametrize(
    ("options", "expected"), [({"jobs": 3}, (3, "--jobs")), ({"jobs": 9}, (4, "--jobs")), ({"devices": 2}, (1, None))]
)
def test_how_many_runs_are_made_at_a_time(options: dict[str, int], expected: tuple[int, str | None]) -> None:
    n, why = parallelism(asked(seeds=2), LAPTOP, Options(**options))
    assert n == expected[0]
    assert expected[1] in (why, None)


def test_as_many_runs_are_made_as_processors_and_memory_allow() -> None:
    n, why = parallelism(asked(seeds=2), LAPTOP, Options())
    assert 1 <= n <= 4
    assert why.startswith(f"{processors()} processors, 1 a run") or "GPU" in why


def test_a_dry_run_names_memory_and_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.runs.forecast.free_memory", lambda: 5_000_000_000)
    monkeypatch.setattr(atomic, "free", lambda folder: 7_000_000_000)
    text = said(tmp_path)
    assert " for the largest run, base; 5.0 GB free." in text
    assert re.search(r"Disk: checkpoints at most [\d.]+ MB; 7\.0 GB free\.$", text)
    monkeypatch.setattr("repro.runs.forecast.free_memory", lambda: None)
    monkeypatch.setattr(atomic, "free", lambda folder: None)
    assert said(tmp_path).count("; unknown free.") == 2


def test_a_larger_model_takes_more_memory() -> None:
    laptop, paper = SCALES["laptop"], SCALES["paper"]
    small, large = (run_memory(of.base, of, "en-de", vectors=()) for of in (laptop, paper))
    assert 0.5e9 < small < 1.2e9
    assert large > 5e9


def test_a_dry_run_warns_of_slow_products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.runs.forecast.slow_products", lambda options: [f"slow: {options.precision}"])
    options = Options(cache_dir=tmp_path, runs_dir=tmp_path, precision="bf16")
    assert "slow: bf16" in forecast("t", asked(), LAPTOP, options, (1, "")).split("\n")
