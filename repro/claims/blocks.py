"""Rows and seeds: how far rows are from each other within the seeds that they share, and how sure that is.

The order of the data, dropout and the first weights are functions of the seed, the same for all rows: a seed that is
bad for one row is bad for most. So a seed is a block, and score = row + seed + residual, by least squares. A question
about rows is a weighted sum of their effects (`Contrast`). Numbers in, numbers out; nothing here knows a claim, a table
or a file. The rules in words: docs/claims.md.
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
CONFIDENCE = 0.95  # of an interval that stands by itself
DETECTED = 0.80  # a difference is "detectable" if it is found this often
MEDIAN = 0.55  # degrees of freedom of the median of many variances over those of their mean
ROUNDS = 4  # of weights: the third changes hardly anything
ROUNDING = 1e-9  # what is smaller than this share of another number is none


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A weighted sum of row effects, its standard error and the degrees of freedom that this rests on."""

    value: float
    se: float
    df: float

    def p_above(self, bound: float) -> float:
        """One-sided, against "at most `bound`"."""
        return float(special.stdtr(self.df, (bound - self.value) / self.se))

    def p_below(self, bound: float) -> float:
        """One-sided, against "at least `bound`"."""
        return float(special.stdtr(self.df, (self.value - bound) / self.se))

    def interval(self, alpha: float = 1 - CONFIDENCE) -> tuple[float, float]:
        """Misses the truth with a chance of `alpha`, either way together."""
        half = t_value(alpha / 2, self.df) * self.se
        return self.value - half, self.value + half

    def detectable(self, alpha: float) -> float:
        """The size that is told from zero with a chance of 80 %, at a two-sided level of `alpha`."""
        return self.se * float(special.nctdtrinc(self.df, 1 - DETECTED, t_value(alpha / 2, self.df)))


class _Variance(NamedTuple):
    """Of residuals."""

    value: float
    df: float


class Blocks:
    """The rows of a page on one score, with the seeds as blocks. A row of fewer than two runs is left out.

    A row counts by its own residual variance where that is larger than the common one: judged by the others', a noisy
    row would look sure. So a row that is far noisier than the rest says little about the seeds, too.
    """

    def __init__(self, scores: Scores) -> None:
        self._rows = [row for row in sorted(scores) if len(scores[row]) > 1]
        seeds = sorted({seed for row in self._rows for seed in scores[row]})
        cells = [(row, seed) for row in self._rows for seed in sorted(scores[row])]
        self._of = np.array([self._rows.index(row) for row, _ in cells], dtype=int)  # the row of each number
        self._y = np.array([scores[row][seed] for row, seed in cells], dtype=float)
        if not np.isfinite(self._y).all():
            bad = sorted({row for (row, _), value in zip(cells, self._y, strict=True) if not math.isfinite(value)})
            raise ValueError(f"{', '.join(bad)}: expected finite numbers. Leave a diverged run out.")
        self._design = np.zeros((len(cells), len(self._rows) + len(seeds)))
        for i, (row, seed) in enumerate(cells):
            self._design[i, self._rows.index(row)] = self._design[i, len(self._rows) + seeds.index(seed)] = 1.0
        self._variances = [_Variance(1.0, 0.0)] * len(self._rows)
        for _ in range(ROUNDS if cells else 0):
            self._fit()

    def _fit(self) -> None:
        """Least squares with the variances found so far as weights, and the variances of what is left."""
        known = np.array([variance.value for variance in self._variances])
        if not known.any():
            return  # nothing varies
        root = 1 / np.sqrt(np.maximum(known / known.max(), ROUNDING)[self._of])
        self._solve = np.linalg.pinv(self._design * root[:, None]) * root  # makes effects of numbers
        left = np.eye(len(self._y)) - self._design @ self._solve  # makes residuals of numbers
        squares, free = (left @ self._y) ** 2, float(np.trace(left))
        own = []
        for i in range(len(self._rows)):
            here = np.flatnonzero(self._of == i)
            of_row = left[np.ix_(here, here)]
            if (trace := float(np.trace(of_row))) > ROUNDING:  # else all of its seeds are its alone
                own.append((i, _Variance(float(squares[here].sum()) / trace, trace**2 / float((of_row**2).sum()))))
        common = _common(float(squares.sum()), free, [variance for _, variance in own])
        self._variances = [common] * len(self._rows)
        for i, variance in own:
            if variance.value > (1 + ROUNDING) * common.value:
                self._variances[i] = variance

    def estimate(self, weights: Mapping[str, float]) -> Contrast | None:
        """The sum of row effects with these weights, which come to zero; degrees of freedom by Satterthwaite.

        None where a row is not there, rows have no seed in common, or nothing varies.
        """
        if not {*weights} <= {*self._rows} or not all(variance.df for variance in self._variances):
            return None
        wanted = np.zeros(self._design.shape[1])
        wanted[: len(self._rows)] = [weights.get(row, 0.0) for row in self._rows]
        of_numbers = wanted @ self._solve
        if not np.allclose(of_numbers @ self._design, wanted, atol=1e-8):
            return None
        parts: dict[_Variance, float] = {}  # of the squared error, by the variance that it rests on
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
        """The effect of `first` less that of `second`."""
        return self.estimate({first: 1.0, second: -1.0})


def _common(squares: float, free: float, own: Sequence[_Variance]) -> _Variance:
    """The mean of the rows' variances or, where that is less, their median: few rows may be far noisier than most.

    The median is that of normal noise turned into its variance, and known about half as well as the mean.
    """
    if free <= ROUNDING:
        return _Variance(0.0, 0.0)
    mean = squares / free
    median = statistics.median(one.value * one.df / float(special.chdtri(one.df, 0.5)) for one in own)
    return _Variance(mean, free) if mean <= median else _Variance(median, MEDIAN * free)


def slope_weights(sizes: Sequence[float]) -> list[float]:
    """Weights that make of row effects their slope per doubling of size, by least squares in log2(size)."""
    if len({*sizes}) < 2 or min(sizes) <= 0:
        raise ValueError(f"sizes: expected positive numbers, at least two different ones, got {list(sizes)}.")
    logs = np.log2(np.asarray(sizes, dtype=float))
    logs -= logs.mean()
    return [float(weight) for weight in logs / (logs**2).sum()]


def t_value(alpha: float, df: float) -> float:
    """What a t-value exceeds with a chance of `alpha`."""
    return float(special.stdtrit(df, 1 - alpha))


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
