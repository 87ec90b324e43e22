"""Exponents, laws of growth and times from the measurements of layers, and the verdict on each claim about layers.

The paper prints orders of growth, so a law is fitted and its constant factor is shown beside it. Paper: sections 3.2.1
and 4, Table 1.
"""

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from repro.claims.blocks import CONFIDENCE
from repro.claims.decisions import OF_HOUSE, Outcome
from repro.results.measured import Measured

NEAR = 0.05  # an exponent or ratio this close to the printed one agrees with it: printed exponents are 1 apart
SAME_ORDER = 10.0  # costs whose ratio lies within this factor of 1 are of the same order
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

# Exponents of power laws


class Fit(NamedTuple):
    """A power law c n^a d^b w^c fitted to some points, by least squares of logarithms."""

    exponents: dict[str, float]
    half_widths: dict[str, float]  # of their 95 % t-intervals; NaN without degrees of freedom
    points: int


def power_law(lines: Sequence[Any], values: Iterable[float]) -> Fit:
    """The exponents of these positive values in those of n, d and window that vary between the lines."""
    import numpy as np
    from scipy.special import stdtrit

    sizes = [name for name in ("n", "d", "window") if len({getattr(line, name) for line in lines} - {None}) > 1]
    x = np.array([[1.0, *(math.log(getattr(line, name)) for name in sizes)] for line in lines])
    y = np.log([*values])
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


QUANTITIES = {"operations of the mixing": "mixing_flops", "operations of the layer": "flops", "memory": "saved_bytes"}


def fits(measured: Measured) -> dict[tuple[str, str], Fit]:
    """(layer, quantity) -> exponents over the whole grid, for everything counted and timed."""
    regular = set(measured.grid["n"])
    found = {}
    for layer in LABELS:
        counts = [count for count in measured.counts if count.layer == layer and count.n in regular]
        for quantity, name in QUANTITIES.items():
            values = [getattr(count, name) for count in counts]
            if values and min(values) > 0:
                found[layer, quantity] = power_law(counts, values)
        if times := [time for time in measured.times if time.layer == layer]:
            found[layer, "time"] = power_law(times, (statistics.median(time.seconds) for time in times))
    return found


# Laws of growth


class Growth(NamedTuple):
    """How steps or paths grow: the law with the smallest residuals among those tried, with its factor."""

    law: str  # "1", "log" or "n"; with windows w: "1", "log_w(n)" or "n/w"
    factor: float  # value = constant + factor x law
    explained: float  # share of the variance; 1 where nothing varies


def growth(points: Sequence[tuple[int, int | None, int]]) -> Growth:
    """Whether (n, window, value) is constant, grows with log n (to the base of the window), or with n (n / window).

    Without a window the logarithm is natural. Raises ValueError for fewer than three lengths.
    """
    import numpy as np

    values = [float(value) for _, _, value in points]
    if len(set(values)) == 1:
        return Growth("1", values[0], 1.0)
    if (n := len({(n, window) for n, window, _ in points})) < 3:  # two points fit either law exactly
        raise ValueError(f"expected at least 3 sizes to tell n from its logarithm, got {n}. Measure more.")
    laws = {
        "log": [math.log(n) / math.log(window or math.e) for n, window, _ in points],
        "n": [n / (window or 1) for n, window, _ in points],
    }
    tried = [
        Growth(law, float(np.polyfit(x, values, 1)[0]), float(np.corrcoef(x, values)[0, 1]) ** 2)
        for law, x in laws.items()
    ]
    return max(tried, key=lambda found: found.explained)


def order(law: str, window: str | None) -> str:
    """The order of growth as the paper writes it: O(1), O(n), O(log_k(n)), O(n/r)."""
    written = {"1": "1", "log": f"log_{window}(n)" if window else "log(n)", "n": f"n/{window}" if window else "n"}
    return f"O({written[law]})"


def steps_of(measured: Measured, layer: str) -> Growth:
    """How the number of sequential products grows with n."""
    # a window is part of the layer, not a length: if steps grew with it, no law of n would explain them
    return growth([(line.n, None, line.steps) for line in measured.steps if line.layer == layer])


def longest_path(measured: Measured, layer: str) -> Growth:
    """How the longest path grows with n and the window."""
    return growth([(line.n, line.window, line.path) for line in measured.paths if line.layer == layer])


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


# What the paper prints


class Printed(NamedTuple):
    """One line of the table: the printed orders, and where each is measured."""

    label: str
    layer: str  # of the counts and steps
    connects: str  # the layer whose paths are measured
    complexity: str
    steps: str
    path: str

    @property
    def exponents(self) -> dict[str, int]:
        """The printed exponents of the complexity, for the mixing: {"window": 1, "n": 1, "d": 2} for O(k n d^2)."""
        factors = re.findall(r"([nkrd])(?:\^(\d))?", self.complexity)
        return {"window" if size in "kr" else size: int(power or 1) for size, power in factors}


