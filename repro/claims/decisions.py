"""Verdicts of known error rate: what rows that were trained with several seeds may be said to show.

Each kind of claim is a class with a rule that makes a verdict of a weighted sum of row means (`statistics.py`). A sum
is always turned so that a positive one is what the paper says. The rules in words: docs/claims.md.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

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
    holm,
    t_value,
)

Outcome = Literal[
    "reproduced",
    "contradicted",
    "inconclusive",
    "same sign",
    "opposite sign",
    "open",
    "consistent",
    "not consistent",
    "holds here",
    "does not hold here",
    "not testable here",
    "unstable",
    "not judged",
]


class Words(NamedTuple):
    """What a rule may say: the paper is right, it is not, or neither is shown."""

    yes: Outcome
    no: Outcome
    neither: Outcome


OF_SIZE = Words("reproduced", "contradicted", "inconclusive")  # where the paper's own model and text were used
OF_SIGN = Words("same sign", "opposite sign", "open")  # where they were not: nothing is said about sizes
OF_PRINT = Words("consistent", "not consistent", "inconclusive")  # of a number, ours or printed, beside a printed one
OF_HOUSE = Words("holds here", "does not hold here", "inconclusive")  # of our own code, or measured on our own layers

MIN_RUNS = 3  # finished ones of each row, below which nothing is judged
MAX_DIVERGED = 1  # of each row, above which it is unstable


class Look(NamedTuple):
    """A number of seeds at which the rows are judged, declared before the runs."""

    seeds: int  # of each row but the base
    alpha: float  # its part of the chance of a wrong verdict


# together less than ALPHA: a page keeps to that where one row is three times as noisy, too (benchmarks/verdicts.py)
LOOKS = (Look(seeds=3, alpha=0.01), Look(seeds=5, alpha=0.03))
FIRST_SEED = 4  # those before it have been looked at while scales and claims were made
BASE_SEEDS = 8  # of the base row, which stands in nearly all comparisons


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


# Claims with a p-value, which share the error rate of a page


@dataclass(frozen=True, kw_only=True)
class Sign:
    """ "B is worse than A", "more is better": a difference, or a slope, is above zero.

    Two-sided: either sign is found with the same certainty. Where the paper's sizes mean something (`sized`), one that
    is found and is less than half of what is printed is called smaller.
    """

    contrast: Contrast
    reported: float | None  # by the paper, above zero; None: it prints nothing
    sized: bool = True
    of: str = ""  # what the sum is, in words, where it is no difference

    def __post_init__(self) -> None:
        if self.reported is not None and not self.reported > 0:
            raise ValueError(f"reported: expected a number above zero, got {self.reported}. Turn the rows round.")

    @property
    def words(self) -> Words:
        """What it may say."""
        return OF_SIZE if self.sized else OF_SIGN

    @property
    def p(self) -> float:
        """Against "zero"."""
        return np.minimum(1.0, 2 * np.minimum(self.contrast.p_above(0.0), self.contrast.p_below(0.0)))

    def verdict(self, alpha: float) -> Verdict:
        """At the level that Holm's procedure gave."""
        low, high = self.contrast.interval(alpha)
        outcome, text = self.words.neither, f"between {low:.3g} and {high:.3g}"
        if low > 0:
            smaller = self.sized and self.reported is not None and high < self.reported / 2
            outcome, text = self.words.yes, f"smaller than printed, {text}" if smaller else f"above {low:.3g}"
        elif high < 0:
            outcome, text = self.words.no, f"the other way round: below {high:.3g}"
        return Verdict(
            outcome=outcome,
            reason=f"{self.of} {text}".strip(),
            detectable=self.contrast.detectable(alpha / 2),
            power=self.contrast.power(self.reported, alpha / 2) if self.sized and self.reported is not None else None,
        )


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """ "A and B are nearly the same." Reproduced: the difference lies inside the margin; contradicted: outside it."""

    contrast: Contrast
    margin: float
    reported: float = 0.0  # by the paper

    @property
    def p_inside(self) -> float:
        """Against "outside", by two one-sided tests: the larger p-value of the two."""
        return np.maximum(self.contrast.p_above(-self.margin), self.contrast.p_below(self.margin))

    @property
    def p_outside(self) -> float:
        """Against "inside", on the side where the difference is."""
        return np.minimum(self.contrast.p_above(self.margin), self.contrast.p_below(-self.margin))

    @property
    def p(self) -> float:
        """The smaller of both: only one can be wrong."""
        return np.minimum(self.p_inside, self.p_outside)

    def verdict(self, alpha: float) -> Verdict:
        """At the level that Holm's procedure gave."""
        low, high = self.contrast.interval(2 * alpha)
        outcome = OF_SIZE.neither
        if self.p_inside <= alpha:
            outcome = OF_SIZE.yes
        elif self.p_outside <= alpha:
            outcome = OF_SIZE.no
        where = f"between {low:.3g} and {high:.3g}, margin {self.margin:.3g}"
        least, most = self.contrast.interval(alpha)  # of a difference there is no side to be sure of beforehand
        differs = outcome == OF_SIZE.yes and not least <= 0 <= most
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


