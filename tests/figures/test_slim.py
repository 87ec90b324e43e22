"""A picture in half the room shows the same: every shape where it was, in the look that it had."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from repro.figures import style
from repro.figures.slim import SVG, slim
from repro.figures.style import Figure

LINK = "{http://www.w3.org/1999/xlink}href"


def paint(figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    left.plot([0, 1, 2], [0.1, -0.123456, 3e-7], "o--", color="#0072b2", label="$d_k$ of öne")
    left.fill_between([0, 1, 2], 0, 1, alpha=0.2)
    left.legend()
    right.imshow(np.arange(6).reshape(2, 3))
    right.set_ylabel("turned")


@pytest.fixture(scope="module")
def pictures() -> tuple[ElementTree.Element, ElementTree.Element]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "slim", lambda picture: picture)
        before = style.svg((4, 2), paint)
    after = slim(before)
    assert len(after) < 0.65 * len(before)
    assert after.startswith(b"<?xml")
    return ElementTree.fromstring(before), ElementTree.fromstring(after)


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


def test_every_shape_is_where_it_was_and_looks_as_it_did(
    pictures: tuple[ElementTree.Element, ElementTree.Element],
) -> None:
    before, after = map(shapes, pictures)
    assert len(before) == len(after) > 30
    for (tag, numbers, look, aim), (other_tag, others, other_look, other_aim) in zip(before, after, strict=True):
        assert (tag, look, aim) == (other_tag, other_look, other_aim)
        if len(others) == len(numbers) - 1:  # an x instead of a shift by x and 0
            numbers.remove(0)
        assert others == pytest.approx(numbers, abs=0.0051)


def test_the_same_picture_is_the_same_bytes_and_a_slim_one_stays(
    pictures: tuple[ElementTree.Element, ElementTree.Element],
) -> None:
    one, other = style.svg((4, 2), paint), style.svg((4, 2), paint)
    assert one == other
    assert ElementTree.tostring(ElementTree.fromstring(one)) == ElementTree.tostring(pictures[1])
