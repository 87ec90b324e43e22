"""Table 1 as a picture: the cost of a layer and the length of signal paths, against the length of the sequence."""

import statistics
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from repro.figures import style
from repro.figures.style import Axes, Figure
from repro.results.layer_costs import FILE, LAYER_COSTS_FOLDER, Measured, load

LAYERS = {  # in the order of their colours, dashes and markers
    "self_attention": "self-attention",
    "recurrent": "recurrent",
    "convolution": "convolutional",
    "restricted": "self-attention, restricted",
    "dilated": "convolutional, dilated",
    "gated": "recurrent, gated",
    "separable": "separable convolution",
}
HOLLOW = ("recurrent", "convolution")  # larger, open markers, so that they are visible under another line
Lines = dict[str, list[tuple[int, float]]]  # layer -> (n, value)


class Panel(NamedTuple):
    """One quantity against n."""

    label: str
    lines: Lines


def panels(measured: Measured) -> list[Panel]:
    """Operations, time and memory at the middle width, and the paths; the first window wherever there is one."""
    window, widths = measured.grid["windows"][0], measured.grid["d_timed"]
    d = widths[len(widths) // 2]
    counts = [count for count in measured.counts if count.d == d and count.n in measured.grid["n"]]
    times = [time for time in measured.times if time.d == d]
    return [
        Panel(f"mixing, d = {d} (FLOPs)", _lines(counts, window, lambda count: count.mixing_flops)),
        Panel(
            f"forward and backward, d = {d} (ms)",
            _lines(times, window, lambda time: 1e3 * statistics.median(time.seconds)),
        ),
        Panel(f"kept for backward, d = {d} (MiB)", _lines(counts, window, lambda count: count.saved_bytes / 2**20)),
        Panel("longest path (layers or steps)", _lines(measured.paths, window, lambda path: path.path)),
    ]


def _lines(lines: Iterable[Any], window: int, value: Callable[[Any], float]) -> Lines:
    found: Lines = {}
    for line in lines:
        if line.layer in LAYERS and line.window in (None, window):
            found.setdefault(line.layer, []).append((line.n, value(line)))
    return {layer: sorted(points) for layer, points in found.items()}


def draw_table1(results: Path) -> list[Path]:
    """table1.svg beside the measurements it shows; nothing where there are none."""
    folder = results / LAYER_COSTS_FOLDER
    if not (folder / FILE).exists():
        return []
    measured = load(folder / FILE)
    paint = partial(_paint, shown=panels(measured), window=measured.grid["windows"][0])
    return style.save_figure(folder, "table1", (style.WIDTH, 6.6), paint)


def _paint(figure: Figure, shown: list[Panel], window: int) -> None:
    figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
    handles: dict[str, Any] = {}
    for axes, panel in zip(figure.subplots(2, 2).flat, shown, strict=True):
        handles |= _paint_panel(axes, panel)
    layers = [layer for layer in LAYERS if layer in handles]
    figure.legend(
        [handles[layer] for layer in layers],
        [LAYERS[layer] for layer in layers],
        title=f"kernel k = neighbourhood r = {window}",
        loc="outside lower center",
        ncols=3,
        handlelength=3.6,
    )


def doublings(lengths: Collection[int]) -> list[int]:
    """The lengths that are the shortest times a power of two; labels at all thirteen would overlap."""
    shortest = min(lengths)
    return [n for n in sorted(lengths) if n % shortest == 0 and (n // shortest).bit_count() == 1]


def _paint_panel(axes: Axes, panel: Panel) -> dict[str, Any]:
    """Paint the lines of a panel; returns them by layer."""
    from matplotlib.ticker import NullLocator, ScalarFormatter

    handles = {}
    for layer, points in panel.lines.items():
        i = list(LAYERS).index(layer)
        hollow: dict[str, Any] = {"fillstyle": "none", "markersize": 8} if layer in HOLLOW else {}
        (handles[layer],) = axes.plot(
            [n for n, _ in points],
            [value for _, value in points],
            color=style.COLOURS[i],
            linestyle=style.DASHES[i],
            marker=style.MARKERS[i],
            **hollow,
        )
    axes.set(xscale="log", yscale="log", xlabel="sequence length n (positions)", ylabel=panel.label)
    axes.set_xticks(doublings({n for points in panel.lines.values() for n, _ in points}))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(True, which="major")
    return handles
