"""Exponents, laws of growth and comparisons of times, from measurements of layers. Paper: Table 1.

The paper prints orders of growth, so a law is fitted and its constant factor is shown beside it.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from repro.claims.blocks import CONFIDENCE
from repro.claims.decisions import OF_HOUSE, Outcome
from repro.results.layer_costs import Count, Measured, Steps

LABELS = {  # every measured layer
    "self_attention": "self-attention",
    "recurrent": "recurrent",
    "library_recurrent": "recurrent (PyTorch's RNN)",
    "gated": "recurrent, gated (GRU)",
    "library_gated": "recurrent, gated (PyTorch's GRU)",
    "convolution": "convolutional",
    "separable": "separable convolution",
    "restricted": "self-attention (restricted)",
    "feed_forward": "feed-forward",
}


ROUNDING = 1e-12  # of a logarithm: sums of some hundred terms in float64, each rounded to 1e-16


# Exponents


class Fit(NamedTuple):
    """A power law c n^a d^b w^c fitted to some points, by least squares of logarithms."""

    exponents: dict[str, float]
    half_widths: dict[str, float]  # of their 95 % t-intervals; NaN without degrees of freedom
    points: int


def power_law(lines: Sequence[Any], value: Callable[[Any], float], by: Sequence[str] = ("n", "d", "window")) -> Fit:
    """The exponents of `value` in those sizes of `by` that vary between the lines; the value must be positive."""
    import numpy as np
    from scipy.special import stdtrit

    sizes = [name for name in by if len({getattr(line, name) for line in lines} - {None}) > 1]
    x = np.array([[1.0, *(math.log(getattr(line, name)) for name in sizes)] for line in lines])
    y = np.log([value(line) for line in lines])
    found, _, rank, _ = np.linalg.lstsq(x, y)
    if rank < x.shape[1]:
        raise ValueError(f"Expected sizes {sizes} that vary by themselves, got {len(lines)} points in a line.")
    left = len(y) - x.shape[1]
    residuals = y - x @ found
    if np.abs(residuals).max() <= ROUNDING * np.abs(y).max():
        residuals[:] = 0.0  # an exact law: the rest is rounding noise
    variance = float((residuals**2).sum()) / left if left else math.nan
    spread = np.sqrt(variance * np.diag(np.linalg.inv(x.T @ x)))
    half_widths = spread[1:] * (float(stdtrit(left, (1 + CONFIDENCE) / 2)) if left else math.nan)
    exponents = [round(float(e), 12) + 0.0 for e in found[1:]]  # an exponent of 0 comes with rounding noise and a sign
    return Fit(dict(zip(sizes, exponents, strict=True)), dict(zip(sizes, map(float, half_widths), strict=True)), len(y))


QUANTITIES: dict[str, Callable[[Count], float]] = {
    "operations of the mixing": lambda count: count.mixing_flops,
    "operations of the layer": lambda count: count.flops,
    "memory": lambda count: count.saved_bytes,
}


def fits(measured: Measured) -> dict[tuple[str, str], Fit]:
    """(layer, quantity) -> exponents over the whole grid, for everything counted and timed."""
    regular = set(measured.grid["n"])
    found = {}
    for layer in LABELS:
        counts = [count for count in measured.counts if count.layer == layer and count.n in regular]
        for quantity, value in QUANTITIES.items():
            if counts and all(value(count) > 0 for count in counts):
                found[layer, quantity] = power_law(counts, value)
        if times := [time for time in measured.times if time.layer == layer]:
            found[layer, "time"] = power_law(times, lambda time: statistics.median(time.seconds))
    return found


# Laws of growth


class Growth(NamedTuple):
    """How steps or paths grow: the law with the smallest residuals among those tried, with its factor."""

    law: str  # "1", "log" or "n"; with windows w: "1", "log_w(n)" or "n/w"
    factor: float  # value = constant + factor x law
    explained: float  # share of the variance; 1 where nothing varies


def growth(lines: Sequence[Any], value: Callable[[Any], int]) -> Growth:
    """Whether the value is constant, grows with log n (to the base of the window), or with n (n / window).

    Without a window the logarithm is natural. Raises ValueError for fewer than three lengths.
    """
    import numpy as np

    values = np.array([float(value(line)) for line in lines])
    if len(set(values)) == 1:
        return Growth("1", float(values[0]), 1.0)
    if (n := len({(line.n, line.window) for line in lines})) < 3:  # two points fit either law exactly
        raise ValueError(f"expected at least 3 sizes to tell n from its logarithm, got {n}. Measure more.")
    laws: dict[str, list[float]] = {
        "log": [math.log(line.n) / math.log(line.window or math.e) for line in lines],
        "n": [line.n / (line.window or 1) for line in lines],
    }
    tried = []
    for law, x in laws.items():
        slope, start = np.polyfit(x, values, 1)
        left = float(((values - start - slope * np.array(x)) ** 2).sum())
        tried.append(Growth(law, float(slope), 1 - left / float(((values - values.mean()) ** 2).sum())))
    return max(tried, key=lambda found: found.explained)


def order(law: str, window: str | None) -> str:
    """The order of growth as the paper writes it: O(1), O(n), O(log_k(n)), O(n/r)."""
    written = {"1": "1", "log": f"log_{window}(n)" if window else "log(n)", "n": f"n/{window}" if window else "n"}
    return f"O({written[law]})"


def steps_of(measured: Measured, layer: str) -> Growth:
    """How the number of sequential products grows with n."""
    # a window is part of the layer, not a length: if steps grew with it, no law of n would explain them
    lines = [Steps(line.layer, line.n, None, line.steps) for line in measured.steps if line.layer == layer]
    return growth(lines, lambda line: line.steps)


def longest_path(measured: Measured, layer: str) -> Growth:
    """How the longest path grows with n and the window."""
    lines = [line for line in measured.paths if line.layer == layer]
    return growth(lines, lambda line: line.path)


# Comparing two times


def median_interval(values: Sequence[float], error: float = 1 - CONFIDENCE) -> tuple[float, float] | None:
    """An interval between two of the values that misses the median with at most this `error`, for any distribution.

    None where there are too few values, at 5 % fewer than six.
    """
    n, ordered = len(values), sorted(values)
    cut, beyond = -1, 0.0  # values cut off at either end, and the chance that the median lies beyond them
    while (beyond := beyond + math.comb(n, cut + 1) / 2**n) <= error / 2:
        cut += 1
    return (ordered[cut], ordered[-1 - cut]) if cut >= 0 else None


def compare(slower: Sequence[float], faster: Sequence[float], *, sizes: int = 1) -> int:
    """1 if the first takes longer in the median of the rounds, -1 if the second does, 0 if it is undecided.

    To hold at every one of the `sizes`, a statement is tested at 5 % at each. To fail at one of them, it is tested at
    5 % over all together; otherwise, with many sizes, one would fail by chance.
    """
    ratios = [a / b for a, b in zip(slower, faster, strict=True)]
    one, all_together = median_interval(ratios), median_interval(ratios, (1 - CONFIDENCE) / sizes)
    if one is not None and one[0] > 1:
        return 1
    return -1 if all_together is not None and all_together[1] < 1 else 0


def judged_growth(outcomes: Iterable[int]) -> Outcome:
    """The verdict on "takes longer, at every size"."""
    found = set(outcomes)
    return OF_HOUSE.no if -1 in found else OF_HOUSE.yes if found == {1} else OF_HOUSE.neither
