"""What a dry run says of rows that were measured, and of those that were not."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from repro.data.corpora import GrammarSizes
from repro.model.config import Hyper
from repro.runs.forecast import (
    FLOPS_PER_CORE,
    disk_needed,
    duration,
    estimate,
    estimates,
    expected_flops,
    forecast,
    further_sentences,
    held_out,
    run_memory,
    size,
)
from repro.runs.options import Options
from repro.runs.processors import processors
from repro.runs.scales import SCALES
from repro.runs.speed.at_once import runs_at_once
from repro.runs.speed.rates import Rates, Speeds, key_of_cell, save_rates
from repro.runs.table import Cell, Paper, Row, Table, cells
from repro.runs.task import Translation
from repro.storage import atomic

LAPTOP = replace(SCALES["laptop"], grammar=GrammarSizes(n_train=20_000, n_dev=500, n_test=500))  # of hand's numbers


def heads(base: Hyper) -> Hyper:
    return replace(base, n_heads=32, d_k=1, d_v=2)  # fewer operations than the base


TABLE = Table(name="t", rows=[Row("h=32", heads, Paper())], title="T")


def asked(base: Hyper = LAPTOP.base, seeds: int = 1, pair: str = "en-de") -> list[Cell]:
    return cells([TABLE], base, seeds=range(1, seeds + 1), chosen=[], task=Translation(pair))


def rates(step: float, sentence: float | None = 0.004, flops: float = 1.6e9) -> Rates:
    return Rates(step=step, sentence=sentence, flops=flops, made="2026-11-22T18:00:00+00:00", origin="measured")


def speeds(*steps: float | None, **options: int) -> Speeds:
    """What is known where the base and h=32 take so long a step; None: not measured."""
    how = replace(Options(), **options)
    return Speeds(
        how, {key_of_cell(cell, LAPTOP, how): [rates(step)] for cell, step in zip(asked(), steps, strict=True) if step}
    )


def test_an_estimate_has_training_validation_and_translation() -> None:
    base, h32 = estimates(asked(), LAPTOP, speeds(0.03, 0.06))
    assert base.measured and h32.measured  # noqa: PT018 (one fact of two rows)
    assert (base.train_seconds, h32.train_seconds) == (1800 * 0.03, 1800 * 0.06)
    # 6 validations of 500 sentences of 16 tokens; an update reads 512 tokens, a third of its time forward
    assert base.validation_seconds == pytest.approx(6 * 500 * 16 / 512 * 0.03 / 3)
    assert base.decode_seconds == 1000 * 0.004
    assert base.seconds == base.train_seconds + base.validation_seconds + base.decode_seconds
    assert h32.seconds > 1.8 * base.seconds


def test_a_text_that_was_opened_says_how_many_sentences_it_has() -> None:
    [cell, _] = asked()
    known = estimates([cell], LAPTOP, speeds(0.03, 0.06), {cell.task: (1_000, 7)})[0]
    assert known.validation_seconds == pytest.approx(6 * 1_000 * 16 / 512 * 0.03 / 3)
    assert known.decode_seconds == pytest.approx(1_007 * 0.004)


def test_other_test_sets_are_translated_too() -> None:
    captions = SCALES["captions"]
    cell, _ = asked(captions.base)
    known = {key_of_cell(cell, captions, Options()): [rates(0.03)]}
    assert estimate(cell, captions, Speeds(Options(), known)).decode_seconds == pytest.approx(
        (1_014 + 1_000 + 1_000) * 0.004
    )


def test_a_model_that_cannot_have_learned_translates_to_the_limit() -> None:
    short = replace(LAPTOP.base, steps=100)  # of a warm-up of 800
    found, _ = estimates(asked(short), LAPTOP, speeds(0.03, 0.06))
    assert found.train_seconds == 100 * 0.03
    assert found.decode_seconds == pytest.approx(4.0 * (16 + 50) / (16 * 1.17))


def test_what_was_never_measured_is_guessed_from_operations() -> None:
    cell, other = asked()
    flops = expected_flops(LAPTOP.base, LAPTOP, "en-de")
    guess = estimate(cell, LAPTOP, speeds(None, None))
    assert not guess.measured
    assert guess.train_seconds == pytest.approx(flops / FLOPS_PER_CORE)
    assert estimate(cell, LAPTOP, speeds(None, None, threads=2)).train_seconds == pytest.approx(guess.train_seconds / 2)
    # beside a row that was measured: at its speed, 1.6e9 operations in 0.08 s
    measured, beside = estimates([cell, other], LAPTOP, speeds(0.08, None))
    assert measured.measured
    assert not beside.measured
    assert beside.train_seconds == pytest.approx(expected_flops(other.hyper, LAPTOP, "en-de") / 2e10)
    assert 0 < guess.decode_seconds < guess.train_seconds


def test_a_translation_that_was_not_measured_follows_from_the_step() -> None:
    cell, _ = asked()
    known = {key_of_cell(cell, LAPTOP, Options()): [rates(0.03, sentence=None)]}
    found = estimate(cell, LAPTOP, Speeds(Options(), known))
    assert found.measured
    assert found.decode_seconds == pytest.approx(1000 * 16 * (4 * 1.17 + 1) * 0.03 / 3 / 512)


def test_one_process_of_several_translates() -> None:
    cell, _ = asked()
    hows = [replace(Options(), devices=n) for n in (1, 2)]
    knowns = [Speeds(how, {key_of_cell(cell, LAPTOP, how): [rates(0.03, sentence=None)]}) for how in hows]
    alone, two = (estimate(cell, LAPTOP, known) for known in knowns)
    assert two.train_seconds == alone.train_seconds
    assert two.decode_seconds == pytest.approx(2 * alone.decode_seconds)


def test_how_much_is_translated() -> None:
    assert held_out(LAPTOP, "en-de") == (500, 500)
    assert held_out(SCALES["captions"], "en-de") == (1014, 1000)
    assert held_out(SCALES["paper"], "en-fr") == (3000, 3003)
    assert held_out(replace(LAPTOP, corpus="folder"), "en-de") == (3000, 3000)
    assert [further_sentences(SCALES[name], "en-de") for name in ("laptop", "captions", "paper")] == [0, 1000, 0]


def said(tmp_path: Path, seeds: int = 1) -> str:
    return forecast("t", asked(seeds=seeds), LAPTOP, Options(cache_dir=tmp_path, runs_dir=tmp_path / "runs"))


def test_a_dry_run_says_which_rows_are_unmeasured(tmp_path: Path) -> None:
    text = said(tmp_path, seeds=2)
    assert text.count("  unmeasured\n") == 4
    assert "2 of 2 rows are unmeasured: their times are guessed" in text
    assert re.search(r"about 3 s per row: \S*python\S* experiments/t.py .* --dry-run --measure$", text, re.MULTILINE)
    save_rates(tmp_path, {key_of_cell(cell, LAPTOP, Options()): rates(0.1) for cell in asked()[:1]})
    lines = said(tmp_path, seeds=2).split("\n")
    assert [line.endswith(" unmeasured") for line in lines[2:6]] == [False, True, False, True]
    assert lines[2].split()[-2:] == ["3.1", "min"]  # 180 s of training, 7 s besides
    assert "1 of 2 rows are unmeasured" in "\n".join(lines)
    save_rates(tmp_path, {key_of_cell(cell, LAPTOP, Options()): rates(0.1) for cell in asked()})
    text = said(tmp_path, seeds=2)
    assert "unmeasured" not in text
    assert "In all about 12.5 min, one run after the other: 12.0 min of training" in text


def test_a_line_of_a_forecast_by_hand(tmp_path: Path) -> None:
    # 1,800 updates of 512 tokens a side, in sentences of 16. Multiplications of a source token: 3 layers of
    # 2 * 8,192 + 2 * 4,096 + 32,768 + 16 * 128; of a target token: 3,000 * 64 and 3 layers of
    # 8,192 + 4 * 4,096 + 32,768 + (8 + 16) * 128
    flops = 3 * 2 * 1_800 * 512 * (3 * 59_392 + 192_000 + 3 * 60_416)
    assert expected_flops(LAPTOP.base, LAPTOP, "en-de") == flops
    lines = said(tmp_path, seeds=2).split("\n")
    assert lines[0] == "t at scale laptop: 4 runs on grammar; shows the sign of large effects."
    assert [line.split()[:7] for line in lines[2:6]] == [
        ["base", "1", "1,800", "0.54M", "65.1M", "1.8e+06", "3.0e+12"],
        ["h=32", "1", "1,800", "0.50M", "48.0M", "1.8e+06", "2.8e+12"],
        ["base", "2", "1,800", "0.54M", "65.1M", "1.8e+06", "3.0e+12"],
        ["h=32", "2", "1,800", "0.50M", "48.0M", "1.8e+06", "2.8e+12"],
    ]


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
    both = dict(zip((key_of_cell(cell, LAPTOP, Options()) for cell in asked()), (rates(0.1), rates(0.2)), strict=True))
    save_rates(tmp_path, both)
    options = Options(cache_dir=tmp_path, runs_dir=tmp_path / "runs")
    text = forecast("t", asked(seeds=2), LAPTOP, options, (2, "2 processors"))
    # 187 s of the base and 370 s of h=32, twice: longest first, 557 s each
    assert "In all about 18.6 min, one run after the other" in text
    assert "With 2 runs at a time (2 processors) about 9.3 min, if nothing else" in text
    assert "at a time" not in said(tmp_path, seeds=2)


@pytest.mark.parametrize(
    ("options", "expected"), [({"jobs": 3}, (3, "--jobs")), ({"jobs": 9}, (4, "--jobs")), ({"devices": 2}, (1, None))]
)
def test_how_many_runs_are_made_at_a_time(options: dict[str, int], expected: tuple[int, str | None]) -> None:
    n, why = runs_at_once(asked(seeds=2), LAPTOP, Options(**options))
    assert n == expected[0]
    assert expected[1] in (why, None)


def test_as_many_runs_are_made_as_processors_and_memory_allow() -> None:
    n, why = runs_at_once(asked(seeds=2), LAPTOP, Options())
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
