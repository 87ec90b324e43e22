"""How every figure looks, and how it becomes a file: a Times-like face, eight colours, no date in the bytes."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.results.record import BASE
from repro.storage.atomic import write_bytes, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is imported when something is drawn
    Axes = Figure = Any

Paint = Callable[[Figure], None]
LineLook = Mapping[str, Any]  # the colour, dashes, marker and label of a line

WIDTH = 7.0  # inches, the text width of a page
MOST = 16  # lines of one panel that can be told apart
PANEL = 1.3  # inches: the height of each of many panels
ITSELF = "the row that the panel is named after"
UNNAMED: dict[str, Any] = {"Date": None, "Creator": None}  # either would change the bytes
INK, SOFT, GREY, PALE = "#1a1a1a", "#6b6b6b", "#a6a6a6", "#d9d9d9"
# Okabe and Ito's colours, which colour-blind readers can tell apart; yellow is left out, as paper does not show it
COLOURS = ("#1a1a1a", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f4fa0")
HEADS = (*COLOURS[1:], "#8c510a")  # for attention heads; black is for words
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
# the shift of markers against dashes in each round of colours. SHIFTS[n] and n ^ SHIFTS[n] both take each of 0 to 7
# once, so each pair of dashes and marker occurs once in 64 lines
SHIFTS = (0, 2, 4, 6, 3, 1, 7, 5)


def look(i: int) -> dict[str, Any]:
    """Colour, dashes and marker of line number `i`, from 0; among 64 lines no two share two of the three."""
    lap, at = divmod(i, len(COLOURS))
    lap %= len(SHIFTS)
    return {"color": COLOURS[at], "ls": DASHES[at ^ lap], "marker": MARKERS[at ^ SHIFTS[lap]]}


@dataclass(frozen=True)
class Group:
    """Rows of a table that are drawn in one pair of panels."""

    name: str  # written above it; "" where all rows of the table are drawn together
    looks: Mapping[str, LineLook]  # by row, in their order


def groups(rows: Sequence[str], drawn: Sequence[str]) -> list[Group]:
    """Group all rows of a table together, or, if more than `MOST`, by their names up to the last comma.

    With several groups, each has the base in grey beside it, and rows with the same text after the comma look the same.
    Only `drawn` rows are in the groups, whose order is that of `drawn`; the other rows still count, so that a row looks
    the same in all pictures of its table.
    """
    if len(rows) <= MOST or {*drawn} <= {BASE}:
        return [Group("", {row: look(rows.index(row)) | {"label": symbols(row)} for row in drawn})]
    parts = {row: row.rpartition(", ") for row in rows if row != BASE}
    names = {row: (head, end) if comma else (row, ITSELF) for row, (head, comma, end) in parts.items()}
    together: dict[str, dict[str, str]] = {}  # group -> row -> the text after the comma
    for row, (name, end) in names.items():
        together.setdefault(name, {})[row] = end
    fullest = sorted(together.values(), key=len, reverse=True)  # the fullest group has them in the table's order
    ends = [*dict.fromkeys(end for of in fullest for end in of.values())]
    base = {BASE: look(0) | {"color": GREY, "label": BASE}} if BASE in drawn else {}
    found: dict[str, dict[str, LineLook]] = {}
    for row in drawn:
        if row != BASE:
            name, end = names[row]
            found.setdefault(name, {**base})[row] = look(1 + ends.index(end)) | {"label": symbols(end)}
    return [Group(name, {row: looks[row] for row in rows if row in looks}) for name, looks in found.items()]


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
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.width": 0.5,
    "ytick.minor.width": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
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


@contextmanager
def house() -> Iterator[None]:
    """Use matplotlib with our settings and none of the user's, until the end of the block."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_HOUSE)
        yield


def save_figure(folder: Path, name: str, size: tuple[float, float], paint: Paint) -> Path:
    """Write a figure of `size` inches as `name`.svg and return that file; the same input gives the same bytes."""
    file = folder / f"{name}.svg"
    write_bytes(file, svg(size, paint))
    return file


def svg(size: tuple[float, float], paint: Paint) -> bytes:
    """The figure as a file's bytes."""
    file = BytesIO()  # matplotlib writes an SVG in pieces of a few bytes
    with house():
        painted(size, paint).savefig(file, format="svg", metadata=UNNAMED)
    return file.getvalue()


