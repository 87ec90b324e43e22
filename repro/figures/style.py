"""How every figure looks, and how it becomes a file: a Times-like face, eight colours, no date in the bytes."""

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.figures.slim import slim
from repro.storage.atomic import write_bytes, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is imported when something is drawn
    Axes = Figure = Any

Paint = Callable[[Figure], None]

WIDTH = 7.0  # inches, the text width of a page
MOST = 16  # lines of one picture that can be told apart
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


def look(i: int) -> dict[str, Any]:
    """Colour, dashes and marker of line number `i`, from 0; of the first 16 no two share two of the three."""
    lap, at = divmod(i, len(COLOURS))
    return {"color": COLOURS[at], "ls": DASHES[at ^ lap % 2], "marker": MARKERS[at ^ 2 * (lap % 2)]}


def looks(rows: Sequence[str], drawn: Collection[str]) -> dict[str, dict[str, Any]]:
    """The look of each of the `drawn` rows, with its label: the same in all pictures of the table that has all `rows`.

    Raises ValueError if there are more rows than a reader can tell apart.
    """
    if len(rows) > MOST:
        raise ValueError(
            f"its {len(rows)} rows cannot be told apart in one picture, which has {MOST} lines at most. The report for "
            "the browser shows them: `python -m repro report --html`."
        )
    return {row: look(rows.index(row)) | {"label": symbols(row)} for row in drawn}


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


@contextmanager
def house() -> Iterator[None]:
    """Use matplotlib with our settings and none of the user's, until the end of the block."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_HOUSE)
        yield


def save_figure(folder: Path, name: str, size: tuple[float, float], paint: Paint) -> list[Path]:
    """Write a figure of `size` inches as `name`.svg, and return that file; the same input gives the same bytes."""
    write_bytes(folder / f"{name}.svg", svg(size, paint))
    return [folder / f"{name}.svg"]


def svg(size: tuple[float, float], paint: Paint) -> bytes:
    """The figure as a file's bytes."""
    file = BytesIO()  # matplotlib writes an SVG in pieces of a few bytes
    with house():
        painted(size, paint).savefig(file, format="svg", metadata=UNNAMED)
    return slim(file.getvalue())


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


def canvas(figure: Figure) -> Axes:
    """Bare axes for a drawing, in points of 1/72 inch from the lower left corner of the figure."""
    axes = figure.add_axes((0, 0, 1, 1))
    width, height = figure.get_size_inches()
    axes.set(xlim=(0, 72 * width), ylim=(0, 72 * height))
    axes.set_axis_off()
    return axes


def legend_below(figure: Figure, looks: Iterable[Mapping[str, Any]], *, w_pad: float, **how: Any) -> None:
    """Add a legend under all panels, in as many columns as there is room for; the figure grows by its height."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **look) for look in looks]
    for across in range(5, 0, -1):
        legend = figure.legend(handles=handles, loc="lower center", ncols=across, **how)
        box = legend.get_window_extent()
        if box.width <= figure.bbox.width:
            break
        if across > 1:
            legend.remove()
    legend.get_title().set_multialignment("center")
    figure.tight_layout(w_pad=w_pad, h_pad=0.4)
    height, place = figure.get_figheight(), figure.subplotpars
    foot = box.y1 / figure.dpi  # inches
    figure.set_figheight(height + foot)
    figure.subplots_adjust(
        bottom=(place.bottom * height + foot) / (height + foot), top=(place.top * height + foot) / (height + foot)
    )


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


def save_numbers(folder: Path, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write the numbers of a picture as `name`.csv, floats to six digits, so that processors agree."""
    from pandas import DataFrame

    file, frame = folder / f"{name}.csv", DataFrame([*rows], columns=list(columns))
    write_text(file, frame.to_csv(index=False, float_format="%.6g", lineterminator="\n"))
    return file
