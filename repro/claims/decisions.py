"""Verdicts with a known error rate on rows that were trained with several seeds.

Each kind of claim is a class. Its p-value enters the family of its page, and its `verdict` applies the level that
Holm's procedure gives it. Differences are always turned so that a positive one agrees with the paper. The rules in
words: docs/claims.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from repro.claims.blocks import ALPHA, Contrast, holm

Outcome = Literal[  # in the order of a page; if two endpoints differ, the outcome that is listed first is the verdict
    "unstable",
    "reproduced",
    "contradicted",
    "inconclusive",
    "sign as printed",
    "opposite sign",
    "printed size excluded",
    "undetermined",
    "consistent",
    "not consistent",
    "holds here",
    "does not hold here",
    "not testable here",
    "not judged",
]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class OutcomeWords(NamedTuple):
    """The possible outcomes of a rule: the paper is right, it is not, or neither is shown."""

    yes: Outcome
    no: Outcome
    neither: Outcome


OF_SIZE = OutcomeWords("reproduced", "contradicted", "inconclusive")  # with the paper's own model and text
OF_SIGN = OutcomeWords("sign as printed", "opposite sign", "undetermined")  # without them
OF_PRINT = OutcomeWords("consistent", "not consistent", "inconclusive")  # for the paper's numbers among themselves
# for our own code, or measurements of our own layers
OF_HOUSE = OutcomeWords("holds here", "does not hold here", "inconclusive")
EXCLUDED: Outcome = "printed size excluded"  # no sign was found, and the difference is smaller than the printed one

FIRST_SEED = 9  # runs of earlier seeds were looked at while scales, claims and this analysis were made
SEEDS = 5  # per row, declared before the runs: one look, at ALPHA
MIN_RUNS = 3  # finished runs per row; with fewer nothing is judged
MAX_DIVERGED = 1  # diverged runs per row; with more it is unstable


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome, the reason, and the size of difference that could have been found."""

    outcome: Outcome
    reason: str
    detectable: float | None = None  # the size that would have been found with a chance of 80 %


@dataclass(frozen=True, kw_only=True)
class Sign:
    """ "B is worse than A", "more is better": a difference, or a slope, is above zero.

    The test is two-sided: either sign is found with the same certainty.
    """

    estimate: Contrast
    printed: float | None  # the paper's number; None: it prints nothing
    words: OutcomeWords
    of: str = ""  # what the estimate is, in words, unless it is a difference

    @property
    def p(self) -> float:
        """Two-sided p-value against "zero"."""
        return min(1.0, 2 * min(self.estimate.p_above(0.0), self.estimate.p_below(0.0)))

    def verdict(self, level: float, lowest: float) -> Verdict:
        """The verdict at the level from Holm's procedure; "printed size excluded" at the family's `lowest` level."""
        low, high = self.estimate.interval(level)
        most = self.estimate.interval(lowest)[1]
        outcome, text = self.words.neither, f"between {low:.3g} and {high:.3g}"
        if low > 0:
            outcome, text = self.words.yes, f"above {low:.3g}"
        elif high < 0:
            outcome, text = self.words.no, f"the other way round: below {high:.3g}"
        elif self.words == OF_SIGN and self.printed and most < self.printed:
            outcome, text = EXCLUDED, f"below {most:.3g}, printed {self.printed:.3g}"
        return Verdict(outcome=outcome, reason=f"{self.of} {text}".strip(), detectable=self.estimate.detectable(level))


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """ "A and B are nearly the same": the difference lies inside the margin, or outside it."""

    estimate: Contrast
    margin: float
    words: OutcomeWords

    def _inside(self) -> float:
        """The p-value against "outside": the larger of two one-sided tests."""
        return max(self.estimate.p_above(-self.margin), self.estimate.p_below(self.margin))

    def _outside(self) -> float:
        """The p-value against "inside", on the side of the difference."""
        return min(self.estimate.p_above(self.margin), self.estimate.p_below(-self.margin))

    @property
    def p(self) -> float:
        """The smaller of both p-values; only one of the two can be wrong."""
        return min(self._inside(), self._outside())

    def verdict(self, level: float, _lowest: float) -> Verdict:
        """At the level that Holm's procedure gave."""
        low, high = self.estimate.interval(2 * level)
        yes, no, neither = self.words
        outcome = yes if self._inside() <= level else no if self._outside() <= level else neither
        return Verdict(outcome=outcome, reason=f"between {low:.3g} and {high:.3g}, margin {self.margin:.3g}")


@dataclass(frozen=True, kw_only=True)
class Best:
    """ "These rows are the best": each other row is worse than one of them; it fails if one is better than all of them.

    Where all of several comparisons must be shown, the largest p-value counts. Where any one of them is enough, the
    smallest p-value counts, multiplied by their number.
    """

    leads: Mapping[str, Sequence[Contrast]]  # other row -> how far each of the named rows is ahead of it
    words: OutcomeWords

    def _named(self) -> float:
        return max(len(of) * min(one.p_above(0.0) for one in of) for of in self.leads.values())

    def _other(self) -> float:
        return len(self.leads) * min(max(one.p_below(0.0) for one in of) for of in self.leads.values())

    @property
    def p(self) -> float:
        """The p-value for either outcome, hence twice the smaller."""
        return min(1.0, 2 * min(self._named(), self._other()))

    def verdict(self, level: float, _lowest: float) -> Verdict:
        """At the level that Holm's procedure gave."""
        yes, no, neither = self.words
        outcome = yes if self._named() <= level / 2 else no if self._other() <= level / 2 else neither
        closest = min(self.leads, key=lambda row: max(one.value for one in self.leads[row]))
        ahead = max(one.value for one in self.leads[closest])
        return Verdict(outcome=outcome, reason=f"ahead of the next, {closest.split('/', 1)[1]}, by {ahead:.3g}")


Tested = Sign | Equivalence | Best


def judged(tests: Sequence[Tested | None]) -> list[tuple[Verdict, float] | None]:
    """Judge a family of claims; gives each its verdict and the level at which it was tested.

    None stands for a claim that cannot be tested yet. It keeps its place in the family, so that the levels of the
    others do not depend on which runs exist.
    """
    levels = holm([1.0 if test is None else test.p for test in tests])
    lowest = ALPHA / max(1, len(tests))
    return [
        None if test is None else (test.verdict(level, lowest), level)
        for test, level in zip(tests, levels, strict=True)
    ]
