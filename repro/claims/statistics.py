"""Verdicts of known error rate: what rows that were trained with several seeds may be said to show.

Numbers in, verdicts out; nothing here knows a table or a file. A question about rows becomes a weighted sum of
their means with a standard error (`Contrast`), and each kind of claim is a class with a rule:

    runs -> pool the spread of all rows -> contrast -> p-values -> levels by Holm -> verdict

A sum is always turned so that a positive one is what the paper says. The rules in words: docs/claims.md.
"""

import functools
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

Outcome = Literal["reproduced", "contradicted", "inconclusive", "unstable", "not judged"]
Rows = Mapping[str, Sequence[float]]  # name -> one number a run

ALPHA = 0.05  # chance of a wrong verdict in a family of claims
CONFIDENCE = 0.95  # of the intervals of magnitudes and point values, which belong to no family
MIN_RUNS = 3  # of each row, below which nothing is judged
MAX_DIVERGED = 1  # of each row, above which it is unstable
RATIO = 4.0  # times the others' variance: a row above it is tested by itself, if chance does not explain it
DETECTED = 0.80  # a difference is "detectable" if it is found this often
TELESCOPE = 0.33  # a design that finds a difference less often than this says nothing about it


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came out, why, and what could have come out."""

    outcome: Outcome
    reason: str
    detectable: float | None = None  # found with a chance of 80 %; of intervals: their half-width
    power: float | None = None  # the chance of "reproduced", were the truth what the paper prints


# Runs


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The runs of one row on one endpoint: a number of each finished run, and how many diverged."""

    values: tuple[float, ...]
    diverged: tuple[int, ...] = ()  # their seeds


def sample(name: str, runs: Iterable[tuple[int, float | None]]) -> Sample:
    """Runs of one row as (seed, number), None for one that diverged. Raises ValueError for a seed that comes twice."""
    seeds: dict[int, float | None] = {}
    for seed, value in runs:
        if seed in seeds:
            raise ValueError(f"{name}: expected each seed once, got seed {seed} twice. Keep one of the runs.")
        seeds[seed] = value
    values = _finite(name, [value for _, value in sorted(seeds.items()) if value is not None])
    return Sample(values=values, diverged=tuple(sorted(seed for seed, value in seeds.items() if value is None)))


def unfit(samples: Mapping[str, Sample]) -> Verdict | None:
    """Why rows cannot be judged: more than one run diverged, or fewer than three finished; None if they can."""
    for name, runs in samples.items():
        if len(runs.diverged) > MAX_DIVERGED:
            n = len(runs.values) + len(runs.diverged)
            return Verdict(outcome="unstable", reason=f"{len(runs.diverged)} of {n} runs of {name} diverged")
    fewest = min(samples, key=lambda name: len(samples[name].values))
    if (n := len(samples[fewest].values)) < MIN_RUNS:
        return Verdict(outcome="not judged", reason=f"n = {n} ({fewest}), {MIN_RUNS} are needed")
    return None


def _finite(name: str, values: Sequence[float]) -> tuple[float, ...]:
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"{name}: expected finite numbers, got {list(values)}. Pass a diverged run as None.")
    return tuple(map(float, values))


