"""Verdicts of known error rate: what rows that were trained with several seeds may be said to show.

Each kind of claim is a class with a rule that makes a verdict of a weighted sum of row means (`statistics.py`). A sum
is always turned so that a positive one is what the paper says. The rules in words: docs/claims.md.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from repro.claims.statistics import (
    ALPHA,
    DETECTED,
    Contrast,
    Noise,
    RunScores,
    Sample,
    difference,
    dunnett,
    holm,
    t_value,
)

Outcome = Literal["reproduced", "contradicted", "inconclusive", "unstable", "not judged"]

MIN_RUNS = 3  # of each row, below which nothing is judged
MAX_DIVERGED = 1  # of each row, above which it is unstable
TELESCOPE = 0.33  # a design that finds a difference less often than this says nothing about it


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What came out, why, and what could have come out."""

    outcome: Outcome
    reason: str
    detectable: float | None = None  # found with a chance of 80 %; of intervals: their half-width
    power: float | None = None  # the chance of "reproduced", were the truth what the paper prints


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


# Claims with a p-value, which share the error rate of a family


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
        seen = self.contrast.single * special.nctdtrinc(df, 1 - TELESCOPE, t_value(ALPHA, df))
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
        room = self.margin - t_value(alpha, c.df) * c.se * ratio
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

    rows: RunScores  # of the family; more is better
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
            return t_value(alpha / len(others), df)
        ratios = Counter(len(self.rows[row]) / len(self.rows[name]) for name in others)
        return dunnett(tuple(sorted(ratios.items())), self.noise.df, alpha)

    def _lead(self, alpha: float) -> float:
        """The lead over every other row that excludes one of them with a chance of 80 %."""
        first, *_, last = self.rows
        apart = difference(self.rows, first, last, self.noise)
        critical = self._critical(first, last, apart.df, alpha)
        return apart.se * float(special.nctdtrinc(apart.df, 1 - DETECTED, critical))
