"""Verdicts with a known error rate on rows that were trained with several seeds.

Each kind of claim has a p-value for either outcome. They enter the family of its page, and decide at the level that
Holm's procedure gives back. Differences are always turned so that a positive one agrees with the paper. The rules in
words: docs/claims.md.
"""

from collections.abc import Callable, Mapping, Sequence
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


class Verdict(NamedTuple):
    """The outcome, the reason, and the size of difference that could have been found."""

    outcome: Outcome
    reason: str
    detectable: float | None = None  # the size that would have been found with a chance of 80 %


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A claim that is put to the test: what its outcome goes by, and what is said of it."""

    yes: float  # the p-value by which it holds
    no: float  # the p-value by which it does not
    words: OutcomeWords
    verdict: Callable[[Outcome, float, float], Verdict]  # of the outcome, its level and the lowest of its family

    def outcome(self, level: float) -> Outcome:
        """What it comes to at the level that Holm's procedure gave."""
        yes, no, neither = self.words
        return yes if self.yes <= level else no if self.no <= level else neither


def sign(estimate: Contrast, printed: float | None, words: OutcomeWords, of: str = "") -> Trial:
    """ "B is worse than A", "more is better": a difference, or a slope, is above zero.

    The test is two-sided: either sign is found with the same certainty. `printed` is the paper's number, and `of` says
    what the estimate is, unless it is a difference.
    """

    def verdict(outcome: Outcome, level: float, lowest: float) -> Verdict:
        """Below the printed size at the `lowest` level it is "printed size excluded", where no sign was found."""
        low, high = estimate.interval(level)
        most = estimate.interval(lowest)[1]
        text = f"between {low:.3g} and {high:.3g}"
        if outcome == words.yes:
            text = f"above {low:.3g}"
        elif outcome == words.no:
            text = f"the other way round: below {high:.3g}"
        elif words == OF_SIGN and printed and most < printed:
            outcome, text = EXCLUDED, f"below {most:.3g}, printed {printed:.3g}"
        return Verdict(outcome, f"{of} {text}".strip(), estimate.detectable(level))

    return Trial(yes=2 * estimate.p_above(0.0), no=2 * estimate.p_below(0.0), words=words, verdict=verdict)


def equivalence(estimate: Contrast, margin: float, words: OutcomeWords) -> Trial:
    """ "A and B are nearly the same": the difference lies inside the margin, or outside it; only one can be wrong."""

    def verdict(outcome: Outcome, level: float, _lowest: float) -> Verdict:
        low, high = estimate.interval(2 * level)
        return Verdict(outcome, f"between {low:.3g} and {high:.3g}, margin {margin:.3g}")

    inside = max(estimate.p_above(-margin), estimate.p_below(margin))
    outside = min(estimate.p_above(margin), estimate.p_below(-margin))  # on the side of the difference
    return Trial(yes=inside, no=outside, words=words, verdict=verdict)


def best(leads: Mapping[str, Sequence[Contrast]], words: OutcomeWords) -> Trial:
    """ "These rows are the best": each other row is worse than one of them; it fails if one is better than all of them.

    `leads` say of each other row how far each of the named rows is ahead of it. Where all of several comparisons must
    be shown, the largest p-value counts. Where any one of them is enough, the smallest p-value counts, multiplied by
    their number. Both outcomes can be wrong, so either has half of the level.
    """

    def verdict(outcome: Outcome, _level: float, _lowest: float) -> Verdict:
        ahead = {row.split("/", 1)[1]: max(one.value for one in of) for row, of in leads.items()}
        closest = min(ahead, key=ahead.__getitem__)
        return Verdict(outcome, f"ahead of the next, {closest}, by {ahead[closest]:.3g}")

    named = max(len(of) * min(one.p_above(0.0) for one in of) for of in leads.values())
    other = len(leads) * min(max(one.p_below(0.0) for one in of) for of in leads.values())
    return Trial(yes=2 * named, no=2 * other, words=words, verdict=verdict)


def judged(tests: Sequence[Trial | None]) -> list[tuple[Verdict, float] | None]:
    """Judge a family of claims; gives each its verdict and the level at which it was tested.

    None stands for a claim that cannot be tested yet. It keeps its place in the family, so that the levels of the
    others do not depend on which runs exist.
    """
    levels = holm([1.0 if test is None else min(test.yes, test.no) for test in tests])
    lowest = ALPHA / max(1, len(tests))
    return [
        (test.verdict(test.outcome(level), level, lowest), level) if test else None
        for test, level in zip(tests, levels, strict=True)
    ]