# Their spread


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The variance between runs of one row, pooled over the rows that share it."""

    variance: float
    df: int  # degrees of freedom: runs less rows
    taken_out: tuple[str, ...] = ()  # rows of a larger variance, compared by Welch's test instead
    equal: float = 1.0  # p-value of the check that the rows pooled have one variance


def pool(rows: Rows) -> Noise:
    """Pool the variance within rows, without those that are found wider and are more than four times as variable.

    Found by a Brown-Forsythe test of all rows or, since that is nearly blind at three seeds, by an F-test of the
    widest row against the others. Three seeds, pooled over many rows, are as good as five by themselves.
    """
    kept = {name: values for name, values in rows.items() if len(_finite(name, values)) > 1}
    taken: list[str] = []
    while len(kept) > 1:
        widest = max(kept, key=lambda name: _variance(kept[name]))
        others = {name: values for name, values in kept.items() if name != widest}
        if not _is_wider(kept[widest], others):
            break
        taken.append(widest)
        kept = others
    variance, df = _within(kept)
    return Noise(variance=variance, df=df, taken_out=tuple(taken), equal=brown_forsythe(list(kept.values())))


def _is_wider(widest: Sequence[float], others: Rows) -> bool:
    """Whether a row is to be tested by itself."""
    own, (variance, df) = _variance(widest), _within(others)
    if own <= RATIO * variance:
        return False
    among_all = (len(others) + 1) * special.fdtrc(len(widest) - 1, df, own / variance) if variance else 1.0
    return bool(min(among_all, brown_forsythe([widest, *others.values()])) < ALPHA)


def brown_forsythe(rows: Sequence[Sequence[float]]) -> float:
    """p-value of the test for equal variances by distances from the medians; 1 where there is nothing to compare."""
    distances = [[abs(value - statistics.median(values)) for value in values] for values in rows]
    k, n = len(rows), sum(map(len, rows))
    if k < 2 or n <= k:
        return 1.0
    overall = sum(map(math.fsum, distances)) / n
    between = sum(len(z) * (statistics.fmean(z) - overall) ** 2 for z in distances) / (k - 1)
    within = sum((len(z) - 1) * _variance(z) for z in distances) / (n - k)
    if within == 0:
        return 1.0 if between == 0 else 0.0
    return float(special.fdtrc(k - 1, n - k, between / within))


def _within(rows: Rows) -> tuple[float, int]:
    """Mean of the rows' variances, weighted by their degrees of freedom, and the sum of these."""
    df = sum(len(values) - 1 for values in rows.values())
    return (sum((len(values) - 1) * _variance(values) for values in rows.values()) / df if df else 0.0), df


def _variance(values: Sequence[float]) -> float:
    """Unbiased; exactly zero for equal numbers, whose mean may be off by a rounding."""
    if min(values) == max(values):
        return 0.0
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


