"""Table 1 as a picture: the cost of a layer and the length of signal paths, against the length of the sequence."""

import statistics
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from repro.figures import style
from repro.figures.style import Figure
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


def panels(measured: Measured) -> dict[str, Lines]:
    """Operations, time and memory at the middle width, and the paths; the first window wherever there is one."""
    window, widths = measured.grid["windows"][0], measured.grid["d_timed"]
    d = widths[len(widths) // 2]
    counts = [count for count in measured.counts if count.d == d and count.n in measured.grid["n"]]
    times = [time for time in measured.times if time.d == d]

    def lines(of: Iterable[Any], value: Callable[[Any], float]) -> Lines:
        found: Lines = {}
        for one in of:
            if one.layer in LAYERS and one.window in (None, window):
                found.setdefault(one.layer, []).append((one.n, value(one)))
        return {layer: sorted(points) for layer, points in found.items()}

    return {
        f"mixing, d = {d} (FLOPs)": lines(counts, lambda count: count.mixing_flops),
        f"forward and backward, d = {d} (ms)": lines(times, lambda time: 1e3 * statistics.median(time.seconds)),
        f"kept for backward, d = {d} (MiB)": lines(counts, lambda count: count.saved_bytes / 2**20),
        "longest path (layers or steps)": lines(measured.paths, lambda path: path.path),
    }


def draw_table1(results: Path) -> list[Path]:
    """table1.svg beside the measurements it shows; nothing where there are none."""
    folder = results / LAYER_COSTS_FOLDER
    if not (folder / FILE).exists():
        return []
    measured = load(folder / FILE)
    paint = partial(_paint, shown=panels(measured), window=measured.grid["windows"][0])
    return style.save_figure(folder, "table1", (style.WIDTH, 6.6), paint)


def doublings(lengths: Collection[int]) -> list[int]:
    """The lengths that are the shortest times a power of two; labels at all thirteen would overlap."""
    shortest = min(lengths)
    return [n for n in sorted(lengths) if n % shortest == 0 and (n // shortest).bit_count() == 1]


def _paint(figure: Figure, shown: Mapping[str, Lines], window: int) -> None:
    from matplotlib.ticker import NullLocator, ScalarFormatter

    figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
    handles: dict[str, Any] = {}
    for axes, (label, lines) in zip(figure.subplots(2, 2).flat, shown.items(), strict=True):
        for layer, points in lines.items():
            hollow: dict[str, Any] = {"fillstyle": "none", "markersize": 8} if layer in HOLLOW else {}
            (handles[layer],) = axes.plot(*zip(*points, strict=True), **style.look([*LAYERS].index(layer)), **hollow)
        axes.set(xscale="log", yscale="log", xlabel="sequence length n (positions)", ylabel=label)
        axes.set_xticks(doublings({n for points in lines.values() for n, _ in points}))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(True, which="major")
    layers = {layer: name for layer, name in LAYERS.items() if layer in handles}
    figure.legend(
        [handles[layer] for layer in layers],
        [*layers.values()],
        title=f"kernel k = neighbourhood r = {window}",
        loc="outside lower center",
        ncols=3,
        handlelength=3.6,
    )
