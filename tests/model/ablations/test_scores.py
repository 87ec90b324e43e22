"""Scores by hand and by loops; what folds into what."""

import math

import pytest
import torch
from model.samples import is_glorot, normal
from torch import Tensor, nn

from repro.model.ablations import scores
from repro.model.ablations.scores import AdditiveScores, BilinearScores, GaussianKernel, UnscaledDot
from repro.model.attention import MultiHeadAttention, ScaledDotProduct

B, H, Q, K, E, F = 2, 3, 5, 7, 11, 13
WIDTHS = {"n_heads": H, "d_k": E, "d_v": F}


def test_dot_by_hand() -> None:
    q, k = torch.tensor([[[[2.0, 3.0]]]]), torch.tensor([[[[5.0, 7.0], [-1.0, 0.0]]]])
    assert UnscaledDot(n_heads=1, d_k=2, d_v=1).scores(q, k).tolist() == [[[[31.0, -2.0]]]]


def test_each_head_begins_with_a_glorot_matrix_of_its_own() -> None:
    widths = {"n_heads": 16, "d_k": 40, "d_v": 2}
    for matrix, fans in ((BilinearScores(**widths).between, 40 + 40), (AdditiveScores(**widths).v, 40 + 1)):
        assert is_glorot(matrix, fans, 0, close=0.1)


def test_additive_in_a_loop() -> None:
    mixing, q, k = AdditiveScores(**WIDTHS).double(), normal(B, H, Q, E), normal(B, H, K, E)
    found = mixing.scores(q, k)
    assert found.shape == (B, H, Q, K)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, (B, H, Q, K))).tolist():
        hand = sum(mixing.v[h, e, 0] * torch.tanh(q[b, h, i, e] + k[b, h, j, e]) for e in range(E))
        torch.testing.assert_close(found[b, h, i, j], hand, rtol=0, atol=1e-12)


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


def test_bilinear_in_a_loop() -> None:
    mixing, q, k = BilinearScores(**WIDTHS).double(), normal(B, H, Q, E), normal(B, H, K, E)
    found = mixing.scores(q, k)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, (B, H, Q, K))).tolist():
        hand = q[b, h, i] @ mixing.between[h] @ k[b, h, j] / math.sqrt(E)
        torch.testing.assert_close(found[b, h, i, j], hand, rtol=0, atol=1e-12)


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
