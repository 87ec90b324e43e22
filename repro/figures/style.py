"""How every figure looks, and how it becomes a file: a Times-like face, eight colours, no date in the bytes.

A figure is written as matplotlib's SVG in half the room, with the same look: nothing that is not seen, and nothing said
twice.
"""

import re
import string
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from repro.storage.atomic import write_bytes, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is imported when something is drawn
    Axes = Figure = Any

WIDTH = 7.0  # inches, the text width of a page
INK, SOFT, PALE = "#1a1a1a", "#6b6b6b", "#d9d9d9"
# Okabe and Ito's colours, which colour-blind readers can tell apart; yellow is left out, as paper does not show it
COLOURS = ("#1a1a1a", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f4fa0")
# dashes, by which the same lines can be told apart in grey
DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (6, 1.5, 1, 1.5)),
    (0, (3, 1)),
    (0, (1, 2.2)),
    (0, (8, 2)),
    (0, (4, 1, 1, 1, 1, 1)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")


class Missing(ValueError):
    """The runs of a table that a picture needs are not there; `draw.py` adds the command that makes them."""

    def __init__(self, what: str, table: str = "all_tables", rows: str = "") -> None:
        super().__init__(what)
        self.table, self.rows = table, rows


def look(i: int) -> dict[str, Any]:
    """Colour, dashes and marker of line number `i`, from 0; of the first 16 no two share two of the three."""
    lap, at = divmod(i, len(COLOURS))
    return {"color": COLOURS[at], "ls": DASHES[at ^ lap % 2], "marker": MARKERS[at ^ 2 * (lap % 2)]}


_HOUSE: dict[Any, Any] = {
    "font.family": "STIXGeneral",  # it comes with matplotlib, so it is the same on every machine
    "mathtext.fontset": "stix",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.7),
    **dict.fromkeys(("xtick.minor.width", "ytick.minor.width"), 0.5),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.unicode_minus": True,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "attention",  # else the names inside an SVG are drawn at random
}


def house() -> AbstractContextManager[None]:
    """Until the end of the block matplotlib has our settings, and none of the user's."""
    import matplotlib.style

    return matplotlib.style.context(_HOUSE, after_reset=True)


def figure(name: str, height: float, width: float = WIDTH) -> Figure:
    """An empty figure of so many inches, which is saved as `name`.

    It is made outside of pyplot, so there is no window and no shared state, but text can be measured.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), label=name)
    FigureCanvasAgg(made)
    return made


class Numbers(NamedTuple):
    """The numbers of a figure, which are saved beside it."""

    name: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


Drawn = list[Figure | Numbers]


def save(folder: Path, made: Figure | Numbers) -> Path:
    """Write a figure as SVG, or numbers as CSV to six digits, so that processors agree; returns the file."""
    if isinstance(made, Numbers):
        from pandas import DataFrame

        file, frame = folder / f"{made.name}.csv", DataFrame([*made.rows], columns=[*made.columns])
        write_text(file, frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    else:
        write_bytes(file := folder / f"{made.get_label()}.svg", svg(made))
    return file


def svg(made: Figure) -> bytes:
    """A figure as a file's bytes, in the look of `house`; the same input gives the same bytes."""
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    if isinstance(made.get_layout_engine(), PlaceHolderLayoutEngine):  # left behind by `tight_layout`: it moves
        made.set_layout_engine(None)  # nothing any more, but would make matplotlib draw the figure twice
    file = BytesIO()  # matplotlib writes an SVG in pieces of a few bytes
    made.savefig(file, format="svg", metadata={"Date": None, "Creator": None})  # either would change the bytes
    return slim(file.getvalue())


def canvas(figure: Figure) -> Axes:
    """Bare axes for a drawing, in points of 1/72 inch from the lower left corner of the figure."""
    axes = figure.add_axes((0, 0, 1, 1))
    width, height = figure.get_size_inches()
    axes.set(xlim=(0, 72 * width), ylim=(0, 72 * height))
    axes.set_axis_off()
    return axes


def note(figure: Figure, text: str) -> None:
    """Write a caption at the lower edge, with what a reader must know about the numbers; long text is broken."""
    if "\n" not in text:
        text = textwrap.fill(text, 132, break_on_hyphens=False)
    figure.text(0.5, 0.012, text, ha="center", va="bottom", fontsize=8.2, color=SOFT, linespacing=1.25)


def symbols(text: str) -> str:
    """Names of rows with the paper's symbols P_drop, d_k, eps_ls as matplotlib formulas; other text is unchanged."""
    indexed = r"\b(?P<letter>[Pd]|eps)_(?P<index>drop|model|ff|k|v|ls)(?![A-Za-z0-9_])"

    def formula(name: re.Match[str]) -> str:
        letter, index = name["letter"].replace("eps", r"\epsilon"), name["index"]
        word = index if len(index) == 1 else rf"\mathrm{{{index}}}"  # d_k, but P_drop
        return f"${letter}_{{{word}}}$"

    return re.sub(indexed, formula, text.replace("$", r"\$"))


# ---- the same picture in half the room

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
    # what something points at keeps a name, in the order of the picture
    pointed = [link[1:] for one in root.iter() if (link := one.get(LINK, "")).startswith("#")]
    pointed += [name for one in root.iter() for value in one.attrib.values() for name in POINTED.findall(value)]
    names = _short(dict.fromkeys(pointed))
    looks = Counter(style for one in root.iter() if (style := one.get("style")))
    classes = _short(style for style, times in looks.items() if times > 1)
    for one in root.iter():
        for name in NUMBERS:
            if name in one.attrib and one is not root:
                one.set(name, _path(one.attrib[name]) if name == "d" else NUMBER.sub(_rounded, one.attrib[name]))
        _move(one)
        _rename(one, names)
        if (style := one.get("style")) in classes:
            one.set("class", classes[one.attrib.pop("style")])
    sheet = root.find(f"{SVG}defs/{SVG}style")
    if sheet is not None:
        sheet.text = "\n".join([sheet.text or "", *(f".{name}{{{style}}}" for style, name in classes.items())])
    _flatten(root)
    ElementTree.register_namespace("", SVG[1:-1])
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


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