ROWS = (
    Printed("self-attention", "self_attention", "self_attention", "O(n^2 d)", "O(1)", "O(1)"),
    Printed("recurrent", "recurrent", "recurrent", "O(n d^2)", "O(n)", "O(n)"),
    Printed("convolutional (dilated)", "convolution", "dilated", "O(k n d^2)", "O(1)", "O(log_k(n))"),
    # the text beside the table
    Printed("convolutional (contiguous)", "convolution", "convolution", "O(k n d^2)", "O(1)", "O(n/k)"),
    Printed("self-attention (restricted)", "restricted", "restricted", "O(r n d)", "O(1)", "O(n/r)"),
)
WINDOWS = {"convolution": "k", "dilated": "k", "separable": "k", "restricted": "r"}


# Verdicts

LayerVerdict = tuple[Outcome, str]  # and the evidence in a line


def verdicts(measured: Measured) -> dict[str, LayerVerdict]:
    """The claims that Table 1, section 4 and section 3.2.1 make about layers."""
    judges = {"C05": _c05, "C06": _c06, "C11": _c11, "C21": _c21, "C22": _c22, "C23": _c23, "C24": _c24}
    return {claim: judge(measured) for claim, judge in judges.items()}


def _holds(statement: bool) -> Outcome:
    return OF_HOUSE.yes if statement else OF_HOUSE.no


def _c05(measured: Measured) -> LayerVerdict:
    one, other = steps_of(measured, "recurrent"), steps_of(measured, "self_attention")
    longest = max(line.n for line in measured.steps)
    return _holds((one.law, other.law) == ("n", "1")), (
        f"products that wait for one another, up to n = {longest}: recurrent {in_words(one, None)}, "
        f"self-attention {in_words(other, None)}"
    )


def _c06(measured: Measured) -> LayerVerdict:
    contiguous, dilated, attention = (
        longest_path(measured, layer) for layer in ("convolution", "dilated", "self_attention")
    )
    return _holds((contiguous.law, dilated.law, attention.law) == ("n", "log", "1")), (
        f"layers until all pairs connect: contiguous {in_words(contiguous, 'k')}, dilated {in_words(dilated, 'k')}, "
        f"self-attention {in_words(attention, None)}"
    )


def _c11(measured: Measured) -> LayerVerdict:
    def by_scoring(lines: Sequence[Any]) -> list[tuple[Any, Any]]:
        """(additive, dot-product) at each size."""
        dot = {(line.n, line.d_k): line for line in lines if line.scoring == "dot_product"}
        return [(line, dot[line.n, line.d_k]) for line in lines if line.scoring == "additive"]

    timed, counted = by_scoring(measured.scoring_times), by_scoring(measured.scoring_counts)
    alike = all(additive.flops == dot.flops for additive, dot in counted)
    memory = [additive.saved_bytes / dot.saved_bytes for additive, dot in counted]
    ratios = [statistics.median(additive.seconds) / statistics.median(dot.seconds) for additive, dot in timed]
    outcome = judged_growth(compare(additive.seconds, dot.seconds, sizes=len(timed)) for additive, dot in timed)
    return outcome if alike and min(memory) > 1 else OF_HOUSE.no, (
        f"products: {'equally many' if alike else 'not equally many'}; additive takes {extent(ratios)} times the time "
        f"and {extent(memory)} times the memory at {len(timed)} sizes"
    )


def _c21(measured: Measured) -> LayerVerdict:
    found = fits(measured)
    wrong = []
    for row in ROWS:
        exponents = found[row.layer, "operations of the mixing"].exponents
        far = any(abs(exponents.get(size, 0.0) - power) > NEAR for size, power in row.exponents.items())
        steps = order(steps_of(measured, row.layer).law, None)
        path = order(longest_path(measured, row.connects).law, WINDOWS.get(row.layer))
        other = {"complexity": far, "sequential operations": steps != row.steps, "path": path != row.path}
        wrong += [f"{row.label}: {cell}" for cell, is_other in other.items() if is_other]
    cells = 3 * len(ROWS)
    not_so = f"; not {', '.join(wrong)}" if wrong else ""
    return _holds(not wrong), f"{cells - len(wrong)} of {cells} cells as printed{not_so}"


def _c22(measured: Measured) -> LayerVerdict:
    """Times are compared at every n < d of the grid, which must go beyond d / 2; counts by the n at which they meet.

    By count, self-attention reaches the operations of the plain recurrent step already at n = d / 2. So the claim must
    be tested beyond that, also for the recurrence that is compiled as a whole.
    """
    times = {(time.layer, time.n, time.d): time.seconds for time in measured.times}
    reach = {d: max((n / d for _, n, of in times if of == d and n < d), default=0.0) for _, _, d in times}
    if not {*RECURRENCES} <= {layer for layer, _, _ in times} or min(reach.values()) <= 1 / 2:
        return "not judged", "needs all recurrences and n beyond d / 2: python experiments/table1.py measures again"
    counted = {
        "plain step": _crossovers(measured, "recurrent", "mixing_flops"),
        "gated step": _crossovers(measured, "gated", "mixing_flops"),
        "whole gated layer": _crossovers(measured, "gated", "flops"),
    }
    proportional = all(max(points) - min(points) <= NEAR * max(points) for points in counted.values())
    points = ", ".join(f"{statistics.fmean(of):.2f} d ({label})" for label, of in counted.items())
    below = [key for key in times if key[0] in RECURRENCES and key[1] < key[2]]
    outcomes = {key: compare(times[key], times["self_attention", *key[1:]], sizes=len(below)) for key in below}
    told = "; ".join(_told(times, outcomes, layer) for layer in RECURRENCES)
    return judged_growth(outcomes.values()) if proportional else OF_HOUSE.no, (
        f"timed at {len({key[1:] for key in below})} sizes with n < d, n up to {min(reach.values()):.2f} d, over the "
        f"time of self-attention: {told}; counted operations are equal at n = {points}"
    )


