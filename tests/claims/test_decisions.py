"""The error rate that a page promises, term by term: what one claim may cost. Of whole pages: test_judge.py."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from repro.claims.blocks import ALPHA, Contrast
from repro.claims.decisions import EXCLUDED, OF_SIGN, OF_SIZE, Best, Equivalence, Sign, Tested, judged

LEVEL, DRAWS = 0.2, 2_000
FAR = 50.0  # standard errors
Draw = Callable[[float], Contrast]  # an estimate of a true value


def drawing(seed: int) -> Draw:
    """Estimates with the error that they say: a t-value of 12 degrees of freedom."""
    random = np.random.default_rng(seed)
    return lambda truth: Contrast(value=truth + float(random.standard_t(12)), se=1.0, df=12.0)


def best(draw: Draw, *leads: tuple[float, ...]) -> Best:
    """Of each other row how far each of the best is truly ahead of it."""
    return Best(leads={f"t/{i}": [draw(lead) for lead in of] for i, of in enumerate(leads)}, words=OF_SIZE)


def sign(draw: Draw, truth: float, printed: float | None = None) -> Sign:
    return Sign(estimate=draw(truth), printed=printed, words=OF_SIGN)


def equal(draw: Draw, truth: float) -> Equivalence:
    return Equivalence(estimate=draw(truth), margin=FAR, words=OF_SIZE)


# The cost of one claim: each truth is one under which its verdict is wrong as often as it can be


@pytest.mark.parametrize(
    ("wrong", "chance", "test"),
    [
        ({OF_SIGN.yes, OF_SIGN.no}, LEVEL, lambda draw: sign(draw, 0.0)),
        ({OF_SIGN.no, EXCLUDED}, LEVEL / 2, lambda draw: sign(draw, 0.1, printed=0.1)),
        ({OF_SIZE.yes}, LEVEL, lambda draw: equal(draw, FAR)),
        ({OF_SIZE.yes}, LEVEL, lambda draw: equal(draw, -FAR)),
        ({OF_SIZE.no}, LEVEL, lambda draw: equal(draw, FAR)),
        ({OF_SIZE.yes}, LEVEL / 2, lambda draw: best(draw, (0.0,), (FAR,), (FAR,))),
        ({OF_SIZE.yes}, LEVEL / 2, lambda draw: best(draw, (0.0, 0.0, 0.0), (FAR,) * 3)),
        ({OF_SIZE.no}, LEVEL / 2, lambda draw: best(draw, (0.0,), (0.0,), (0.0,), (0.0,))),
        ({OF_SIZE.no}, LEVEL / 4, lambda draw: best(draw, (0.0, -FAR), (FAR, FAR))),
    ],
)  # fmt: skip
def test_a_claim_is_wrong_as_often_as_its_level_says(
    wrong: set[str], chance: float, test: Callable[[Draw], Tested]
) -> None:
    draw = drawing(1)
    found = sum(test(draw).verdict(LEVEL, LEVEL).outcome in wrong for _ in range(DRAWS)) / DRAWS
    # a bound over several rows is not quite reached
    assert 0.7 * chance <= found <= chance + 4 * (chance * (1 - chance) / DRAWS) ** 0.5


def drawn_tests(draw: Draw) -> Iterator[Tested]:
    for truth in (-3.0, -1.0, 0.0, 2.0, 4.0):
        yield sign(draw, truth)
        yield replace(equal(draw, truth), margin=2.0)
        yield best(draw, (truth, 1.0), (truth, truth + 1.0), (0.0, 3.0))


def test_a_verdict_falls_at_the_level_of_the_p_value() -> None:
    draw = drawing(2)
    for test in (one for _ in range(40) for one in drawn_tests(draw)):
        if test.p < 1.0:
            below, above = (test.verdict(test.p * by, 0.0).outcome for by in (0.999, 1.001))
            assert (below == test.words.neither, above == test.words.neither) == (True, False), test


def test_a_size_is_excluded_at_the_lowest_level_of_the_page() -> None:
    # nine signs are plain, so the last claim is tested at ALPHA: its own interval excludes what is printed, but not yet
    plain = Sign(estimate=Contrast(value=FAR, se=1.0, df=12.0), printed=None, words=OF_SIGN)
    last = Sign(estimate=Contrast(value=0.0, se=1.0, df=12.0), printed=3.0, words=OF_SIGN)
    found = judged([plain] * 9 + [last])[-1]
    assert found is not None
    assert found[1] == ALPHA
    assert found[0].outcome == OF_SIGN.neither
    alone = judged([last])[0]
    assert alone is not None
    assert alone[0].outcome == EXCLUDED
