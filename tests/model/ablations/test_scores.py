"""Scores and weights by hand and by loops; under every rule a hidden key has weight 0."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from lab_systems import VARIANTS
from model.samples import is_glorot, normal
from torch import Tensor, nn

from repro.model.ablations import scores
from repro.model.ablations.reach import TwoLevel
from repro.model.ablations.relative import Relative
from repro.model.ablations.scores import AdditiveScores, BilinearScores, GaussianKernel, UnscaledDot
from repro.model.ablations.selection import Hard, LinearWeights, ReluWeights, Sampled, SigmoidWeights, StraightThrough
from repro.model.attention import MultiHeadAttention, ScaledDotProduct
from repro.model.masks import hidden_bias

B, H, Q, K, E, F = 2, 3, 5, 7, 11, 13
WIDTHS = {"n_heads": H, "d_k": E, "d_v": F}


def test_dot_by_hand() -> None:
    q, k = torch.tensor([[[[2.0, 3.0]]]]), torch.tensor([[[[5.0, 7.0], [-1.0, 0.0]]]])
    assert UnscaledDot(n_heads=1, d_k=2, d_v=1).scores(q, k).tolist() == [[[[31.0, -2.0]]]]


def test_each_head_begins_with_a_glorot_matrix_of_its_own() -> None:
    widths = {"n_heads": 16, "d_k": 40, "d_v": 2}
    for matrix, fans in ((BilinearScores(**widths).between, 40 + 40), (AdditiveScores(**widths).v, 40 + 1)):
        assert is_glorot(matrix, fans, 0, close=0.1)


@pytest.mark.parametrize("kept", [0, 2**30])
def test_a_large_hidden_layer_of_additive_scores_is_made_again_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """Kept for the backward pass are then queries, keys and v alone: 3 heads, of which two are made at once."""
    torch.manual_seed(0)
    mix = AdditiveScores(n_heads=3, d_k=5, d_v=5).double()
    q, k = (torch.randn(2, 3, n, 5, dtype=torch.float64, requires_grad=True) for n in (4, 7))
    weight = torch.randn(2, 3, 4, 7, dtype=torch.float64)
    expected = ((q.unsqueeze(-2) + k.unsqueeze(-3)).tanh() * mix.v.view(3, 1, 1, 5)).sum(-1)
    wanted = torch.autograd.grad((expected * weight).sum(), (q, k, mix.v))
    monkeypatch.setattr(scores, "KEPT", kept)
    largest = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        found = mix.scores(q, k)
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)
    for ours, theirs in zip(torch.autograd.grad((found * weight).sum(), (q, k, mix.v)), wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    assert (largest < 2 * 3 * 4 * 7 * 5) == (kept == 0)


@torch.no_grad()
def test_the_matrix_of_bilinear_scores_folds_into_the_queries() -> None:
    bilinear, scaled = (
        MultiHeadAttention(d_model=17, **WIDTHS, mix=mix).double() for mix in (BilinearScores, ScaledDotProduct)
    )
    nn.init.normal_(bilinear.bias)
    scaled.load_state_dict(bilinear.state_dict(), strict=False)
    between: Tensor = bilinear.mixing.between  # type: ignore[assignment]
    for h in range(H):
        rows = slice(h * E, (h + 1) * E)
        scaled.weight[rows] = between[h].T @ bilinear.weight[rows]
        scaled.bias[rows] = between[h].T @ bilinear.bias[rows]
    x, memory = normal(B, Q, 17), normal(B, K, 17)
    torch.testing.assert_close(bilinear(x, memory), scaled(x, memory), rtol=0, atol=1e-12)


@pytest.mark.parametrize("bandwidth", [0.3, 2.0])
def test_attention_with_a_gaussian_kernel_is_the_smoother_of_nadaraya_and_watson(bandwidth: float) -> None:
    x, seen, y = normal(Q), normal(K), normal(K)
    kernel = torch.exp(-((x[:, None] - seen) ** 2) / (2 * bandwidth**2))
    expected = (kernel * y).sum(dim=1) / kernel.sum(dim=1)
    mixing = GaussianKernel(n_heads=1, d_k=1, d_v=1, bandwidth=bandwidth)
    found = mixing(x[None, None, :, None], seen[None, None, :, None], y[None, None, :, None], None)
    torch.testing.assert_close(found.flatten(), expected, rtol=0, atol=1e-12)


# From scores to weights


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
def test_weights_by_hand(rule: Any, expected: list[float]) -> None:
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
