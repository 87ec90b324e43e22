"""Lines that can be told apart, and a legend that stands whole on the page, however many rows there are."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from repro.figures import curves, style
from repro.results.record import Record

Make = Callable[..., Record]


def test_of_sixty_four_lines_no_two_look_the_same_in_colour_or_in_grey() -> None:
    looks = [style.look(i) for i in range(64)]
    for one, other in itertools.combinations(("color", "ls", "marker"), 2):
        assert len({(look[one], look[other]) for look in looks}) == 64
    first = [(look["color"], look["ls"], look["marker"]) for look in looks[:8]]
    assert first == [*zip(style.COLOURS, style.DASHES, style.MARKERS, strict=True)]


@pytest.fixture
def draw_rows(a_record: Make, tmp_path: Path, painted: list[Figure]) -> Callable[..., tuple[Figure, Any]]:
    """draw_rows(draw, names) -> the picture of a base and of rows of these names, the first with a dev loss of 3."""

    def drawn(draw: Any, names: list[str]) -> tuple[Figure, Any]:
        rows = [
            a_record(name, position=i, dev={"step": [10, 20], "nll": [9.0, 3.0 + i]}, flops=1e9 + 1e7 * i)
            for i, name in enumerate(names)
        ]
        draw(tmp_path, "ladder", [a_record("base"), *rows])
        (figure,) = painted
        figure.canvas.draw()
        (legend,) = figure.legends
        return figure, legend

    return drawn


@pytest.mark.parametrize(
    ("draw", "n_rows"), [(curves.draw_curves, 1), (curves.draw_curves, 15), (curves.draw_over_operations, 15)]
)
def test_every_line_has_a_look_of_its_own_and_all_words_are_on_the_page(
    draw: Any, n_rows: int, draw_rows: Callable[..., tuple[Figure, Any]]
) -> None:
    figure, legend = draw_rows(draw, [f"soft alignment with scores of kind {n}" for n in range(n_rows)])
    right = figure.axes[1]
    lines = {(line.get_color(), line._dash_pattern[1] and tuple(line._dash_pattern[1])) for line in right.lines}
    assert len(lines) == len(right.lines) == n_rows + 1
    assert len(legend.get_texts()) == n_rows + 1
    assert_all_words_are_on_the_page(figure, legend)


@pytest.mark.parametrize(
    ("draw", "names", "below"),
    [
        (
            curves.draw_over_operations,
            [f"system {n}, rate x {rate}" for n in range(2) for rate in (1, 2, 4)],
            ["rate x 1", "rate x 2", "rate x 4"],
        ),
        (curves.draw_curves, [f"system {n}" for n in range(4)], [style.ITSELF]),
    ],
)
def test_of_more_rows_than_can_be_told_apart_each_group_has_panels_with_the_base_in_grey(
    draw: Any,
    names: list[str],
    below: list[str],
    draw_rows: Callable[..., tuple[Figure, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(style, "MOST", 4)  # with the base
    figure, legend = draw_rows(draw, names)
    assert [text.get_text() for text in legend.get_texts()] == ["base", *below]
    assert len(figure.axes) == 2 * len(names) / len(below)
    shown = []
    for axes in figure.axes:
        base, *lines = axes.lines
        assert base.get_color() == style.GREY
        assert len({line.get_color() for line in lines}) == len(lines) == len(below)
        shown.append([line.get_ydata()[-1] for line in lines])
        assert axes.get_ylim() == figure.axes[0].get_ylim()
    right = {axes.get_xlim() for axes in figure.axes[1::2]}
    assert len(right) == 1
    assert [loss for losses in shown[1::2] for loss in losses] == [3.0 + i for i in range(len(names))]  # each row once
    above = [axes.get_title(loc="left").split("\n")[-1] for axes in figure.axes[::2]]
    assert above == [*dict.fromkeys(name.split(",")[0] for name in names)]
    assert_all_words_are_on_the_page(figure, legend)


@pytest.mark.parametrize(
    ("name", "share", "one_x", "one_y"),
    [("small", False, True, True), ("small", True, True, True), ("", True, False, True), ("", False, False, False)],
)
def test_panels_that_are_compared_have_the_limits_that_shared_axes_would_have(
    name: str, share: bool, one_x: bool, one_y: bool
) -> None:
    lines = [([1, 4], [20, 5]), ([2, 9], [7, 7]), ([0, 3], [1, 1000]), ([5, 6], [2, 30])]  # x and y of each panel
    of = [style.Group(name, {})] * (2 if name else 1)
    grid = Figure().subplots(len(of), 2, sharex="col" if one_x else "none", sharey="all" if one_y else "none")
    shared = [*grid.flat]
    panels = style.panels(Figure(), of, ("left", "right"), "y", ("x", "x"), share=share)
    drawn = [axes for _, *pair in panels for axes in pair]
    for many in (shared, drawn):
        for axes, (x, y) in zip(many, lines, strict=False):
            axes.set_yscale("log")
            axes.plot(x, y)
    style.level(panels, share=share)
    for axes, expected in zip(drawn, shared, strict=True):
        assert axes.get_xlim() == pytest.approx(expected.get_xlim())
        assert axes.get_ylim() == pytest.approx(expected.get_ylim())


def test_a_row_looks_the_same_in_all_pictures_of_its_table_whichever_they_leave_out() -> None:
    rows = ["base", *(f"system {n}, rate x {rate}" for n in range(7) for rate in (1, 2, 4))]
    every = {row: look for group in style.groups(rows, rows) for row, look in group.looks.items()}
    found = style.groups(rows, ["system 5, rate x 4", "system 3, rate x 2", "system 5, rate x 1"])
    assert [(group.name, [*group.looks]) for group in found] == [
        ("system 5", ["system 5, rate x 1", "system 5, rate x 4"]),
        ("system 3", ["system 3, rate x 2"]),
    ]
    assert all(every[row] == look for group in found for row, look in group.looks.items())
    [few] = style.groups(rows[:5], ["system 1, rate x 1", "base"])
    assert [(row, look["color"]) for row, look in few.looks.items()] == [
        ("system 1, rate x 1", style.COLOURS[4]),
        ("base", style.COLOURS[0]),
    ]
    assert [*style.groups(rows, ["base"])[0].looks] == ["base"]


def assert_all_words_are_on_the_page(figure: Figure, legend: Any) -> None:
    for words in (legend, *(axes.yaxis.label for axes in figure.axes), *(axes.xaxis.label for axes in figure.axes)):
        box = words.get_window_extent()
        assert min(box.x0, box.y0) > -1
        assert (box.max < figure.bbox.max + 1).all()
    for axes in figure.axes:
        assert axes.xaxis.label.get_window_extent().y0 > legend.get_window_extent().y1, "the legend is below"


def test_a_figure_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, drawn = Figure.draw, list[float]()
    monkeypatch.setattr(Figure, "draw", lambda figure, renderer: (drawn.append(figure.dpi), draw(figure, renderer)))

    def paint(figure: Figure) -> None:
        figure.subplots().set(xlabel="n")
        figure.tight_layout()

    style.save_figure(tmp_path, "one", (3, 2), paint)
    assert drawn == [72]