RECURRENCES = ("recurrent", "library_recurrent", "gated", "library_gated")
Size = tuple[str, int, int]  # layer, n, d
Times = Mapping[Size, Sequence[float]]


def _told(times: Times, outcomes: Mapping[Size, int], layer: str) -> str:
    """The ratios in words: recurrent 1.28 to 3.2 (12 decided for self-attention, 0 against, 1 open)."""
    keys = [key for key in outcomes if key[0] == layer]
    ratios = [statistics.median(times[key]) / statistics.median(times["self_attention", *key[1:]]) for key in keys]
    found = [outcomes[key] for key in keys]
    return (
        f"{LABELS[layer]} {extent(ratios)} ({found.count(1)} decided for self-attention, {found.count(-1)} against, "
        f"{found.count(0)} open)"
    )


def _crossovers(measured: Measured, layer: str, quantity: str) -> list[float]:
    """For each d the n / d at which self-attention costs as much as the recurrence, also outside the measured sizes.

    Both costs are polynomials in n without a constant, a n^2 + b n and c n, so two counts of the first and one of the
    second give the n at which they meet.
    """
    layers = (layer, "self_attention")
    cost = {(of.layer, of.n, of.d): getattr(of, quantity) for of in measured.counts if of.layer in layers}
    n, m = min(measured.grid["n"]), max(measured.grid["n"])
    points = []
    for d in measured.grid["d"]:
        per_n, per_m = cost["self_attention", n, d] / n, cost["self_attention", m, d] / m
        a = (per_m - per_n) / (m - n)
        points.append((cost[layer, n, d] / n - (per_n - a * n)) / a / d)
    return points


def _c23(measured: Measured) -> LayerVerdict:
    steps = {(count.n, count.d): count.mixing_flops for count in measured.counts if count.layer == "recurrent"}
    ratios = [
        count.mixing_flops / steps[count.n, count.d] / (count.window or math.nan)
        for count in measured.counts
        if count.layer == "convolution"
    ]
    contiguous, dilated = longest_path(measured, "convolution"), longest_path(measured, "dilated")
    far = max(abs(ratio - 1) for ratio in ratios)
    return _holds((contiguous.law, dilated.law) == ("n", "log") and far < NEAR), (
        f"contiguous {in_words(contiguous, 'k')}, dilated {in_words(dilated, 'k')}; operations of a convolution over "
        f"those of the plain step: {extent(ratios)} k"
    )


def _c24(measured: Measured) -> LayerVerdict:
    """Of the same order: the ratio of both costs lies within `SAME_ORDER` of 1 at all n and d.

    The costs are in Table 1's terms: the work of self-attention that combines positions, and beside it the feed-forward
    network. They are also compared with the projections included, which the paper's formula leaves out.
    """
    cost = {(of.layer, of.n, of.d): of for of in measured.counts if of.layer != "separable"}
    n, ratios, projected = min(measured.grid["n"]), [], []
    for whole in (of for of in measured.counts if (of.layer, of.window) == ("separable", of.n)):
        # the feed-forward network is linear in n, so its cost at one length gives its cost at any other
        feed_forward = cost["feed_forward", n, whole.d].flops * whole.n / n
        attention = cost["self_attention", whole.n, whole.d]
        ratios.append((attention.mixing_flops + feed_forward) / whole.flops)
        projected.append((attention.flops + feed_forward) / whole.flops)
    return _holds(min(ratios) >= 1 / SAME_ORDER and max(ratios) <= SAME_ORDER), (
        f"with k = n self-attention and the feed-forward network take {extent(ratios)} times the operations of the "
        f"separable convolution, {extent(projected)} times with attention's projections; “of the same order” is "
        f"within a factor of {SAME_ORDER:g}"
    )


# Words for numbers


def extent(values: Iterable[float]) -> str:
    """The range of values in words: 2.0 to 5.1, or only 2.0 if both ends are the same."""
    ordered = sorted(values)
    low, high = f"{ordered[0]:.3g}", f"{ordered[-1]:.3g}"
    return low if low == high else f"{low} to {high}"


def in_words(found: Growth, window: str | None) -> str:
    """A law of growth in words: 2.1 n/k (99.8 % of the variance)."""
    if found.law == "1":
        return f"always {found.factor:.0f}"
    share = "" if found.explained > 0.99995 else f" ({100 * found.explained:.1f} % of the variance)"
    return f"{found.factor:.2f} {order(found.law, window)[2:-1]}{share}"
