"""The error rate that a page promises, term by term: what one claim may cost. Of whole pages: test_judge.py."""

from collections.abc import Callable

import numpy as np
import pytest

from repro.claims.blocks import ALPHA, Contrast
from repro.claims.decisions import EXCLUDED, OF_SIGN, OF_SIZE, Trial, best, equivalence, judged, sign

LEVEL, DRAWS = 0.2, 2_000
FAR = 50.0  # standard errors
Draw = Callable[[float], Contrast]  # an estimate of a true value


def drawing(seed: int) -> Draw:
    """Estimates with the error that they say: a t-value of 12 degrees of freedom."""
    random = np.random.default_rng(seed)
    return lambda truth: Contrast(value=truth + float(random.standard_t(12)), se=1.0, df=12.0)


def leading(draw: Draw, *leads: tuple[float, ...]) -> Trial:
    """Of each other row how far each of the best is truly ahead of it."""
    return best({f"t/{i}": [draw(lead) for lead in of] for i, of in enumerate(leads)}, OF_SIZE)


# The cost of one claim: each truth is one under which its verdict is wrong as often as it can be


@pytest.mark.parametrize(
    ("wrong", "chance", "test"),
    [
        ({OF_SIGN.yes, OF_SIGN.no}, LEVEL, lambda draw: sign(draw(0.0), None, OF_SIGN)),
        ({OF_SIGN.no, EXCLUDED}, LEVEL / 2, lambda draw: sign(draw(0.1), 0.1, OF_SIGN)),
        ({OF_SIZE.yes}, LEVEL, lambda draw: equivalence(draw(FAR), FAR, OF_SIZE)),
        ({OF_SIZE.yes}, LEVEL, lambda draw: equivalence(draw(-FAR), FAR, OF_SIZE)),
        ({OF_SIZE.no}, LEVEL, lambda draw: equivalence(draw(FAR), FAR, OF_SIZE)),
        ({OF_SIZE.yes}, LEVEL / 2, lambda draw: leading(draw, (0.0,), (FAR,), (FAR,))),
        ({OF_SIZE.yes}, LEVEL / 2, lambda draw: leading(draw, (0.0, 0.0, 0.0), (FAR,) * 3)),
        ({OF_SIZE.no}, LEVEL / 2, lambda draw: leading(draw, (0.0,), (0.0,), (0.0,), (0.0,))),
        ({OF_SIZE.no}, LEVEL / 4, lambda draw: leading(draw, (0.0, -FAR), (FAR, FAR))),
    ],
)  # fmt: skip
def test_a_claim_is_wrong_as_its_level_says(wrong: set[str], chance: float, test: Callable[[Draw], Trial]) -> None:
    draw = drawing(1)
    trials = (test(draw) for _ in range(DRAWS))
    found = sum(one.verdict(one.outcome(LEVEL), LEVEL, LEVEL).outcome in wrong for one in trials)
    # a bound over several rows is not quite reached
    assert 0.7 * chance <= found / DRAWS <= chance + 4 * (chance * (1 - chance) / DRAWS) ** 0.5


def test_the_interval_that_is_told_agrees_with_the_outcome() -> None:
    draw = drawing(2)
    for estimate in (draw(truth) for _ in range(100) for truth in (-3.0, -1.0, 0.0, 2.0, 4.0)):
        low, high = estimate.interval(LEVEL)
        is_found = low > 0 or high < 0
        assert (sign(estimate, None, OF_SIGN).outcome(LEVEL) != OF_SIGN.neither) == is_found, estimate
        low, high = estimate.interval(2 * LEVEL)
        is_found = -2.0 < low < high < 2.0 or high < -2.0 or low > 2.0
        assert (equivalence(estimate, 2.0, OF_SIZE).outcome(LEVEL) != OF_SIZE.neither) == is_found, estimate


def test_a_size_is_excluded_at_the_lowest_level_of_the_page() -> None:
    # nine signs are plain, so the last claim is tested at ALPHA: its own interval excludes what is printed, but not yet
    plain = sign(Contrast(value=FAR, se=1.0, df=12.0), None, OF_SIGN)
    last = sign(Contrast(value=0.0, se=1.0, df=12.0), 3.0, OF_SIGN)
    found = [one and (one[0].outcome, one[1]) for one in (judged([plain] * 9 + [last])[-1], judged([last])[0])]
    assert found == [(OF_SIGN.neither, ALPHA), (EXCLUDED, ALPHA)]