def painted(size: tuple[float, float], paint: Paint) -> Figure:
    """A figure outside of pyplot: no window, no shared state, but text can be measured."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import PlaceHolderLayoutEngine

    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    paint(figure)
    if isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine):  # left behind by `tight_layout`: it moves
        figure.set_layout_engine(None)  # nothing any more, but would make matplotlib draw the figure twice
    return figure


def canvas(figure: Figure, box: tuple[float, float, float, float] = (0, 0, 1, 1)) -> Axes:
    """Bare axes for a drawing, in points of 1/72 inch from the lower left corner of `box` (shares of the figure)."""
    axes = figure.add_axes(box)
    width, height = figure.get_size_inches()
    axes.set(xlim=(0, 72 * width * box[2]), ylim=(0, 72 * height * box[3]))
    axes.set_axis_off()
    return axes


def panels(
    figure: Figure, of: Sequence[Group], titles: tuple[str, str], y: str, x: tuple[str, str], *, share: bool
) -> list[tuple[Group, Axes, Axes]]:
    """An empty pair of panels for each group, large for one group, small for many.

    They are labelled for the scales that `level` sets once something is drawn. The height of the figure follows from
    the number of small panels.
    """
    small, across = bool(of[0].name), min(len(of), 2)
    down = -(-len(of) // across)
    if small:
        figure.set_figheight(0.7 + PANEL * down)
        figure.supylabel(y, fontsize=10)
    grid = figure.subplots(down, 2 * across, squeeze=False)
    found = []
    for i, group in enumerate(of):
        pair = grid[i // across, 2 * (i % across) : 2 * (i % across) + 2]
        for axes, title, name, first in zip(pair, titles, x, grid[0, :2], strict=True):
            if small or share:
                axes.tick_params(labelleft=axes in grid[:, 0])
            if small:
                above = [title] * (i < across) + [symbols(group.name) if first is grid[0, 0] else ""]
                axes.set_title("\n".join(above), loc="left", fontsize=9)
            else:
                axes.set_title(title)
            if is_lowest := i + across >= len(of):
                axes.set_xlabel(name, loc="left" if small else "center")  # a power of ten may stand to the right
            axes.tick_params(labelbottom=is_lowest)
        found.append((group, *pair))
    for axes in grid.flat[2 * len(of) :]:
        axes.remove()
    if not small:
        grid[0, 0].set_ylabel(y)
    return found


def level(of: Sequence[tuple[Group, Axes, Axes]], *, share: bool) -> None:
    """Give small panels, or a large pair that is to `share` its y axis, one scale, as if each had all lines.

    Matplotlib's shared axes would give the same result, but they query each other's limits for every line, which takes
    a third of the time of a figure of 32.
    """
    small = bool(of[0][0].name)
    left, right = [[pair[side] for _, *pair in of] for side in (0, 1)]
    for alike, along in ((left, "x"), (right, "x"), ([*left, *right], "y")):
        if small or (share and along == "y"):
            ends = [corner for axes in alike for corner in axes.dataLim.get_points()]
            for axes in alike:
                axes.update_datalim(ends, updatex=along == "x", updatey=along == "y")
                axes.autoscale_view(scalex=along == "x", scaley=along == "y")


def legend_below(figure: Figure, of: Sequence[Group], *, w_pad: float, **how: Any) -> None:
    """Add a legend under all panels, in as many columns as there is room for; the figure grows by its height."""
    from matplotlib.lines import Line2D

    fullest = sorted((group.looks.values() for group in of), key=len, reverse=True)
    handles = [Line2D([], [], **look) for look in {look["label"]: look for of in fullest for look in of}.values()]
    for across in range(5, 0, -1):
        legend = figure.legend(handles=handles, loc="lower center", ncols=across, **how)
        box = legend.get_window_extent()
        if box.width <= figure.bbox.width:
            break
        if across > 1:
            legend.remove()
    legend.get_title().set_multialignment("center")
    figure.tight_layout(w_pad=w_pad, h_pad=0.4)
    add_foot(figure, box.y1 / figure.dpi)


def add_foot(figure: Figure, inches: float) -> None:
    """Extend the figure downwards, while panels keep their size: matplotlib lays out a part of one twice."""
    height, place = figure.get_figheight(), figure.subplotpars
    whole = height + inches
    figure.set_figheight(whole)
    figure.subplots_adjust(bottom=(place.bottom * height + inches) / whole, top=(place.top * height + inches) / whole)


def note(figure: Figure, text: str) -> None:
    """Write a caption at the lower edge, with what a reader must know about the numbers."""
    figure.text(0.5, 0.012, text, ha="center", va="bottom", fontsize=8.2, color=SOFT, linespacing=1.25)


def symbols(text: str) -> str:
    """Names of rows with the paper's symbols P_drop, d_k, eps_ls as matplotlib formulas; other text is unchanged."""
    indexed = r"\b(?P<letter>[Pd]|eps)_(?P<index>drop|model|ff|k|v|ls)(?![A-Za-z0-9_])"

    def formula(name: re.Match[str]) -> str:
        letter, index = name["letter"].replace("eps", r"\epsilon"), name["index"]
        word = index if len(index) == 1 else rf"\mathrm{{{index}}}"  # d_k, but P_drop
        return f"${letter}_{{{word}}}$"

    return re.sub(indexed, formula, text.replace("$", r"\$"))


def save_numbers(folder: Path, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write the numbers of a picture as `name`.csv, floats to six digits, so that processors agree."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row] for row in rows)
    write_text(folder / f"{name}.csv", text.getvalue())
    return folder / f"{name}.csv"
