"""Weights by hand; under every rule a hidden key has weight 0, and who sees nothing gets numbers."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from lab_systems import VARIANTS
from torch import Tensor, nn

from repro.model.ablations.reach import TwoLevel
from repro.model.ablations.relative import Relative
from repro.model.ablations.scores import AdditiveScores, BilinearScores, GaussianKernel, UnscaledDot
from repro.model.ablations.selection import Hard, LinearWeights, ReluWeights, Sampled, SigmoidWeights, StraightThrough
from repro.model.attention import ScaledDotProduct
from repro.model.masks import hidden_bias

RULES: dict[str, Any] = {
    rule.__name__: rule
    for rule in (
        ScaledDotProduct, UnscaledDot, AdditiveScores, BilinearScores, GaussianKernel, Hard, StraightThrough, Sampled,
        SigmoidWeights, ReluWeights, LinearWeights, TwoLevel, Relative,
    )
}  # fmt: skip
ONE_HOT = [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)]
ONE_HEAD = {"n_heads": 1, "d_k": 1, "d_v": 1}
SCORES = torch.tensor([[[[math.log(2), -3.0, math.log(5), 11.0]]]], dtype=torch.float64)
BIAS = hidden_bias(torch.tensor([True, True, True, False]), torch.float64)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Hard, [0, 0, 1, 0]),
        (StraightThrough, [0, 0, 1, 0]),
        (SigmoidWeights, [2 / 5, 1 / (1 + 3 * math.e**3), 5 / 8, 0]),  # x / (x + 3) of x = e^s, as 3 are seen
        (ReluWeights, [math.log(2) / 3, 0, math.log(5) / 3, 0]),
        (LinearWeights, [math.log(2) / 3, -1, math.log(5) / 3, 0]),
    ],
)
def test_by_hand(rule: Any, expected: list[float]) -> None:
    found = rule(**ONE_HEAD).select(SCORES, BIAS)[0, 0, 0]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-15)
    assert found[3] == 0


def test_without_a_mask_all_are_counted() -> None:
    found = LinearWeights(**ONE_HEAD).select(SCORES, None)[0, 0, 0]
    torch.testing.assert_close(found, SCORES[0, 0, 0] / 4)


def test_the_gradient_of_straight_through_is_that_of_softmax() -> None:
    v, gradients = torch.tensor([2.0, 3.0, 5.0, 7.0], dtype=torch.float64), []
    for rule in (StraightThrough, ScaledDotProduct):
        scores = SCORES.clone().requires_grad_()
        (rule(**ONE_HEAD).select(scores, BIAS) @ v).backward()
        gradients.append(scores.grad)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-15)


def test_a_sample_is_one_key_and_the_best_one_after_training() -> None:
    sampled = Sampled(**ONE_HEAD)
    drawn = sampled.select(SCORES.expand(500, 1, 1, 4), BIAS).flatten(0, 2)
    assert {(1, 0, 0, 0), (0, 0, 1, 0)} <= {tuple(one) for one in drawn.tolist()} <= set(ONE_HOT)
    before = torch.get_rng_state()
    assert sampled.eval().select(SCORES, BIAS).flatten().tolist() == [0, 0, 1, 0]
    assert torch.equal(torch.get_rng_state(), before)


def made(rule: Any, d_k: int = 3) -> Any:
    mixing = rule(n_heads=2, d_k=d_k, d_v=5)
    return mixing.double() if isinstance(mixing, nn.Module) else mixing


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_a_hidden_key_has_no_weight(rule: str, training: bool) -> None:
    mixing, n = made(RULES[rule]), 7
    if isinstance(mixing, nn.Module):
        mixing.train(training)
    q, k = torch.randn(2, 2, 2, n, 3, dtype=torch.float64).unbind()
    may_see = torch.rand(2, 1, n, n) < 0.5
    may_see[..., 0] = True
    weights = mixing.weights(100 * q, 100 * k, hidden_bias(may_see, q.dtype)).expand(2, 2, n, n)
    assert (weights[~may_see.expand_as(weights)] == 0).all()
    assert weights[may_see.expand_as(weights)].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rule", RULES)
def test_a_query_that_sees_nothing_stays_finite(rule: str, dtype: torch.dtype) -> None:
    mixing = RULES[rule](n_heads=1, d_k=2, d_v=3)
    mixing = mixing.to(dtype) if isinstance(mixing, nn.Module) else mixing
    q, k, v = (torch.randn(1, 1, 5, width).to(dtype).requires_grad_() for width in (2, 2, 3))
    bias = hidden_bias(torch.ones(5, 5, dtype=torch.bool).tril(-1), dtype)  # row 0 sees nothing
    with torch.autograd.set_detect_anomaly(True):
        heads: Tensor = mixing(q, k, v, bias)
        heads.sum().backward()
    assert heads.isfinite().all()
    assert all(x.grad is None or x.grad.isfinite().all() for x in (q, k, v))


LAB = VARIANTS["two-level source"].keywords["mix_source"]


@pytest.mark.parametrize(("rule", "segment"), [(LAB, 4), (partial(TwoLevel, segment=3), 3)])
def test_two_levels_are_each_shared_out_whole(rule: Any, segment: int) -> None:
    mixing = rule(**ONE_HEAD)
    scores = torch.randn(2, 1, 5, 11, dtype=torch.float64)
    bias = hidden_bias(torch.arange(11) < 10, torch.float64)
    weights = mixing.select(scores, bias)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 1, 5, dtype=torch.float64))
    means = torch.stack([part.mean(dim=-1) for part in scores[..., :10].split(segment, dim=-1)], dim=-1).softmax(-1)
    for i, part in enumerate(weights[..., :10].split(segment, dim=-1)):
        torch.testing.assert_close(part.sum(dim=-1), means[..., i])  # softmax over the mean keys of segments
        inside = scores[..., i * segment : min((i + 1) * segment, 10)].softmax(dim=-1)
        torch.testing.assert_close(part / part.sum(dim=-1, keepdim=True), inside)
