"""Points with their intervals, and what is said below them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from repro.figures import style
from repro.figures.quality import _paint, _under, draw_quality, of_other_cost, points
from repro.results.record import Record

Make = Callable[..., Record]


def test_points_by_hand(a_record: Make) -> None:
    runs = [a_record("h=1", seed, bleu=bleu, flops=2e9) for seed, bleu in ((1, 50.0), (2, 51.0), (3, 52.0))]
    base, row = points([*runs, a_record("base", bleu=60.0, flops=1e9)], "bleu")
    assert (base.row, base.n, base.flops, base.mean, base.low, base.high) == ("base", 1, 1e9, 60, 60, 60)
    assert (row.n, row.flops, row.mean) == (3, 2e9, 51)
    assert row.high - row.mean == pytest.approx(4.3027 / 3**0.5, abs=1e-3)  # t of two degrees of freedom, sd 1


def test_two_seeds_have_no_interval_and_are_hollow(a_record: Make) -> None:
    two = [a_record("h=1", 1, bleu=50.0), a_record("h=1", 2, bleu=51.0)]
    three = [a_record("base", seed, bleu=60.0 + seed) for seed in (1, 2, 3)]
    found = points([*two, *three], "bleu")
    assert (found[1].low, found[1].mean, found[1].high) == (50.5, 50.5, 50.5)
    figure = style.painted((style.WIDTH, 4.4), lambda figure: _paint(figure, found, []))
    (axes,) = figure.axes
    shown = {bar.lines[0].get_ydata()[0]: bar.lines[0] for bar in axes.containers}
    assert [shown[mean].get_markerfacecolor() for mean in (62.0, 50.5)] == [style.COLOURS[0], "white"]
    assert [bar.has_yerr for bar in axes.containers] == [True, False]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["base", "h=1"]
    assert "Hollow: fewer than three runs." in _under("cost", found, [])
    assert "Hollow" not in _under("cost", found[:1], [])
    assert _under("cost", found[1:], []).split("\n")[2] == "Hollow: fewer than three runs."


def test_one_row_is_no_comparison(a_record: Make, tmp_path: Path) -> None:
    expected = r"finished runs .* of two rows that differ in cost, only of base\. Run `make`\."
    for rows in (["base"], ["base", "h=4"]):
        with pytest.raises(ValueError, match=expected):
            draw_quality(tmp_path, [a_record(row, 1) for row in rows], command="make")


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