# Weighted sums of means


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A weighted sum of row means: its value, its standard error, and what single runs would give."""

    value: float
    se: float
    df: float
    single: float  # standard deviation of the same sum over one run a row, which is the paper's design

    def interval(self, alpha: float = 1 - CONFIDENCE) -> tuple[float, float]:
        """The two-sided t-interval that holds the true sum with a chance of 1 - alpha."""
        half = _t(alpha / 2, self.df) * self.se
        return self.value - half, self.value + half

    def prediction(self) -> float:
        """Half-width of the interval for the same sum in a repetition with one run a row."""
        return _t((1 - CONFIDENCE) / 2, self.df) * math.hypot(self.se, self.single)

    def p_above(self, bound: float) -> float:
        """p-value against "the true sum is at most `bound`"."""
        return special.stdtr(self.df, (bound - self.value) / self.se)  # type: ignore[return-value]

    def p_below(self, bound: float) -> float:
        """p-value against "the true sum is at least `bound`"."""
        return special.stdtr(self.df, (self.value - bound) / self.se)  # type: ignore[return-value]

    def detectable(self, alpha: float) -> float:
        """The true sum that is found to be positive with a chance of 80 %."""
        return self.se * float(special.nctdtrinc(self.df, 1 - DETECTED, _t(alpha, self.df)))

    def power(self, truth: float, alpha: float) -> float:
        """The chance to find a sum that is truly `truth` to be positive."""
        return float(1 - special.nctdtr(self.df, truth / self.se, _t(alpha, self.df)))


def contrast(rows: Rows, names: Sequence[str], weights: Sequence[float], noise: Noise) -> Contrast:
    """sum of weights x means. Where a row was taken out, each row's own variance: Welch's test for two rows."""
    squares = [weight**2 for weight in weights]
    counts = [len(rows[name]) for name in names]
    if set(names) & set(noise.taken_out):
        variances = [_variance(rows[name]) for name in names]
        parts = [square * variance / n for square, variance, n in zip(squares, variances, counts, strict=True)]
        df = sum(parts) ** 2 / sum(part**2 / (n - 1) for part, n in zip(parts, counts, strict=True))
    else:
        variances = [noise.variance] * len(names)
        df = noise.df
    if not any(variances):
        raise ValueError(f"{', '.join(names)}: expected numbers that differ between seeds, got one number for all.")
    terms = list(zip(squares, variances, counts, strict=True))
    return Contrast(
        value=sum(weight * statistics.fmean(rows[name]) for name, weight in zip(names, weights, strict=True)),
        se=math.sqrt(sum(square * variance / n for square, variance, n in terms)),
        df=df,
        single=math.sqrt(sum(square * variance for square, variance, _ in terms)),
    )


def difference(rows: Rows, first: str, second: str, noise: Noise) -> Contrast:
    """mean of `first` - mean of `second`."""
    return contrast(rows, (first, second), (1.0, -1.0), noise)


def slope_weights(sizes: Sequence[float]) -> list[float]:
    """Weights that make of row means their slope per doubling of size, by least squares in log2(size)."""
    if len({*sizes}) < 2 or min(sizes) <= 0:
        raise ValueError(f"sizes: expected positive numbers, at least two different ones, got {list(sizes)}.")
    logs = np.log2(np.asarray(sizes, dtype=float))
    logs -= logs.mean()
    return [float(weight) for weight in logs / (logs**2).sum()]


def _t(alpha: float, df: float) -> float:
    """What a t-value exceeds with a chance of `alpha`."""
    return float(special.stdtrit(df, 1 - alpha))


# Claims with a p-value, which share the error rate of a family


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """The level each of a family is tested at, so that any error among them has a chance of at most alpha.

    Step-down: the smallest p-value of m at alpha / m, the next at alpha / (m - 1), and so on; from the first
    that fails, all others at the level where it failed.
    """
    m, levels = len(p_values), [0.0] * len(p_values)
    rank = 0
    for place, i in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        if place == rank and p_values[i] <= alpha / (m - place):
            rank += 1
            levels[i] = alpha / (m - place)
        else:
            levels[i] = alpha / (m - rank)
    return levels


@dataclass(frozen=True, kw_only=True)
class Direction:
    """ "B is worse than A." Reproduced: A - B is above zero. Contradicted: too small for the paper to have seen it.

    The bound for that is the difference which one run a side finds a third of the time ("small telescopes"),
    and never more than the paper reports. A sum significantly below zero lies under it in any case.
    """

    contrast: Contrast
    reported: float  # by the paper, above zero
    sized: bool = True  # whether the paper's size means anything at this scale

    def __post_init__(self) -> None:
        if not self.reported > 0:
            raise ValueError(f"reported: expected a difference above zero, got {self.reported}. Turn the rows round.")

    @property
    def unseen(self) -> float:
        """The largest difference at which the paper's own design would have been blind."""
        df = self.contrast.df
        seen = self.contrast.single * special.nctdtrinc(df, 1 - TELESCOPE, _t(ALPHA, df))
        return np.minimum(seen, self.reported)

    @property
    def p_reproduced(self) -> float:
        """Against "no better"."""
        return self.contrast.p_above(0.0)

    @property
    def p_contradicted(self) -> float:
        """Against "large enough to be seen"."""
        return self.contrast.p_below(self.unseen)

    def verdict(self, alpha: float) -> Verdict:
        """At the level that Holm's procedure gave."""
        low, high = self.contrast.interval(2 * alpha)
        return Verdict(
            outcome=_outcome(self.p_reproduced, self.p_contradicted, alpha),
            reason=self._reason(low, high, alpha),
            detectable=self.contrast.detectable(alpha),
            power=self.contrast.power(self.reported, alpha),
        )

    def _reason(self, low: float, high: float, alpha: float) -> str:
        if self.p_reproduced <= alpha:
            smaller = self.sized and high < self.reported / 2
            return f"reproduced, smaller than reported: below {high:.3g}" if smaller else f"above {low:.3g}"
        if self.contrast.p_below(0.0) <= alpha:
            return f"the other way round: below {high:.3g}"
        if self.p_contradicted <= alpha:
            return f"below {high:.3g}; the paper's single runs could not have seen less than {self.unseen:.3g}"
        return f"between {low:.3g} and {high:.3g}"


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """ "A and B are nearly the same." Reproduced: the difference lies inside the margin; contradicted: outside it."""

    contrast: Contrast
    margin: float
    reported: float = 0.0  # by the paper

    @property
    def p_reproduced(self) -> float:
        """Two one-sided tests: the larger p-value of the two."""
        return np.maximum(self.contrast.p_above(-self.margin), self.contrast.p_below(self.margin))

    @property
    def p_contradicted(self) -> float:
        """Against "inside", on the side where the difference is."""
        return np.minimum(self.contrast.p_above(self.margin), self.contrast.p_below(-self.margin))

    def verdict(self, alpha: float) -> Verdict:
        """At the level that Holm's procedure gave."""
        low, high = self.contrast.interval(2 * alpha)
        outcome = _outcome(self.p_reproduced, self.p_contradicted, alpha)
        where = f"between {low:.3g} and {high:.3g}, margin {self.margin:.3g}"
        differs = outcome == "reproduced" and not low <= 0 <= high
        return Verdict(
            outcome=outcome,
            reason=f"different but negligible: {where}" if differs else where,
            power=self.power(alpha),
        )

    def power(self, alpha: float) -> float:
        """The chance of "reproduced" were the true difference the paper's, over the chances of the spread found."""
        c = self.contrast
        ratio = np.sqrt(special.chdtri(c.df, (np.arange(500) + 0.5) / 500) / c.df)  # of spread found to true spread
        room = self.margin - _t(alpha, c.df) * c.se * ratio
        inside = special.ndtr((room - self.reported) / c.se) - special.ndtr((-room - self.reported) / c.se)
        return float(np.maximum(inside, 0).mean())


