"""The statistics of rows that were trained with several seeds: spread, weighted sums of means, critical values.

Numbers in, numbers out; nothing here knows a claim, a table or a file. A question about rows becomes a weighted sum of
their means with a standard error (`Contrast`):

    runs -> pool the spread of all rows -> contrast -> p-values -> levels by Holm

The rules in words: docs/claims.md.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

RunScores = Mapping[str, Sequence[float]]  # name -> one number a run

ALPHA = 0.05  # chance of any wrong verdict on a page
CONFIDENCE = 0.95  # of the intervals of magnitudes and point values, which belong to no family
RATIO = 4.0  # times the others' variance: a row above it is not pooled, if chance does not explain it
ROUNDING = 1e-9  # of a variance: two that differ by less are the same
DETECTED = 0.80  # a difference is "detectable" if it is found this often


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
    taken_out: tuple[str, ...] = ()  # rows that were found wider, which are not pooled and keep their own
    wide: tuple[str, ...] = ()  # rows that are pooled, and keep their own, which is the larger one
    reference: str = ""  # the row that most others are compared with, which keeps its own

    @property
    def by_itself(self) -> frozenset[str]:
        """The rows whose variance is their own."""
        return frozenset((*self.taken_out, *self.wide, self.reference))


def pool(rows: RunScores, reference: str = "") -> Noise:
    """Pool the variance within rows, without those that are found wider and are more than four times as variable.

    Found by a Brown-Forsythe test of all rows or, since that is nearly blind at three seeds, by an F-test of the
    widest row against the others. Three seeds, pooled over many rows, are as good as five by themselves.
    The `reference` is never pooled: were it noisier than the others and not found out, all comparisons with it would
    be wrong together. A row whose own variance is larger than the others' keeps it, found out or not: one that is three
    times as noisy as the rest, and judged by theirs, would make every fifth page wrong. All others have the pooled one.
    """
    several = {name: values for name, values in rows.items() if len(_finite(name, values)) > 1}
    kept = {name: values for name, values in several.items() if name != reference}
    taken: list[str] = []
    while len(kept) > 1:
        widest = max(kept, key=lambda name: _variance(kept[name]))
        others = {name: values for name, values in kept.items() if name != widest}
        if not _is_wider(kept[widest], others):
            break
        taken.append(widest)
        kept = others
    variance, df = _within(kept)
    wide = [name for name, values in kept.items() if _variance(values) > (1 + ROUNDING) * _others(kept, name)]
    return Noise(
        wide=tuple(wide),
        variance=variance,
        df=df,
        taken_out=tuple(taken),
        reference=reference if reference in several else "",
    )


def _others(rows: RunScores, name: str) -> float:
    """The variance within all rows but one; as if there were no bound where there is no other."""
    others = {other: values for other, values in rows.items() if other != name}
    return _within(others)[0] if others else math.inf


def _is_wider(widest: Sequence[float], others: RunScores) -> bool:
    """Whether a row is to be tested by itself."""
    own, (variance, df) = _variance(widest), _within(others)
    if own <= RATIO * variance:
        return False
    among_all = (len(others) + 1) * special.fdtrc(len(widest) - 1, df, own / variance) if variance else 1.0
    of_three = [values for values in (widest, *others.values()) if len(values) > 2]
    by_medians = brown_forsythe(of_three) if len(widest) > 2 else 1.0  # two are as far from their median as each other
    return bool(min(among_all, by_medians) < ALPHA)


def brown_forsythe(rows: Sequence[Sequence[float]]) -> float:
    """p-value of the test for equal variances by distances from the medians; 1 where there is nothing to compare.

    It is scipy's `levene(center="median")`, as a test says; to import `scipy.stats` takes longer than to make a table.
    """
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


def _within(rows: RunScores) -> tuple[float, int]:
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
        half = t_value(alpha / 2, self.df) * self.se
        return self.value - half, self.value + half

    def prediction(self, alpha: float = 1 - CONFIDENCE) -> float:
        """Half-width of the interval that holds the same sum of one more run a row with a chance of 1 - alpha."""
        return t_value(alpha / 2, self.df) * math.hypot(self.se, self.single)

    def p_above(self, bound: float) -> float:
        """p-value against "the true sum is at most `bound`"."""
        return special.stdtr(self.df, (bound - self.value) / self.se)  # type: ignore[return-value]

    def p_below(self, bound: float) -> float:
        """p-value against "the true sum is at least `bound`"."""
        return special.stdtr(self.df, (self.value - bound) / self.se)  # type: ignore[return-value]

    def detectable(self, alpha: float) -> float:
        """The true sum that is found to be positive with a chance of 80 %."""
        return self.se * float(special.nctdtrinc(self.df, 1 - DETECTED, t_value(alpha, self.df)))

    def power(self, truth: float, alpha: float) -> float:
        """The chance to find a sum that is truly `truth` to be positive."""
        return float(1 - special.nctdtr(self.df, truth / self.se, t_value(alpha, self.df)))


def contrast(rows: RunScores, names: Sequence[str], weights: Sequence[float], noise: Noise) -> Contrast:
    """sum of weights x means. Each row with the variance it shares, or its own; degrees of freedom by Satterthwaite.

    Where all rows share one variance that is the t-test with a pooled variance, where none does, Welch's.
    """
    spreads = {name: noise_of_row(rows[name], noise, name) for name in names}
    if not any(one.variance for one in spreads.values()):
        raise ValueError(f"{', '.join(names)}: expected numbers that differ between seeds, got one number for all.")
    terms = [(weight**2 * spreads[name].variance, len(rows[name])) for name, weight in zip(names, weights, strict=True)]
    parts: dict[str, float] = {}  # of the squared error, by the estimate of a variance that it rests on
    for name, (square, n) in zip(names, terms, strict=True):
        source = name if name in noise.by_itself else ""
        parts[source] = parts.get(source, 0.0) + square / n
    degrees = {source: spreads[source].df if source else noise.df for source in parts}
    squared = sum(parts.values())
    return Contrast(
        value=sum(weight * statistics.fmean(rows[name]) for name, weight in zip(names, weights, strict=True)),
        se=math.sqrt(squared),
        df=squared**2 / sum(part**2 / degrees[source] for source, part in parts.items() if part),
        single=math.sqrt(sum(square for square, _ in terms)),
    )


def noise_of_row(values: Sequence[float], noise: Noise, name: str) -> Noise:
    """Of one row: its own where it is not pooled."""
    if name not in noise.by_itself:
        return noise
    variance, df = _within({name: values})
    return Noise(variance=variance, df=df)


def difference(rows: RunScores, first: str, second: str, noise: Noise) -> Contrast:
    """mean of `first` - mean of `second`."""
    return contrast(rows, (first, second), (1.0, -1.0), noise)


def slope_weights(sizes: Sequence[float]) -> list[float]:
    """Weights that make of row means their slope per doubling of size, by least squares in log2(size)."""
    if len({*sizes}) < 2 or min(sizes) <= 0:
        raise ValueError(f"sizes: expected positive numbers, at least two different ones, got {list(sizes)}.")
    logs = np.log2(np.asarray(sizes, dtype=float))
    logs -= logs.mean()
    return [float(weight) for weight in logs / (logs**2).sum()]


def t_value(alpha: float, df: float) -> float:
    """What a t-value exceeds with a chance of `alpha`."""
    return float(special.stdtrit(df, 1 - alpha))


# Critical values


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
