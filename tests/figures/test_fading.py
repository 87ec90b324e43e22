"""BLEU by length and by place, as pictures have it: the values of the runs, row by row."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from kept_sentences import ladder_run
from matplotlib.figure import Figure

from repro.figures import style
from repro.figures.fading import Fading, _paint, _told, draw_fading, fading_rows, whisker
from repro.results.parts import THIRDS, bleu_of_parts
from repro.results.record import Record


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Record]]:
    """Results, and their records: three seeds of One, a seed of Two, and Three, which has no counts."""
    results = tmp_path_factory.mktemp("results")
    records = [*(ladder_run("One", seed, results) for seed in (1, 2, 3)), ladder_run("Two", 4, results)]
    return results, [*records, ladder_run("Three", 5, results, places=False)]


def test_a_line_is_the_values_of_its_runs_and_rows_without_counts_have_none(left: tuple[Path, list[Record]]) -> None:
    results, records = left
    dirty = replace(records[3], row="Four", stamp={**records[3].stamp, "dirty": True})
    rows = fading_rows([*records, dirty], results)
    found = {row.row: row for row in rows}
    assert {*found} == {"One", "Two"}
    for number, name in enumerate(THIRDS):
        expected = [of[name] for record in records[:3] if (of := bleu_of_parts(record, results))]
        assert sorted(found["One"].parts[number]) == pytest.approx(sorted(expected))
    assert [row.mean for row in rows] == sorted((row.mean for row in rows), reverse=True)


def test_bars_are_what_the_tables_show_of_the_spread() -> None:
    assert whisker((50, 51, 52)) == pytest.approx((51 - 2.4841, 51 + 2.4841), abs=1e-4)  # t of 2 degrees 4.3027, sd 1
    assert whisker((10, 20)) == (10, 20)
    assert whisker((0, 30, 60)) == (0, 60)  # the interval, 30 ± 74.5, would reach below zero
    axes = Figure().subplots()
    _paint(axes, ((50, 51, 52), (0, 30, 60)), style.look(0), 0, 1)
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
    assert _told([Fading("One", (part,)) for part in parts]) == told


def test_the_picture_and_its_numbers(left: tuple[Path, list[Record]], tmp_path: Path) -> None:
    results, records = left
    picture, numbers = draw_fading(tmp_path, "ladder", records, results)
    assert picture.name == "fading_ladder.svg"
    with numbers.open(newline="") as lines:
        cells = list(csv.DictReader(lines))
    assert [cell["third"] for cell in cells[:6]] == ["shortest", "middle", "longest", "first", "second", "last"]
    assert {cell["seeds"] for cell in cells if cell["row"] == "One"} == {"3"}
    assert {cell["±"] for cell in cells if cell["row"] == "Two"} == {""}  # of one run nobody knows
    assert all(float(cell["lowest"]) <= float(cell["BLEU"]) <= float(cell["highest"]) for cell in cells)
    with pytest.raises(ValueError, match=r"no run has its counts .* Run `python experiments/ladder.py --scale lab`"):
        draw_fading(tmp_path, "ladder", records[4:], results)