@dataclass(frozen=True, kw_only=True)
class Trend:
    """ "More is better." Reproduced: the slope per doubling is above zero; contradicted: below."""

    contrast: Contrast  # with the weights of `slope_weights`
    reported: float  # the paper's slope

    @property
    def p_reproduced(self) -> float:
        """Against "no rise"."""
        return self.contrast.p_above(0.0)

    @property
    def p_contradicted(self) -> float:
        """Against "no fall"."""
        return self.contrast.p_below(0.0)

    def verdict(self, alpha: float) -> Verdict:
        """At the level that Holm's procedure gave."""
        low, high = self.contrast.interval(2 * alpha)
        return Verdict(
            outcome=_outcome(self.p_reproduced, self.p_contradicted, alpha),
            reason=f"slope per doubling between {low:.3g} and {high:.3g}",
            detectable=self.contrast.detectable(alpha),
            power=self.contrast.power(self.reported, alpha),
        )


Tested = Direction | Equivalence | Trend


def _outcome(p_reproduced: float, p_contradicted: float, alpha: float) -> Outcome:
    if p_reproduced <= alpha:
        return "reproduced"
    return "contradicted" if p_contradicted <= alpha else "inconclusive"


def judged(tests: Sequence[Tested | None], alpha: float = ALPHA) -> list[tuple[Verdict, float] | None]:
    """A family of claims, each with its verdict and the level it was tested at.

    Only what is reproduced steps down. Were a contradiction to give its place up as well, claims that are false
    would leave the family although they can still be judged wrongly. None is a claim that cannot be tested yet: it
    keeps its place, so that the levels of the others do not depend on what has been run.
    """
    levels = holm([1.0 if test is None else test.p_reproduced for test in tests], alpha)
    return [None if test is None else (test.verdict(level), level) for test, level in zip(tests, levels, strict=True)]


# Claims with an interval


@dataclass(frozen=True, kw_only=True)
class Magnitude:
    """ "0.9 worse." Reproduced: one more such pair of single runs could well give the paper's value.

    An interval wider to each side than the value itself holds zero as well, and says nothing.
    """

    contrast: Contrast
    reported: float

    def verdict(self) -> Verdict:
        """By the 95 % prediction interval."""
        half = self.contrast.prediction()
        return _predicted(self.contrast.value, half, self.reported, informative=half <= abs(self.reported))


