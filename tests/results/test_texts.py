"""What a row is worth on little text and on much: beside the base of the same text and seed, and of no other."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from table_records import run

from repro.figures.forest import draw_text_sizes
from repro.results.curves import on_texts
from repro.results.record import Record


def on(pairs: int, row: str, seed: int, bleu: float, *, is_base: bool, **other: Any) -> Record:
    """A run on so much text, whose name on more than 3,000 pairs is another."""
    like = run("base" if is_base else "h=1")
    name = row if pairs == 3_000 else f"{row}, text x {pairs // 3_000}"
    corpus = {**like.corpus, "n_train": pairs}
    return run(name, seed, bleu=bleu, ppl=100 / bleu, corpus=corpus, hyper=like.hyper, **other)


RUNS = [
    *(on(3_000, "base", seed, 50.0 + seed, is_base=True) for seed in (1, 2, 3, 4)),
    *(on(6_000, "base", seed, 60.0 + seed, is_base=True) for seed in (1, 2)),
    on(12_000, "base", 9, 70.0, is_base=True),
    *(on(6_000, "h=1", seed, 61.0 + seed, is_base=False) for seed in (1, 2)),
    *(on(3_000, "h=1", seed, 50.0 + seed + more, is_base=False) for seed, more in ((2, -2.0), (3, -3.0), (4, -4.0))),
    on(12_000, "h=1", 8, 90.0, is_base=False),  # whose seed the base has not
    on(24_000, "h=1", 1, 90.0, is_base=False),  # where there is no base
]


def test_each_row_stands_beside_the_base_of_its_text_and_seed() -> None:
    [(row, found)] = on_texts(RUNS).items()
    assert row == "h=1", "as it is called on the first text"
    assert [(one.pairs, one.n) for one in found] == [(3_000, 3), (6_000, 2)]
    mean, half = found[0].found["bleu"]
    assert (mean, half) == (-3.0, pytest.approx(4.303 / 3**0.5, abs=1e-3))
    assert found[1].found["bleu"] == (1.0, None)
    assert found[1].found["nll"][0] < 0 < found[0].found["nll"][0]
    assert [one.of_mean for one in found] == [None, None]


def test_by_the_mean_of_the_last_checkpoints_it_is_told_where_every_run_has_it() -> None:
    def scored(record: Record, bleu: float) -> Record:
        dev = {**record.scores["dev"], "bleu": bleu}
        of_mean: Any = {"steps": [1, 2], "weights": "ab" * 32, "seconds": 1.0, "dev": dev, "test": dev}
        return replace(record, last_mean=of_mean)

    [base, other], [row, second] = RUNS[4:6], RUNS[7:9]
    alike = [scored(base, 70.0), scored(other, 80.0), scored(row, 72.0), scored(second, 86.0)]
    assert [one.of_mean and one.of_mean["bleu"] for one in on_texts([*RUNS[:4], *alike])[row.row]] == [(4.0, None)]
    assert [one.of_mean for one in on_texts([*RUNS[:4], *alike[:3], second])[row.row]] == [None]


def test_other_languages_and_other_corpora_are_none_of_these_texts() -> None:
    french = on(6_000, "h=1", 1, 90.0, is_base=False, pair="en-fr")
    assert [one.pairs for one in on_texts([*RUNS[:4], french, *RUNS[9:12]])["h=1"]] == [3_000]
    assert on_texts(RUNS[4:]) == {}, "without the base"


def test_a_row_on_two_texts_is_drawn_with_its_numbers(tmp_path: Path) -> None:
    picture, numbers = draw_text_sizes(tmp_path, RUNS)
    lines = list(csv.reader(numbers.read_text("utf-8").splitlines()))
    ours = "the paper's weights"
    assert [line[:4] for line in lines[1:]] == [["h=1", ours, "3000", "3"], ["h=1", ours, "6000", "2"]]
    assert [line[6] for line in lines[1:]] == ["-3", "1"]
    assert picture.name == "text_sizes.svg"
    with pytest.raises(ValueError, match="`python experiments/lab_text.py`"):
        draw_text_sizes(tmp_path, RUNS[:4])
