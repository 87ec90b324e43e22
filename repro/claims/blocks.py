"""Rows and seeds: how much rows differ within the seeds that they share, and how certain that is.

A seed gives all rows the same data order, dropout and first weights, so a seed that is bad for one row is bad for most.
Each seed is therefore a block, and score = row + seed + residual is fitted by least squares. A question about rows is a
weighted sum of their effects (`Contrast`). Numbers in, numbers out; nothing here knows a claim, a table or a file. The
rules in words: docs/claims.md.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

Scores = Mapping[str, Mapping[int, float]]  # row -> seed -> a number

ALPHA = 0.05  # chance of any wrong verdict on a page
CONFIDENCE = 0.95  # of a single interval
DETECTED = 0.80  # a difference is "detectable" if it is found with this probability
MEDIAN = 0.55  # degrees of freedom of the median of many variances, divided by those of their mean
ROUNDS = 4  # of reweighting; already the third changes hardly anything
ROUNDING = 1e-9  # a number counts as zero below this share of the number that it is compared with


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A weighted sum of row effects, with its standard error and the degrees of freedom of that error."""

    value: float
    se: float
    df: float

    def p_above(self, bound: float) -> float:
        """One-sided p-value against "at most `bound`"."""
        return float(special.stdtr(self.df, (bound - self.value) / self.se))

    def p_below(self, bound: float) -> float:
        """One-sided p-value against "at least `bound`"."""
        return float(special.stdtr(self.df, (self.value - bound) / self.se))

    def interval(self, alpha: float = 1 - CONFIDENCE) -> tuple[float, float]:
        """The interval that misses the true value with a chance of `alpha`, both sides together."""
        half = float(special.stdtrit(self.df, 1 - alpha / 2)) * self.se
        return self.value - half, self.value + half

    def detectable(self, alpha: float) -> float:
        """The size that is distinguished from zero with a chance of 80 %, at a two-sided level of `alpha`."""
        return self.se * float(special.nctdtrinc(self.df, 1 - DETECTED, special.stdtrit(self.df, 1 - alpha / 2)))


class _Variance(NamedTuple):
    """A variance of residuals and its degrees of freedom."""

    value: float
    df: float


class Blocks:
    """The rows of a page on one score, with the seeds as blocks; rows of fewer than two runs are left out.

    A row gets its own residual variance where that is larger than the common one; with the common variance a noisy row
    would look too certain. So a row that is far noisier than the rest has little weight in the seed effects, too.
    """

    def __init__(self, scores: Scores) -> None:
        self._rows = [row for row in sorted(scores) if len(scores[row]) > 1]
        seeds = sorted({seed for row in self._rows for seed in scores[row]})
        cells = [(row, seed) for row in self._rows for seed in sorted(scores[row])]
        self._of = np.array([self._rows.index(row) for row, _ in cells], dtype=int)  # the row of each number
        self._y = np.array([scores[row][seed] for row, seed in cells], dtype=float)
        self._design = np.zeros((len(cells), len(self._rows) + len(seeds)))
        for i, (row, seed) in enumerate(cells):
            self._design[i, self._rows.index(row)] = self._design[i, len(self._rows) + seeds.index(seed)] = 1.0
        self._variances = [_Variance(1.0, 0.0)] * len(self._rows)
        for _ in range(ROUNDS if cells else 0):
            self._fit()

    def _fit(self) -> None:
        """Weighted least squares with the variances found so far; then new variances from the residuals."""
        known = np.array([variance.value for variance in self._variances])
        if not known.any():
            return  # nothing varies
        root = 1 / np.sqrt(np.maximum(known / known.max(), ROUNDING)[self._of])
        self._solve = np.linalg.pinv(self._design * root[:, None]) * root  # maps numbers to effects
        left = np.eye(len(self._y)) - self._design @ self._solve  # maps numbers to residuals
        squares, free = (left @ self._y) ** 2, float(np.trace(left))
        own = []
        for i in range(len(self._rows)):
            here = np.flatnonzero(self._of == i)
            of_row = left[np.ix_(here, here)]
            if (trace := float(np.trace(of_row))) > ROUNDING:  # else no other row has any of its seeds
                own.append((i, _Variance(float(squares[here].sum()) / trace, trace**2 / float((of_row**2).sum()))))
        common = _common(float(squares.sum()), free, [variance for _, variance in own])
        self._variances = [common] * len(self._rows)
        for i, variance in own:
            if variance.value > (1 + ROUNDING) * common.value:
                self._variances[i] = variance

    def estimate(self, weights: Mapping[str, float]) -> Contrast | None:
        """The sum of row effects with these weights, which add up to zero; degrees of freedom by Satterthwaite.

        None where a row is missing, no common seeds connect the rows, or nothing varies.
        """
        if not {*weights} <= {*self._rows} or not all(variance.df for variance in self._variances):
            return None
        wanted = np.zeros(self._design.shape[1])
        wanted[: len(self._rows)] = [weights.get(row, 0.0) for row in self._rows]
        of_numbers = wanted @ self._solve
        if not np.allclose(of_numbers @ self._design, wanted, atol=1e-8):
            return None
        parts: dict[_Variance, float] = {}  # contributions to the squared error, by the variance behind each
        for i, variance in enumerate(self._variances):
            part = float((of_numbers[self._of == i] ** 2).sum()) * variance.value
            parts[variance] = parts.get(variance, 0.0) + part
        squared = sum(parts.values())
        value = float(of_numbers @ self._y)
        if math.sqrt(squared) <= ROUNDING * float(np.abs(self._y).max()):
            return None
        df = squared**2 / sum(part**2 / variance.df for variance, part in parts.items() if part)
        return Contrast(value=value, se=math.sqrt(squared), df=df)

    def difference(self, first: str, second: str) -> Contrast | None:
        """The effect of `first` minus that of `second`."""
        return self.estimate({first: 1.0, second: -1.0})


def _common(squares: float, free: float, own: Sequence[_Variance]) -> _Variance:
    """The mean of the rows' variances, or their median if it is smaller, since a few rows may be far noisier than most.

    The median is converted to a variance as for normal noise; it has about half the degrees of freedom of the mean.
    """
    if free <= ROUNDING:
        return _Variance(0.0, 0.0)
    mean = squares / free
    median = statistics.median(one.value * one.df / float(special.chdtri(one.df, 0.5)) for one in own)
    return _Variance(mean, free) if mean <= median else _Variance(median, MEDIAN * free)


def slope_weights(sizes: Sequence[float]) -> list[float]:
    """Weights that turn row effects into a slope per doubling of size, by least squares in log2(size)."""
    logs = np.log2(np.asarray(sizes, dtype=float))
    logs -= logs.mean()
    return [float(weight) for weight in logs / (logs**2).sum()]


def holm(p_values: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """The level at which each test of a family is made, so that the chance of any error among them is at most alpha.

    Step-down: the smallest of m p-values is tested at alpha / m, the next at alpha / (m - 1), and so on. From the first
    that fails on, all others get the level at which it failed.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    steps = [alpha / left for left in range(len(order), 0, -1)]
    failed = next((place for place, i in enumerate(order) if p_values[i] > steps[place]), len(order))
    level = {i: steps[min(place, failed)] for place, i in enumerate(order)}
    return [level[i] for i in range(len(order))]
