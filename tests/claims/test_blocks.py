"""Rows and seeds: the fit is least squares by hand, seeds are taken out, and noisy rows count by their own noise."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from repro.claims.blocks import Blocks, Contrast, holm, slope_weights

SIX = {"a": {1: 3.0, 2: 8.0, 3: 7.0}, "b": {1: 1.0, 2: 5.0, 3: 6.0}}


def found(scores: Mapping[str, Mapping[int, float]], first: str, second: str) -> Contrast:
    estimate = Blocks(scores).difference(first, second)
    assert estimate
    return estimate


def test_six_numbers_by_hand() -> None:
    # differences within the seeds 2, 3, 1: mean 2, standard deviation 1, so 2 +- 1 / sqrt(3) with 2 degrees of freedom
    estimate = found(SIX, "a", "b")
    assert (estimate.value, estimate.se, estimate.df) == pytest.approx((2.0, 1 / math.sqrt(3), 2.0))
    half = 4.302653 / math.sqrt(3)
    assert estimate.interval() == pytest.approx((2 - half, 2 + half), abs=1e-6)
    assert 2 * estimate.p_above(0.0) == pytest.approx(float(stats.ttest_rel([3, 8, 7], [1, 5, 6]).pvalue))


def test_six_numbers_of_three_rows_by_normal_equations() -> None:
    # rows a, b, c, and seed 2: residuals are half of what the differences 4, 1, 1 are from their mean
    scores = {"a": {1: 0.0, 2: 4.0}, "b": {1: 5.0, 2: 6.0}, "c": {1: 7.0, 2: 8.0}}
    design = np.array([[1, 0, 0, 0], [1, 0, 0, 1], [0, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 1, 1]], dtype=float)
    y = np.array([0.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    effects = np.linalg.solve(design.T @ design, design.T @ y)
    assert effects == pytest.approx([1.0, 4.5, 6.5, 2.0])
    squares = float(((y - design @ effects) ** 2).sum())
    assert squares == pytest.approx(3.0)  # 2 (1 + 1/4 + 1/4), of 6 - 4 degrees of freedom
    estimate = found(scores, "c", "b")
    assert estimate.value == pytest.approx(effects[2] - effects[1])
    assert estimate.value == pytest.approx(2.0)


def test_a_drawn_table_comes_out_as_by_a_mixed_model_of_statsmodels() -> None:
    # 0.15.0: mixedlm("score ~ 0 + row", table, groups="seed").fit(reml=True), of which seeds are draws, too
    table = {"a": (22.8, 16.6, 14.7, 7.4, 21.2, 24.1), "b": (24.7, 20.3, None, 9.9, 19.6, 26.8)}
    table |= {"c": (19.7, 14.4, 14.4, 7.5, 17.3, 24.4), "d": (26.2, 19.2, 17.3, 9.6, None, None)}
    scores = {row: {seed: of for seed, of in enumerate(numbers) if of} for row, numbers in table.items()}
    for rows, value, se in (("ba", 1.942, 0.745), ("dc", 3.909, 0.809), ("db", 0.450, 0.862)):
        estimate = found(scores, *rows)
        assert estimate.value == pytest.approx(value, abs=0.1 * se), rows
        assert estimate.se == pytest.approx(se, rel=0.06), "within a row it would be four times as much"


def test_a_seed_that_is_bad_in_every_row_or_that_one_row_has_alone_changes_nothing() -> None:
    worse = {row: {seed: value - 50.0 * (seed == 2) for seed, value in of.items()} for row, of in SIX.items()}
    more = {"a": SIX["a"] | {4: 100.0}, "b": SIX["b"]}
    before, after, alone = (found(scores, "a", "b") for scores in (SIX, worse, more))
    assert (after.value, after.se, after.df) == pytest.approx((before.value, before.se, before.df))
    assert (alone.value, alone.se) == pytest.approx((before.value, before.se))


def drawn(random: np.random.Generator, **spreads: float) -> dict[str, dict[int, float]]:
    return {row: dict(enumerate(map(float, s * random.standard_normal(5)))) for row, s in spreads.items()}


def test_a_row_that_is_noisier_counts_by_its_own_noise_and_spoils_no_other() -> None:
    random = np.random.default_rng(1)
    quiet = drawn(random, **{f"row {i}": 1.0 for i in range(12)})
    loud = quiet | drawn(random, loud=40.0)
    assert found(loud, "loud", "row 1").se > 5 * found(loud, "row 2", "row 1").se
    assert found(loud, "loud", "row 1").df < 5, "its own five seeds"
    assert found(loud, "row 2", "row 1").se == pytest.approx(found(quiet, "row 2", "row 1").se, rel=0.25)
    assert found(loud, "row 2", "row 1").df > 10


def test_rows_need_seeds_in_common() -> None:
    apart = {"a": {1: 3.0, 2: 8.0}, "b": {3: 1.0, 4: 5.0}}
    assert Blocks(apart).difference("a", "b") is None
    through = apart | {"c": {1: 2.0, 2: 6.5, 3: 0.0, 4: 5.0}}
    assert found(through, "a", "b").value == pytest.approx(1.25 - 0.5)  # a - c less b - c


@pytest.mark.parametrize(
    "scores",
    [{}, {"a": {1: 3.0, 2: 3.0}, "b": {1: 2.0, 2: 2.0}}, {"a": {1: 3.0}, "b": {1: 2.0}}, {"a": SIX["a"]}],
    ids=["nothing", "no noise", "one seed", "one row"],
)
def test_what_does_not_vary_has_no_interval(scores: Mapping[str, Mapping[int, float]]) -> None:
    assert Blocks(scores).difference("a", "b") is None


def test_a_trend_is_a_slope_per_doubling() -> None:
    weights = slope_weights([2, 4, 8])
    assert weights == pytest.approx([-0.5, 0.0, 0.5])
    scores = {row: {seed: i + 0.1 * seed * (i + 1) % 0.3 for seed in (1, 2, 3)} for i, row in enumerate("xyz")}
    estimate = Blocks(scores).estimate(dict(zip("xyz", weights, strict=True)))
    assert estimate
    assert estimate.value == pytest.approx(found(scores, "z", "x").value / 2)


def test_what_is_detectable_is_found_four_times_of_five() -> None:
    estimate = Contrast(value=0.0, se=0.5, df=12.0)
    size = estimate.detectable(0.05)
    power = 1 - float(stats.nct.cdf(stats.t.ppf(0.975, 12), 12, size / 0.5))
    assert power == pytest.approx(0.8, abs=1e-6)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.05, 0.025], alpha=0.06) == pytest.approx([0.02, 0.06, 0.03])
    assert holm([0.01, 0.05, 0.04], alpha=0.06) == pytest.approx([0.02, 0.03, 0.03]), "at the level where it stopped"
    assert holm([]) == []


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    random, n, held = np.random.default_rng(3), 300, 0
    for _ in range(n):
        seeds = 3 * random.standard_normal(5)
        noise = drawn(random, a=1, b=1, c=1, d=3)
        scores = {row: {s: v + float(seeds[s]) for s, v in of.items()} for row, of in noise.items()}
        low, high = found(scores, "d", "a").interval()
        held += low <= 0 <= high
    assert held / n == pytest.approx(0.95, abs=0.03)
