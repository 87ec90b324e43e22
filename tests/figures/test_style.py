"""Lines that can be told apart, a legend that stands whole on the page, a file in half the room that shows the same."""

import itertools
import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from repro.figures import curves, style
from repro.figures.style import LINK, SVG
from repro.results.record import Record

Make = Callable[..., Record]


def test_of_sixteen_lines_no_two_look_the_same_in_colour_or_in_grey() -> None:
    looks = [style.look(i) for i in range(curves.MOST)]
    for one, other in itertools.combinations(("color", "ls", "marker"), 2):
        assert len({(look[one], look[other]) for look in looks}) == curves.MOST
    first = [(look["color"], look["ls"], look["marker"]) for look in looks[:8]]
    assert first == [*zip(style.COLOURS, style.DASHES, style.MARKERS, strict=True)]


@pytest.mark.parametrize(
    ("draw", "n_rows"), [(curves.draw_curves, 1), (curves.draw_curves, 15), (curves.draw_over_operations, 15)]
)
def test_every_line_has_a_look_of_its_own_and_all_words_are_on_the_page(draw: Any, n_rows: int, a_record: Make) -> None:
    rows = [
        a_record(f"soft alignment with scores of kind {n}", position=n, dev={"step": [10, 20], "nll": [9.0, 3.0 + n]})
        for n in range(n_rows)
    ]
    [figure] = draw("ladder", [a_record("base"), *rows])
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


def test_more_rows_than_can_be_told_apart_have_no_picture(a_record: Make) -> None:
    rows = [a_record("base"), *(a_record(f"row {n}", position=n) for n in range(curves.MOST))]
    with pytest.raises(ValueError, match="its 17 rows cannot be told apart in one picture"):
        curves.draw_over_operations("ladder", rows)
    [look] = curves.looks_of(rows[:3], ["row 1"]).values()
    assert look["color"] == style.COLOURS[2], "as in the table's other pictures"


def test_a_figure_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, drawn = Figure.draw, list[float]()
    monkeypatch.setattr(Figure, "draw", lambda figure, renderer: (drawn.append(figure.dpi), draw(figure, renderer)))
    figure = style.figure("one", 2, 3)
    figure.subplots().set(xlabel="n")
    figure.tight_layout()
    style.svg(figure)
    assert drawn == [72]


# ---- the same picture in half the room


def picture() -> bytes:
    with style.house():
        figure = style.figure("one", 2, 4)
        left, right = figure.subplots(1, 2)
        left.plot([0, 1, 2], [0.1, -0.123456, 3e-7], "o--", color="#0072b2", label="$d_k$ of öne")
        left.fill_between([0, 1, 2], 0, 1, alpha=0.2)
        left.legend()
        right.imshow(np.arange(6).reshape(2, 3))
        right.set_ylabel("turned")
        return style.svg(figure)


def shapes(root: ElementTree.Element) -> list[tuple[str, list[float], str, str]]:
    """Each shape with its numbers and its look; what it points at is written out."""
    sheet = root.findtext(f"{SVG}defs/{SVG}style") or ""
    looks = dict(re.findall(r"^\.(\w+)\{(.*)\}$", sheet, re.MULTILINE))
    ids = {one.get("id"): one for one in root.iter()}
    found = []
    for one in root.iter():
        if one.tag in {f"{SVG}{name}" for name in ("path", "use", "rect", "image", "clipPath")}:
            place = " ".join(one.get(key, "") for key in ("d", "x", "y", "width", "height", "transform"))
            link = one.get("href") or one.get(LINK) or ""
            aim = ids[link[1:]].get("d", "?") if link.startswith("#") else link
            clip = one.get("clip-path")
            assert clip is None or clip[5:-1] in ids
            written = f"{place} {aim if link.startswith('#') else ''}"
            numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", written)]
            found.append(
                (one.tag, numbers, one.get("style") or looks.get(one.get("class", ""), ""), link[:1] + aim[:1])
            )
    return found


def test_every_shape_is_where_it_was_and_looks_as_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    small = picture()
    assert picture() == small
    monkeypatch.setattr(style, "slim", lambda picture: picture)
    large = picture()
    assert len(small) < 0.65 * len(large)
    assert small.startswith(b"<?xml")
    before, after = (shapes(ElementTree.fromstring(one)) for one in (large, small))
    assert len(before) == len(after) > 30
    for (tag, numbers, look, aim), (other_tag, others, other_look, other_aim) in zip(before, after, strict=True):
        assert (tag, look, aim) == (other_tag, other_look, other_aim)
        if len(others) == len(numbers) - 1:  # an x instead of a shift by x and 0
            numbers.remove(0)
        assert others == pytest.approx(numbers, abs=0.0051)
