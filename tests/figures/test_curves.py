"""A curve is the mean over seeds, and its band their range."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from repro.figures import style
from repro.figures.curves import (
    Band,
    bands,
    crossings,
    draw_curves,
    draw_over_operations,
    over_operations,
    rows_of,
)
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


def test_operations_and_crossings_by_hand(a_record: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the rival's updates take twice the operations; over updates it is ahead until 15, over operations always behind
    base = a_record("base", dev={"step": [10, 20, 40], "nll": [5.0, 3.0, 1.0]}, flops=4e9)
    rival = a_record("ByteNet", dev={"step": [10, 20, 40], "nll": [4.0, 4.0, 4.0]}, flops=8e9)
    one, other = over_operations([base, rival])
    per_update = 4e9 / base.cost["steps"]
    assert one.step == pytest.approx([10 * per_update, 20 * per_update, 40 * per_update])
    assert other.step == pytest.approx([2 * step for step in one.step])
    assert crossings(*bands([base, rival], "dev")) == [15.0]
    assert crossings(one, other) == []  # both are measured from 20 on, and there the base is ahead
    assert crossings(one, replace(one, mean=(6.0, 2.0, 2.0))) == pytest.approx([15 * per_update, 30 * per_update])

    monkeypatch.setattr(style, "DETAILS", {"svg": style.DETAILS["svg"]})
    files = draw_over_operations(tmp_path, "ladder", [base, rival])
    assert [file.name for file in files] == ["operations_ladder.svg", "operations_ladder.csv", "crossings_ladder.csv"]
    assert files[2].read_text().split("\n")[1:] == ["ByteNet,updates,15", "ByteNet,FLOPs,nowhere", ""]


def test_nothing_beside_the_base_is_no_comparison(a_record: Make, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no base beside another row.*Run experiments/ladder.py"):
        draw_over_operations(tmp_path, "ladder", [a_record("base", dev={"step": [10], "nll": [5.0]})])
