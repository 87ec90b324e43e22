"""The verdict on each claim about layers, from the measurements. Paper: sections 3.2.1 and 4, Table 1."""

import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from repro.claims.decisions import OF_HOUSE, Outcome
from repro.claims.growth import LABELS, Growth, compare, fits, judged_growth, longest_path, order, steps_of
from repro.results.layer_costs import Count, Measured, ScoringCount, ScoringTime

NEAR = 0.05  # an exponent or ratio this close to the printed one agrees with it: printed exponents are 1 apart
SAME_ORDER = 10.0  # costs whose ratio lies within this factor of 1 are of the same order
Scored = TypeVar("Scored", ScoringCount, ScoringTime)

# What the paper prints


class Printed(NamedTuple):
    """One line of the table: the printed orders, and where each is measured."""

    label: str
    layer: str  # of the counts, steps and times
    complexity: str
    steps: str
    path: str
    dilated: bool = False  # a variant for which only paths are measured

    @property
    def connects(self) -> str:
        """The layer whose paths are measured."""
        return "dilated" if self.dilated else self.layer

    @property
    def exponents(self) -> dict[str, int]:
        """The printed exponents of the complexity, for the mixing: {"window": 1, "n": 1, "d": 2} for O(k n d^2)."""
        factors = re.findall(r"([nkrd])(?:\^(\d))?", self.complexity)
        return {"window" if size in "kr" else size: int(power or 1) for size, power in factors}


ROWS = (
    Printed("self-attention", "self_attention", "O(n^2 d)", "O(1)", "O(1)"),
    Printed("recurrent", "recurrent", "O(n d^2)", "O(n)", "O(n)"),
    Printed("convolutional (dilated)", "convolution", "O(k n d^2)", "O(1)", "O(log_k(n))", dilated=True),
    Printed("convolutional (contiguous)", "convolution", "O(k n d^2)", "O(1)", "O(n/k)"),  # the text beside the table
    Printed("self-attention (restricted)", "restricted", "O(r n d)", "O(1)", "O(n/r)"),
)
WINDOWS = {"convolution": "k", "dilated": "k", "separable": "k", "restricted": "r"}


# Verdicts

LayerVerdict = tuple[Outcome, str]  # the evidence in a line


def verdicts(measured: Measured) -> dict[str, LayerVerdict]:
    """The claims that Table 1, section 4 and section 3.2.1 make about layers."""
    judges = {"C05": _c05, "C06": _c06, "C11": _c11, "C21": _c21, "C22": _c22, "C23": _c23, "C24": _c24}
    return {claim: judge(measured) for claim, judge in judges.items()}


LAYER_CLAIMS = {
    "C05": "recurrence needs O(n) sequential operations, self-attention O(1)",
    "C06": "the path between two positions grows linearly for contiguous and logarithmically for dilated "
    "convolutions, and not at all for self-attention",
    "C11": "additive and dot-product attention cost alike in theory; dot-product attention is faster and takes less "
    "memory",
    "C21": "Table 1",
    "C22": "self-attention is cheaper than recurrence while n < d",
    "C23": "all pairs are connected by O(n/k) contiguous or O(log_k(n)) dilated convolutions; a convolution costs k "
    "times a recurrence",
    "C24": "a separable convolution costs O(k n d + n d^2): with k = n of the same order as self-attention and "
    "feed-forward",
}


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
    def by_scoring(lines: Sequence[Scored]) -> list[tuple[Scored, Scored]]:
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
    if unasked := _unasked(times.keys()):
        return "not judged", unasked
    counted = {
        label: _crossovers(measured, layer, value)
        for label, layer, value in (
            ("plain step", "recurrent", lambda count: count.mixing_flops),
            ("gated step", "gated", lambda count: count.mixing_flops),
            ("whole gated layer", "gated", lambda count: count.flops),
        )
    }
    proportional = all(max(points) - min(points) <= NEAR * max(points) for points in counted.values())
    points = ", ".join(f"{statistics.fmean(of):.2f} d ({label})" for label, of in counted.items())
    below = [key for key in times if key[0] in RECURRENCES and key[1] < key[2]]
    outcomes = {key: compare(times[key], times["self_attention", *key[1:]], sizes=len(below)) for key in below}
    told = "; ".join(_told(times, outcomes, layer) for layer in RECURRENCES)
    return judged_growth(outcomes.values()) if proportional else OF_HOUSE.no, (
        f"timed at {len({key[1:] for key in below})} sizes with n < d, n up to {_reach(below):.2f} d, over the time of "
        f"self-attention: {told}; counted operations are equal at n = {points}"
    )


