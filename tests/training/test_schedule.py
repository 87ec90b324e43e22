"""The learning rate, by the formula's own numbers."""

import pytest

from repro.training.module import rate


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (1, 1.746_928_107_421_71e-7),  # 512^-0.5 4000^-1.5
        (4_000, 6.987_712_429_686_84e-4),  # 512^-0.5 4000^-0.5, the peak
        (16_000, 3.493_856_214_843_42e-4),  # half of it
        (100_000, 1.397_542_485_937_37e-4),  # 512^-0.5 100000^-0.5
    ],
)
def test_the_papers_numbers(step: int, expected: float) -> None:
    assert rate(step, d_model=512, warmup=4_000) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("warmup", [1, 20])
def test_the_peak_stands_at_the_end_of_the_warm_up(warmup: int) -> None:
    rates = {step: rate(step, d_model=64, warmup=warmup) for step in range(1, 4 * warmup + 1)}
    assert max(rates, key=rates.__getitem__) == warmup
    assert rates[warmup] == pytest.approx((64 * warmup) ** -0.5)
    assert rates[4 * warmup] == pytest.approx(rates[warmup] / 2)


def test_a_factor_multiplies_every_rate() -> None:
    assert rate(4_000, 512, 4_000, 0.5) == pytest.approx(3.493_856_214_843_42e-4, rel=1e-12)
    assert [rate(step, 64, 20, 3.0) for step in (1, 20, 99)] == [
        pytest.approx(3 * rate(step, 64, 20), rel=1e-15) for step in (1, 20, 99)
    ]
    assert rate(7, 64, 20, 1.0) == rate(7, 64, 20)


def test_without_warm_up_it_begins_at_the_peak_and_falls_as_ever() -> None:
    assert [rate(step, 64, 20, rises=False) for step in (1, 7, 20)] == [rate(20, 64, 20)] * 3
    assert rate(80, 64, 20, 3.0, rises=False) == rate(80, 64, 20, 3.0)


def test_steps_count_from_one() -> None:
    with pytest.raises(ValueError, match="counted from 1, got 0"):
        rate(0, 512, 4_000)