@dataclass(frozen=True, kw_only=True)
class PointValue:
    """ "25.8." Reproduced: one more run could well give it. An interval wider than `widest` says nothing."""

    contrast: Contrast  # the mean of one row
    reported: float
    widest: float

    def verdict(self) -> Verdict:
        """By the 95 % prediction interval."""
        half = self.contrast.prediction()
        return _predicted(self.contrast.value, half, self.reported, informative=2 * half <= self.widest)


def _predicted(value: float, half: float, reported: float, *, informative: bool) -> Verdict:
    is_inside = abs(reported - value) <= half
    where = f"a repetition gives {value - half:.4g} to {value + half:.4g}, the paper {reported:.4g}"
    if not is_inside:
        return Verdict(outcome="contradicted", reason=where, detectable=half)
    if not informative:
        return Verdict(outcome="inconclusive", reason=f"uninformative: {where}", detectable=half)
    return Verdict(outcome="reproduced", reason=f"consistent: {where}", detectable=half)


@dataclass(frozen=True, kw_only=True)
class Best:
    """ "8 heads are best." By Hsu's comparison with the best: each row against the best of the others.

    Reproduced: no other row than those named can be the best; contradicted: none of those named can.
    """

    rows: Rows  # of the family; more is better
    named: Collection[str]
    noise: Noise

    def possible(self, alpha: float = ALPHA) -> list[str]:
        """The rows that may be best: the true best is among them with a chance of 1 - alpha."""
        return [row for row in self.rows if not any(self._beats(other, row, alpha) for other in self.rows)]

    def verdict(self, alpha: float = ALPHA) -> Verdict:
        """By the set of rows that cannot be excluded as the best."""
        possible = self.possible(alpha)
        outcome: Outcome = "inconclusive"
        if {*possible} <= {*self.named}:
            outcome = "reproduced"
        elif not {*possible} & {*self.named}:
            outcome = "contradicted"
        return Verdict(outcome=outcome, reason=f"may be best: {', '.join(possible)}", detectable=self._lead(alpha))

    def _beats(self, other: str, row: str, alpha: float) -> bool:
        if other == row:
            return False
        ahead = difference(self.rows, other, row, self.noise)
        return ahead.value > self._critical(row, other, ahead.df, alpha) * ahead.se

    def _critical(self, row: str, other: str, df: float, alpha: float) -> float:
        """Dunnett's value with `row` as the control; Bonferroni's, which is larger, where a variance is not shared."""
        others = [name for name in self.rows if name != row]
        if {row, other} & {*self.noise.taken_out}:
            return _t(alpha / len(others), df)
        ratios = Counter(len(self.rows[row]) / len(self.rows[name]) for name in others)
        return dunnett(tuple(sorted(ratios.items())), self.noise.df, alpha)

    def _lead(self, alpha: float) -> float:
        """The lead over every other row that excludes one of them with a chance of 80 %."""
        first, *_, last = self.rows
        apart = difference(self.rows, first, last, self.noise)
        critical = self._critical(first, last, apart.df, alpha)
        return apart.se * float(special.nctdtrinc(apart.df, 1 - DETECTED, critical))


@functools.cache
def dunnett(ratios: tuple[tuple[float, int], ...], df: int, alpha: float) -> float:
    """One-sided critical value for the largest of several differences to one control, all with a pooled variance.

    `ratios`: (runs of the control / runs of a row, number of such rows). The differences share the control's
    error, so given that and the spread they are independent: two integrals, done by quadrature.
    """
    z, z_weight = np.polynomial.hermite_e.hermegauss(48)
    u = np.sqrt(special.chdtri(df, (np.arange(400) + 0.5) / 400) / df)[:, None]  # spread found / true spread

    def exceeded(critical: float) -> float:
        inside = np.ones((len(u), len(z)))
        for ratio, count in ratios:
            shared = math.sqrt(1 / (1 + ratio))  # correlation with the control's error
            inside *= special.ndtr((critical * u - shared * z) / math.sqrt(1 - shared**2)) ** count
        return 1 - float((inside @ z_weight).mean()) / math.sqrt(2 * math.pi)

    low, high = 0.0, 100.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeded(middle) > alpha else (low, middle)
    return high
