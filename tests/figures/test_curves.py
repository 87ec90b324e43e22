"""A curve is the mean over seeds, and its band their range."""

from collections.abc import Callable
from pathlib import Path

import pytest

from repro.figures.curves import Band, bands, draw_curves, rows_of
from repro.results.record import Record

Make = Callable[..., Record]


def test_mean_and_range_by_hand(a_record: Make) -> None:
    runs = [
        a_record("h=1", 1, dev={"step": [10, 20], "nll": [4.0, 2.0]}),
        a_record("h=1", 2, dev={"step": [10, 20, 30], "nll": [5.0, 2.5, 1.0]}),
    ]
    assert bands(runs, "dev") == [Band("h=1 (here 2)", 2, (10, 20), (4.5, 2.25), (4.0, 2.0), (5.0, 2.5))]


def test_base_comes_first_then_the_papers_order(a_record: Make) -> None:
    runs = [a_record("b", position=1), a_record("a", position=2), a_record("base"), a_record("c", position=0)]
    assert list(rows_of(runs)) == ["base", "c", "b", "a"]


def test_neither_diverged_nor_uncommitted_runs_are_shown(a_record: Make) -> None:
    diverged = a_record("h=1", 2, status="diverged")
    assert list(rows_of([a_record("base"), diverged, a_record("h=4", dirty=True)])) == ["base"]


def test_a_table_without_a_run_to_show_says_so(a_record: Make, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no finished run of committed code.*Run experiments/table3_A.py"):
        draw_curves(tmp_path, "table3_A", [a_record("base", dirty=True)])
    assert not list(tmp_path.iterdir())
