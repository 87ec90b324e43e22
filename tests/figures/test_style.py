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


def test_of_sixteen_lines_no_two_look_the_same_in_colour_or_in_grey() -> None:
    looks = [style.look(i) for i in range(style.MOST)]
    for one, other in itertools.combinations(("color", "ls", "marker"), 2):
        assert len({(look[one], look[other]) for look in looks}) == style.MOST
    first = [(look["color"], look["ls"], look["marker"]) for look in looks[:8]]
    assert first == [*zip(style.COLOURS, style.DASHES, style.MARKERS, strict=True)]


@pytest.mark.parametrize(
    ("draw", "n_rows"), [(curves.draw_curves, 1), (curves.draw_curves, 15), (curves.draw_over_operations, 15)]
)
def test_every_line_has_a_look_of_its_own_and_all_words_are_on_the_page(
    draw: Any, n_rows: int, a_record: Make, tmp_path: Path, painted: list[Figure]
) -> None:
    rows = [
        a_record(f"soft alignment with scores of kind {n}", position=n, dev={"step": [10, 20], "nll": [9.0, 3.0 + n]})
        for n in range(n_rows)
    ]
    draw(tmp_path, "ladder", [a_record("base"), *rows])
    (figure,) = painted
    figure.canvas.draw()
    left, right = figure.axes
    lines = {(line.get_color(), line._dash_pattern[1] and tuple(line._dash_pattern[1])) for line in right.lines}
    assert len(lines) == len(right.lines) == n_rows + 1
    assert (left.get_ylim() == right.get_ylim()) == (draw is curves.draw_over_operations)
    (legend,) = figure.legends
    assert len(legend.get_texts()) == n_rows + 1
    for words in (legend, left.yaxis.label, left.xaxis.label, right.xaxis.label):
        box = words.get_window_extent()
        assert min(box.x0, box.y0) > -1
        assert (box.max < figure.bbox.max + 1).all()
    assert left.xaxis.label.get_window_extent().y0 > legend.get_window_extent().y1, "the legend is below"


def test_more_rows_than_can_be_told_apart_have_no_picture(a_record: Make, tmp_path: Path) -> None:
    rows = [a_record(f"row {n}", position=n) for n in range(style.MOST)]
    with pytest.raises(ValueError, match="its 17 rows cannot be told apart in one picture"):
        curves.draw_over_operations(tmp_path, "ladder", [a_record("base"), *rows])
    assert not list(tmp_path.iterdir())
    few = style.looks(["base", "a", "b"], ["b"])
    assert [look["color"] for look in few.values()] == [style.COLOURS[2]], "as in the table's other pictures"


def test_a_figure_is_drawn_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw, drawn = Figure.draw, list[float]()
    monkeypatch.setattr(Figure, "draw", lambda figure, renderer: (drawn.append(figure.dpi), draw(figure, renderer)))

    def paint(figure: Figure) -> None:
        figure.subplots().set(xlabel="n")
        figure.tight_layout()

    style.save_figure(tmp_path, "one", (3, 2), paint)
    assert drawn == [72]
