"""Lines of rows: ticks, bars and what is said of them, and the values of the runs, row by row."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kept_sentences import ladder_run
from matplotlib.figure import Figure

from repro.figures import style
from repro.figures.curves import (
    _paint_parts,
    _plain_ticks,
    _told,
    draw_curves,
    draw_fading,
    draw_over_operations,
    fading_rows,
    whisker,
)
from repro.results.details import THIRDS, bleu_of_parts
from repro.results.record import Record

Make = Callable[..., Record]


@pytest.mark.parametrize(
    ("draw", "table", "dirty", "said"),
    [
        (draw_curves, "table3_A", True, "no finished run of committed code"),
        (draw_over_operations, "ladder", False, "no finished runs of the base and of another row"),
    ],
)
def test_what_is_missing_is_said_with_its_table(draw: Any, table: str, dirty: bool, said: str, a_record: Make) -> None:
    with pytest.raises(style.Missing, match=said) as missing:
        draw(table, [a_record("base", dirty=dirty)])
    assert missing.value.table == table


def test_over_operations_a_row_whose_updates_cost_twice_reaches_twice_as_far(a_record: Make) -> None:
    dev = {"step": [10, 20], "nll": [5.0, 3.0]}
    runs = [a_record("base", dev=dev, flops=4e9), a_record("ByteNet", dev=dev, flops=8e9)]
    [figure] = draw_over_operations("ladder", runs)
    ends = [[line.get_xdata()[-1] for line in axes.get_lines()] for axes in figure.axes]
    assert ends == [[20, 20], [4e9, 8e9]]


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1.85, 4.7, ["2", "2.5", "3", "3.5", "4"]),
        (1.0, 5.2, ["1", "1.5", "2", "2.5", "3", "4", "5"]),
        (0.7, 9.5, ["0.7", "1", "1.5", "2", "3", "5", "7"]),
    ],
)
def test_an_axis_has_ticks_where_its_losses_are(low: float, high: float, shown: list[str]) -> None:
    axes = Figure().subplots()
    axes.set(yscale="log", ylim=(low, high))
    _plain_ticks(axes)
    ticks = [tick for tick in axes.yaxis.get_majorticklocs() if low <= tick <= high]
    assert [axes.yaxis.get_major_formatter()(tick) for tick in ticks] == shown


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    """Results, and their records: three seeds of One, a seed of Two, and Three, which has no counts."""
    results = tmp_path_factory.mktemp("results")
    records = [*(ladder_run("One", seed, results) for seed in (1, 2, 3)), ladder_run("Two", 4, results)]
    return results, [*records, ladder_run("Three", 5, results, places=False)]


def test_a_line_is_the_values_of_its_runs_and_rows_without_counts_have_none(left: tuple[Path, list[Record]]) -> None:
    results, records = left
    dirty = replace(records[3], row="Four", stamp={**records[3].stamp, "dirty": True})
    found = fading_rows([*records, dirty], results)
    assert {*found} == {"One", "Two"}
    for number, name in enumerate(THIRDS):
        expected = [of[name] for record in records[:3] if (of := bleu_of_parts(record, results))]
        assert sorted(found["One"][number]) == pytest.approx(sorted(expected))
    means = [sum(sum(part) / len(part) for part in parts) for parts in found.values()]
    assert means == sorted(means, reverse=True)


def test_bars_are_what_the_tables_show_of_the_spread() -> None:
    assert whisker((50, 51, 52)) == pytest.approx((51 - 2.4841, 51 + 2.4841), abs=1e-4)  # t of 2 degrees 4.3027, sd 1
    assert whisker((10, 20)) == (10, 20)
    assert whisker((0, 30, 60)) == (0, 60)  # the interval, 30 ± 74.5, would reach below zero
    axes = Figure().subplots()
    _paint_parts(axes, ((50, 51, 52), (0, 30, 60)), style.look(0), 0, 1)
    (bars,) = axes.containers
    assert [(low, high) for (_, low), (_, high) in bars.lines[2][0].get_segments()] == [
        pytest.approx(whisker((50, 51, 52))),
        (0, 60),
    ]


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([(1.0,)], "one seed a row"),
        ([(50, 51, 52)], "mean over seeds, bars: its 95 % t-interval"),
        ([(50, 51, 52), (1,)], "mean over seeds, bars: its 95 % t-interval; one seed has none"),
        (
            [(50, 51, 52), (0, 30, 60), (1, 2)],
            "mean over seeds, bars: its 95 % t-interval, but of two seeds and where it would reach below zero "
            "from the lowest seed to the highest",
        ),
    ],
)
def test_the_picture_says_what_its_bars_are(parts: list[tuple[float, ...]], told: str) -> None:
    assert _told([(part,) for part in parts]) == told


def test_the_picture_of_thirds_has_a_line_for_each_row_that_has_counts(left: tuple[Path, list[Record]]) -> None:
    results, records = left
    [figure] = draw_fading("ladder", records, results)
    for axes, begin in zip(figure.axes, (0, 3), strict=True):
        lines = [line.get_ydata() for line in axes.get_lines() if line.get_marker() not in ("_", "None")]
        rows = fading_rows(records, results).values()
        for line, parts in zip(lines, rows, strict=True):
            assert line == pytest.approx([sum(part) / len(part) for part in parts[begin : begin + 3]])
    with pytest.raises(style.Missing, match="no run has its counts"):
        draw_fading("ladder", records[4:], results)
