"""Points with their intervals, and labels that cover nothing."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from repro.figures import style
from repro.figures.quality import Area, _points, _under, draw_quality, leader, of_other_cost, placed, points
from repro.results.record import Record

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
    assert _under("cost", found, []).split("\n") == ["cost", "", named]
    assert _under("cost", found[:1], []) == "cost"
    assert _under("cost", found[:1], found).split("\n")[2:] == [same]
    assert _under("cost", found, found).split("\n")[2:] == [named, same]


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