Tested = Sign | Equivalence


def judged(tests: Sequence[Tested | None], alpha: float = ALPHA, beside: int = 0) -> list[tuple[Verdict, float] | None]:
    """A family of claims, each with its verdict and the level it was tested at.

    None is a claim that cannot be tested yet: it keeps its place, so that the levels of the others do not depend on
    what has been run. So do the claims `beside` these that are judged by an interval, at `alpha / m` of all m.
    """
    levels = holm([*(1.0 if test is None else test.p for test in tests), *[1.0] * beside], alpha)
    return [None if test is None else (test.verdict(level), level) for test, level in zip(tests, levels, strict=False)]


# Claims with an interval


@dataclass(frozen=True, kw_only=True)
class Magnitude:
    """ "0.9 worse." Consistent: one more such pair of single runs could well give the paper's value.

    An interval wider to each side than the value itself holds zero as well, and says nothing.
    """

    contrast: Contrast
    reported: float

    def verdict(self, alpha: float = ALPHA) -> Verdict:
        """Consistent by the 95 % prediction interval, not consistent by that of level `alpha`."""
        informative = self.contrast.prediction() <= abs(self.reported)
        return _predicted(self.contrast, self.reported, alpha, informative=informative)


@dataclass(frozen=True, kw_only=True)
class PointValue:
    """ "25.8." Consistent: one more run could well give it. An interval wider than `widest` says nothing."""

    contrast: Contrast  # the mean of one row
    reported: float
    widest: float

    def verdict(self, alpha: float = ALPHA) -> Verdict:
        """Consistent by the 95 % prediction interval, not consistent by that of level `alpha`."""
        informative = 2 * self.contrast.prediction() <= self.widest
        return _predicted(self.contrast, self.reported, alpha, informative=informative)


def _predicted(contrast: Contrast, reported: float, alpha: float, *, informative: bool) -> Verdict:
    """Consistent is no finding; not consistent is one, and keeps to the level of the page."""
    value, half = contrast.value, contrast.prediction()
    where = f"a repetition gives {value - half:.4g} to {value + half:.4g}, the paper {reported:.4g}"
    if abs(reported - value) > contrast.prediction(alpha):
        return Verdict(outcome=OF_PRINT.no, reason=where, detectable=half)
    if not informative:
        return Verdict(outcome=OF_PRINT.neither, reason=f"uninformative: {where}", detectable=half)
    is_inside = abs(reported - value) <= half
    return Verdict(outcome=OF_PRINT.yes if is_inside else OF_PRINT.neither, reason=where, detectable=half)


@dataclass(frozen=True, kw_only=True)
class Best:
    """ "8 heads are best." By Hsu's comparison with the best: each row against the best of the others.

    The paper is right: no other row than those named can be the best; it is not: none of those named can.
    """

    rows: RunScores  # of the family; more is better
    named: Collection[str]
    noise: Noise
    sized: bool = True

    def possible(self, alpha: float = ALPHA) -> list[str]:
        """The rows that may be best: the true best is among them with a chance of 1 - alpha."""
        return [row for row in self.rows if not any(self._beats(other, row, alpha) for other in self.rows)]

    def verdict(self, alpha: float = ALPHA) -> Verdict:
        """By the set of rows that cannot be excluded as the best."""
        possible, words = self.possible(alpha), OF_SIZE if self.sized else OF_SIGN
        outcome = words.neither
        if {*possible} <= {*self.named}:
            outcome = words.yes
        elif not {*possible} & {*self.named}:
            outcome = words.no
        return Verdict(outcome=outcome, reason=f"may be best: {', '.join(possible)}", detectable=self._lead(alpha))

    def _beats(self, other: str, row: str, alpha: float) -> bool:
        if other == row:
            return False
        ahead = difference(self.rows, other, row, self.noise)
        return ahead.value > self._critical(ahead.df, alpha) * ahead.se

    def _critical(self, df: float, alpha: float) -> float:
        """Bonferroni's value for all others at once: the rows do not share one variance."""
        return t_value(alpha / (len(self.rows) - 1), df)

    def _lead(self, alpha: float) -> float:
        """The lead over every other row that excludes one of them with a chance of 80 %."""
        pairs = [difference(self.rows, one, other, self.noise) for one, other in itertools.combinations(self.rows, 2)]
        return max(
            pair.se * float(special.nctdtrinc(pair.df, 1 - DETECTED, self._critical(pair.df, alpha))) for pair in pairs
        )
