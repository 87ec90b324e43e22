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


@pytest.mark.parametrize("n_rows", [1, 7, 16, 40])
@pytest.mark.parametrize("draw", [curves.draw_curves, curves.draw_over_operations])
def test_every_line_has_a_look_of_its_own_and_all_words_are_on_the_page(
    draw: Any, n_rows: int, a_record: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    painted: list[Any] = []
    paint = style.painted
    monkeypatch.setattr(style, "painted", lambda size, act: painted.append(paint(size, act)) or painted[-1])
    names = [f"soft alignment with scores of kind {n}" for n in range(n_rows)]
    draw(tmp_path, "ladder", [a_record("base"), *(a_record(name, position=i) for i, name in enumerate(names))])
    (figure,) = painted
    figure.canvas.draw()
    (legend,) = figure.legends
    right = figure.axes[1]
    lines = {(line.get_color(), line._dash_pattern[1] and tuple(line._dash_pattern[1])) for line in right.lines}
    assert len(lines) == len(right.lines) == n_rows + 1
    assert len(legend.get_texts()) == n_rows + 1
    for words in (legend, *(axes.yaxis.label for axes in figure.axes), *(axes.xaxis.label for axes in figure.axes)):
        box = words.get_window_extent()
        assert box.x0 > -1
        assert box.y0 > -1
        assert box.x1 < figure.bbox.x1 + 1
        assert box.y1 < figure.bbox.y1 + 1
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
