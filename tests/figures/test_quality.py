"""Points with their intervals, and labels that cover nothing."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from repro.figures import style
from repro.figures.quality import (
    Area,
    Point,
    _paint,
    _points,
    _under,
    draw_quality,
    leader,
    nearest,
    of_other_cost,
    placed,
    points,
)
from repro.results.record import BASE, Record

Make = Callable[..., Record]


def test_points_by_hand(a_record: Make) -> None:
    runs = [a_record("h=1", seed, bleu=bleu, flops=2e9) for seed, bleu in ((1, 50.0), (2, 51.0), (3, 52.0))]
    base, row = points([*runs, a_record("base", bleu=60.0, flops=1e9)], "bleu")
    assert (base.row, base.n, base.flops, base.mean, base.low, base.high) == ("base", 1, 1e9, 60, 60, 60)
    assert (row.n, row.flops, row.mean) == (3, 2e9, 51)
    assert row.high - row.mean == pytest.approx(4.3027 / 3**0.5, abs=1e-3)  # t of two degrees of freedom, sd 1


def test_two_seeds_have_no_interval_and_are_hollow(a_record: Make) -> None:
    two = [a_record("h=1", 1, ppl=2.0), a_record("h=1", 2, ppl=3.0)]
    [row] = points(two, "ppl")
    assert (row.low, row.mean, row.high) == (2.5, 2.5, 2.5)
    axes = Figure().subplots()
    three = [a_record("base", seed, ppl=4.0 + seed) for seed in (1, 2, 3)]
    found = points([*two, *three], "ppl")
    _points(axes, found)
    inside = {line.get_ydata()[0]: line.get_markerfacecolor() for line in axes.lines if len(line.get_ydata()) == 1}
    assert inside[2.5] == "white"
    assert inside[6.0] == style.COLOURS[0]
    assert len(axes.containers) == 1, "one interval, of the base"
    assert "Hollow: fewer than three runs." in _under("cost", found, [])
    assert "Hollow" not in _under("cost", found[:1], [])
    [alone] = points(two, "ppl")
    assert _under("cost", [alone], []).split("\n")[2] == "Hollow: fewer than three runs."


def test_rows_of_one_cost_get_labels_apart() -> None:
    within = Area(0, 0, 300, 300)
    spots = [(150.0, 150.0 + 4 * i) for i in range(10)]
    marks = [Area(x - 3, y - 3, x + 3, y + 3) for x, y in spots]
    labels: list[Area] = []
    for spot in spots:
        labels.append(placed(spot, (40, 10), marks, labels, within, 5))
    assert not [pair for pair in itertools.combinations(labels, 2) if pair[0].meets(pair[1])]
    assert not [label for label in labels for mark in marks if label.meets(mark)]
    assert all(label.inside(within) for label in labels)


def test_no_label_lies_on_the_line_that_leads_to_another() -> None:
    near = Area(155, 140, 200, 160)  # where the label would stand
    label = placed((150, 150), (40, 10), [], [near], Area(0, 0, 300, 300), 5)
    assert not [spot for spot in leader((150, 150), label) if spot.meets(near)]
    assert label.right < 150


def test_the_name_of_the_base_stands_next_to_its_point() -> None:
    # each row with its operations in 1e12, its BLEU and half its interval: names of its neighbours would take the place
    rows = {"base": (2.847, 53.45, 1.13), "d_k=16": (2.535, 39.32, 0.98), "d_k=32": (2.639, 49.8, 2.54)}
    rows |= {"N=2": (1.622, 44.2, 0.85), "N=4": (2.235, 49.66, 2.26), "N=8": (3.46, 51.83, 2.45)}
    rows |= {"d_model=256": (1.235, 35.36, 1.85), "d_model=1024": (7.203, 58.14, 1.7), "big": (27.65, 72.21, 5.07)}
    rows |= {"d_ff=1024": (2.344, 50.8, 1.9), "d_ff=4096": (3.853, 55.44, 1.51)}
    found = [
        Point(BASE if row == BASE else "table3_C", row, 3, 1e12 * flops, bleu, bleu - half, bleu + half)
        for row, (flops, bleu, half) in rows.items()
    ]
    figure = style.painted((style.WIDTH, 4.4), lambda figure: _paint(figure, found, []))
    (axes,) = figure.axes
    away = {}
    for text in axes.texts:
        label = text.get_window_extent()
        point = next(point for point in found if style.symbols(point.row) == text.get_text())
        at = axes.transData.transform((point.flops, point.mean))
        away[point.row] = math.dist(at, nearest((at[0], at[1]), Area(label.x0, label.y0, label.x1, label.y1)))
    assert {*away} == {*rows}
    assert away["base"] < 8 * figure.dpi / 72  # points
    begin = [line.get_xdata()[0] for line in axes.lines if line.get_color() == style.SOFT]
    assert not [x for x in begin if x == pytest.approx(2.847e12)], "no line leads to it"


def test_between_two_rows_the_line_is_steep_rather_than_through_one_of_them() -> None:
    own, left, right = (Area(x - 3, low, x + 3, 300 - low) for x, low in ((150, 120), (138, 90), (185, 90)))
    label = placed((150, 150), (40, 10), [own, left, right], [], Area(0, 0, 300, 300), 5)
    assert not [spot for spot in leader((150, 150), label) if spot.meets(left) or spot.meets(right)]


def test_a_lone_label_stands_at_the_right_and_at_the_edge_at_the_left() -> None:
    within = Area(0, 0, 300, 300)
    assert placed((150, 150), (40, 10), [], [], within, 5).left > 150
    assert placed((290, 150), (40, 10), [], [], within, 5).right < 290


def test_one_row_is_no_comparison(a_record: Make, tmp_path: Path) -> None:
    expected = r"finished runs .* of two rows that differ in cost, only of base\. Run `make`\."
    with pytest.raises(ValueError, match=expected):
        draw_quality(tmp_path, [a_record("base", 1)], command="make")
    with pytest.raises(ValueError, match=expected):
        draw_quality(tmp_path, [a_record("base", 1), a_record("h=4", 1)], command="make")
    with pytest.raises(ValueError, match=r"differ in cost\. Run `make`\."):
        draw_quality(tmp_path, [], command="make")


def test_rows_of_the_bases_cost_are_left_out(a_record: Make) -> None:
    costs = {"base": 1e9, "h=1": 1.01e9, "h=4": 1.03e9, "h=16": 0.9e9}
    found = points([a_record(row, flops=flops) for row, flops in costs.items()], "bleu")
    assert [point.row for point in of_other_cost(found)] == ["base", "h=16", "h=4"]
    assert len(of_other_cost(found[1:])) == 3, "nobody knows what the base costs"


def test_the_picture_says_which_rows_it_leaves_out_and_why(a_record: Make) -> None:
    costs = {"base": 1e9, "h=16": 2e9}
    found = points([a_record(row, seed, flops=flops) for row, flops in costs.items() for seed in (1, 2, 3)], "bleu")
    named = "Rows bear the paper's names: h=16 (here 2)."
    same = "Not shown, for their cost is the base's to 2 %: base, h=16 (here 2)."
    bars = "Points are means over seeds, bars their 95 % t-intervals."
    assert _under("cost", found, []).split("\n") == ["cost", "", bars, named]
    assert _under("cost", found[:1], []).split("\n")[2:] == [bars]
    assert _under("cost", found[:1], found).split("\n")[2:] == [bars, same]
    assert _under("cost", found, found).split("\n")[2:] == [bars, named, same]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("P_drop=0.2", r"$P_{\mathrm{drop}}$=0.2"),
        ("eps_ls=0.0, d_k=16", r"$\epsilon_{\mathrm{ls}}$=0.0, $d_{k}$=16"),
        ("d_model=256", r"$d_{\mathrm{model}}$=256"),
        ("costs $5, d_kind, grid_k", r"costs \$5, d_kind, grid_k"),
    ],
)
def test_names_of_rows_bear_the_papers_symbols(name: str, shown: str) -> None:
    assert style.symbols(name) == shown
