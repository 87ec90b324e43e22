"""BLEU by length and by place, as pictures have it: the values of the runs, row by row."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from kept_sentences import ladder_run
from matplotlib.figure import Figure
from report_records import CURVES

from repro.figures import style
from repro.figures.fading import Fading, _paint, draw_fading, fading_rows
from repro.results.curves import bands
from repro.results.parts import THIRDS, bleu_of_parts


def test_a_line_is_the_values_of_its_runs_and_rows_without_counts_have_none(tmp_path: Path) -> None:
    records = [*(ladder_run("One", seed, tmp_path) for seed in (1, 2, 3)), ladder_run("Two", 4, tmp_path)]
    records.append(ladder_run("Three", 5, tmp_path, places=False))
    records.append(replace(ladder_run("Four", 6, tmp_path), stamp={**records[0].stamp, "dirty": True}))
    found = {row.row: row for row in fading_rows(records, tmp_path)}
    assert {*found} == {"One", "Two"}
    for number, name in enumerate(THIRDS):
        expected = [of[name] for record in records[:3] if (of := bleu_of_parts(record, tmp_path))]
        assert sorted(found["One"].parts[number]) == pytest.approx(sorted(expected))
    assert [row.mean for row in fading_rows(records, tmp_path)] == sorted(
        (row.mean for row in found.values()), reverse=True
    )


def test_a_row_looks_as_in_the_other_pictures_of_its_table(tmp_path: Path) -> None:
    # they stand in the order of the table there, and here the best first
    names = ("One", "Two", "Three")
    records = [replace(ladder_run(name, seed, tmp_path), **CURVES) for seed, name in enumerate(names, start=1)]
    drawn = [band.row for band in bands(records, "dev")]
    assert {row.row: row.place for row in fading_rows(records, tmp_path)} == {name: drawn.index(name) for name in drawn}
    figure = Figure()
    first, second = figure.subplots(1, 2)
    for axes, i in ((first, 0), (second, 2)):
        _paint(axes, Fading("One", 1, ()), ((40.0,), (30.0,)), i, 3)
    assert [axes.get_lines()[0].get_color() for axes in (first, second)] == [style.look(1)["color"]] * 2


@pytest.mark.parametrize("n_rows", [1, 2, 48])
def test_points_of_all_rows_stand_nearer_to_their_third_than_to_another(n_rows: int) -> None:
    axes = Figure().subplots()
    for i in range(n_rows):
        parts = ((40.0,), (30.0,), (20.0,))
        _paint(axes, Fading("One", 0, parts), parts, i, n_rows)
    places = [line.get_xdata() for line in axes.get_lines()]
    assert len(places) == n_rows
    assert max(abs(place - third) for of_row in places for third, place in enumerate(of_row)) < 0.25


def test_the_picture_and_its_numbers(tmp_path: Path) -> None:
    records = [*(ladder_run("One", seed, tmp_path) for seed in (1, 2, 3)), ladder_run("Two", 4, tmp_path)]
    picture, numbers = draw_fading(tmp_path, "ladder", records, tmp_path)
    assert picture.name == "fading_ladder.svg"
    with numbers.open(newline="") as lines:
        cells = list(csv.DictReader(lines))
    assert [cell["third"] for cell in cells[:6]] == ["shortest", "middle", "longest", "first", "second", "last"]
    assert {cell["seeds"] for cell in cells if cell["row"] == "One"} == {"3"}
    assert {cell["±"] for cell in cells if cell["row"] == "Two"} == {""}  # of one run nobody knows
    with pytest.raises(ValueError, match=r"no run has its counts .* Run `python experiments/ladder.py --scale lab`"):
        draw_fading(tmp_path, "ladder", [ladder_run("Three", 5, tmp_path, places=False)], tmp_path)
