"""Matplotlib's SVG in half the room, with the same look: nothing that is not seen, and nothing said twice."""

import re
import string
from collections import Counter
from collections.abc import Iterable
from xml.etree import ElementTree

DIGITS = 2  # behind the point: a hundredth of a point is not seen
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
NUMBER = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")
POINTED = re.compile(r"url\(#([^)]*)\)")
PLAIN_SHIFT = re.compile(r"translate\((\S+)[ ,]0\)")
NUMBERS = ("d", "x", "y", "width", "height")


def slim(picture: bytes) -> bytes:
    """The picture again: coordinates of two digits, short names, each style and each attribute once."""
    root = ElementTree.fromstring(picture)
    for metadata in root.findall(f"{SVG}metadata"):
        root.remove(metadata)
    names = _short(_pointed_at(root))
    looks = Counter(style for one in root.iter() if (style := one.get("style")))
    classes = _short([style for style, times in looks.items() if times > 1])
    for one in root.iter():
        for name in NUMBERS:
            if name in one.attrib and one is not root:
                one.set(name, _path(one.attrib[name]) if name == "d" else NUMBER.sub(_rounded, one.attrib[name]))
        _move(one)
        _rename(one, names)
        if (style := one.get("style")) in classes:
            one.set("class", classes[one.attrib.pop("style")])
    rules = [f".{name}{{{style}}}" for style, name in classes.items()]
    sheet = root.find(f"{SVG}defs/{SVG}style")
    if sheet is not None:
        sheet.text = "\n".join([sheet.text or "", *rules])
    _flatten(root)
    ElementTree.register_namespace("", SVG[1:-1])
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _pointed_at(root: ElementTree.Element) -> list[str]:
    """The ids that something refers to, in the order of the picture."""
    found = [link[1:] for one in root.iter() if (link := one.get(LINK, "")).startswith("#")]
    found += [name for one in root.iter() for value in one.attrib.values() for name in POINTED.findall(value)]
    return [*dict.fromkeys(found)]


def _short(names: Iterable[str]) -> dict[str, str]:
    """A name of one or two letters for each."""
    letters = string.ascii_letters
    short = [*letters, *(a + b for a in letters for b in letters)]
    return dict(zip(names, short, strict=False))


def _rounded(number: re.Match[str]) -> str:
    value = round(float(number[0]), DIGITS) + 0.0  # no minus before a zero
    return f"{value:.{DIGITS}f}".rstrip("0").rstrip(".")


def _path(path: str) -> str:
    """A path without what may be left out: a command that is repeated, a blank before a sign."""
    made, last = [], ""
    for command, numbers in re.findall(r"([MLQCZz])([^MLQCZz]*)", NUMBER.sub(_rounded, path)):
        goes_on = command == last in "LQC" or last + command == "ML"
        made += [" " if goes_on else command, " ".join(numbers.split())]
        last = command
    return "".join(made).replace(" -", "-")


def _move(one: ElementTree.Element) -> None:
    """Round where it stands; a letter that is only shifted to the right has an x instead."""
    if transform := one.get("transform"):
        moved = re.sub(r"translate\([^)]*\)", lambda found: NUMBER.sub(_rounded, found[0]), transform)
        one.set("transform", moved)
        if one.tag == f"{SVG}use" and (shift := PLAIN_SHIFT.fullmatch(moved)) and "x" not in one.attrib:
            one.set("x", shift[1])
            del one.attrib["transform"]


def _rename(one: ElementTree.Element, names: dict[str, str]) -> None:
    if LINK in one.attrib:
        link = one.attrib.pop(LINK)
        one.set("href", f"#{names[link[1:]]}" if link.startswith("#") else link)
    if name := one.attrib.pop("id", None):
        one.attrib |= {"id": names[name]} if name in names else {}
    for key, value in one.attrib.items():
        one.set(key, POINTED.sub(lambda found: f"url(#{names[found[1]]})", value))


def _flatten(one: ElementTree.Element) -> None:
    """Take the content out of groups that say nothing, and put each element on a line of its own."""
    inside: list[ElementTree.Element] = []
    for child in one:
        _flatten(child)
        inside += child if child.tag == f"{SVG}g" and not child.attrib else [child]
    one[:] = inside
    if inside:
        one.text = "\n"
    for child in inside:
        child.tail = "\n"