RECURRENCES = ("recurrent", "library_recurrent", "gated", "library_gated")
Size = tuple[str, int, int]  # layer, n, d
Times = Mapping[Size, Sequence[float]]


def _unasked(sizes: Iterable[Size]) -> str:
    """Which part of the claim was not measured; empty where all was."""
    found = set(sizes)
    lacking = [LABELS[layer] for layer in RECURRENCES if layer not in {size[0] for size in found}]
    reach = _reach(found)
    if reach > 1 / 2 and not lacking:
        return ""
    without = f", without {' and '.join(lacking)}" if lacking else ""
    return f"measured only up to n = {reach:.2f} d{without}: python experiments/table1.py measures again"


def _reach(sizes: Iterable[Size]) -> float:
    """The largest n below d, in units of d, that was measured for every d."""
    below = [(n / d, d) for _, n, d in sizes if n < d]
    return min((max(share for share, of in below if of == d) for d in {d for _, d in below}), default=0.0)


def _told(times: Times, outcomes: Mapping[Size, int], layer: str) -> str:
    """The ratios in words: recurrent 1.28 to 3.2 (12 decided for self-attention, 0 against, 1 open)."""
    keys = [key for key in outcomes if key[0] == layer]
    ratios = [statistics.median(times[key]) / statistics.median(times["self_attention", *key[1:]]) for key in keys]
    found = [outcomes[key] for key in keys]
    return (
        f"{LABELS[layer]} {extent(ratios)} ({found.count(1)} decided for self-attention, {found.count(-1)} against, "
        f"{found.count(0)} open)"
    )


def _crossovers(measured: Measured, layer: str, value: Callable[[Count], float]) -> list[float]:
    """For each d the n / d at which self-attention costs as much as the recurrence, also outside the measured sizes.

    Both costs are polynomials in n without a constant, a n^2 + b n and c n, so two counts of the first and one of the
    second give the n at which they meet.
    """
    cost = {
        (count.layer, count.n, count.d): value(count)
        for count in measured.counts
        if count.layer in (layer, "self_attention")
    }
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
    as_printed = (contiguous.law, dilated.law) == ("n", "log") and max(abs(ratio - 1) for ratio in ratios) < NEAR
    return _holds(as_printed), (
        f"contiguous {in_words(contiguous, 'k')}, dilated {in_words(dilated, 'k')}; operations of a convolution over "
        f"those of the plain step: {extent(ratios)} k"
    )


def _c24(measured: Measured) -> LayerVerdict:
    """Of the same order: the ratio of both costs lies within `SAME_ORDER` of 1 at all n and d.

    The costs are in Table 1's terms: the work of self-attention that combines positions, and beside it the feed-forward
    network. They are also compared with the projections included, which the paper's formula leaves out.
    """
    cost = {
        (count.layer, count.n, count.d): count
        for count in measured.counts
        if count.layer != "separable" or count.window == count.n
    }
    whole = [count for key, count in cost.items() if key[0] == "separable"]
    # the feed-forward network is linear in n, so its cost at one length gives its cost at any other
    n = min(measured.grid["n"])
    feed_forward = [cost["feed_forward", n, c.d].flops * c.n / n for c in whole]
    attention = [cost["self_attention", c.n, c.d] for c in whole]
    both = list(zip(whole, attention, feed_forward, strict=True))
    ratios = [(one.mixing_flops + other) / c.flops for c, one, other in both]
    projected = [(one.flops + other) / c.flops for c, one, other in both]
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
