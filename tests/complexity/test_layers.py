"""The layers of Table 1 against PyTorch's own, against explicit loops and against a mask. All in float64."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.complexity.layers import (
    Convolution,
    Dilated,
    ElmanCell,
    FullAttention,
    GatedCell,
    Layer,
    Recurrent,
    RestrictedAttention,
    SeparableConvolution,
    additive_attention,
)
from repro.model.masks import hidden_bias

B, N, D, H = 2, 11, 6, 3


def drawn(layer: nn.Module) -> nn.Module:
    """The layer in float64 with every parameter drawn, biases too: where they are zero, a lost one goes unseen."""
    layer.double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def some_input(*shape: int) -> Tensor:
    torch.manual_seed(7)
    return torch.randn(shape or (B, N, D), dtype=torch.float64)


def test_a_layer_keeps_the_shape_and_is_the_sum_of_its_parts() -> None:
    layers: list[Layer] = [FullAttention(d=D, n_heads=H), RestrictedAttention(d=D, n_heads=H, r=5)]
    layers += [Recurrent(ElmanCell(D)), Recurrent(GatedCell(D)), Convolution(d=D, k=5), SeparableConvolution(d=D, k=5)]
    for layer in layers:
        x = some_input()
        drawn(layer)
        mixed = layer.mix(*layer.project(x))
        assert mixed.shape == layer(x).shape == x.shape
        torch.testing.assert_close(getattr(layer, "output", nn.Identity())(mixed), layer(x))


@pytest.mark.parametrize("r", [1, 5, 2 * N - 1])
def test_restricted_attention_is_full_attention_behind_a_band(r: int) -> None:
    x, near = some_input(), torch.arange(N)
    full, band = drawn(FullAttention(d=D, n_heads=H)), RestrictedAttention(d=D, n_heads=H, r=r).double()
    band.load_state_dict(full.state_dict())
    may_see = (near.unsqueeze(1) - near).abs() <= r // 2
    torch.testing.assert_close(band(x), full(x, hidden_bias(may_see, x.dtype)))


@pytest.mark.parametrize(("cell", "library"), [(ElmanCell, nn.RNN), (GatedCell, nn.GRU)])
def test_the_recurrences_are_the_librarys(cell: Any, library: Any) -> None:
    x, ours, theirs = some_input(), Recurrent(cell(D)), library(D, D, batch_first=True).double()
    drawn(ours)
    for name, part in {"ih": ours.cell.input, "hh": ours.cell.state}.items():
        bias = torch.zeros(D) if part.bias is None else part.bias
        theirs.load_state_dict({f"weight_{name}_l0": part.weight, f"bias_{name}_l0": bias}, strict=False)
    torch.testing.assert_close(ours(x), theirs(x)[0])


def convolved(x: Tensor, kernel: nn.Conv1d, dilation: int) -> Tensor:
    """Position by position, tap by tap: a tap beyond the ends is not there. Kernel [d, d, k]."""
    k = kernel.weight.shape[2]
    result = torch.empty_like(x)
    for i in range(x.shape[1]):
        result[:, i] = kernel.bias
        for tap in range(k):
            j = i + (tap - k // 2) * dilation
            if 0 <= j < x.shape[1]:
                result[:, i] += x[:, j] @ kernel.weight[:, :, tap].T
    return result


@pytest.mark.parametrize("k", [1, 5, 2 * N + 1])
def test_a_convolution_tap_by_tap(k: int) -> None:
    x, layer = some_input(), Convolution(d=D, k=k)
    drawn(layer)
    torch.testing.assert_close(layer(x), convolved(x, layer.kernel, dilation=1))


def test_a_separable_convolution_channel_by_channel() -> None:
    x, layer = some_input(), SeparableConvolution(d=D, k=3)
    drawn(layer)
    mixed = torch.stack(
        [
            F.conv1d(x[:, :, c].unsqueeze(1), layer.kernel.weight[c : c + 1], layer.kernel.bias[c : c + 1], padding=1)
            for c in range(D)
        ],
        dim=-1,
    ).squeeze(1)
    torch.testing.assert_close(layer(x), layer.output(mixed))
    assert layer.kernel.weight.numel() == 3 * D


@pytest.mark.parametrize("depth", [1, 3])
def test_dilated_convolutions_tap_by_tap(depth: int) -> None:
    # on a sequence so wide that its own ends are out of sight of the positions that are compared
    x, stack, beyond = some_input(), Dilated(d=D, k=3, depth=depth), 14
    drawn(stack)
    expected = F.pad(x, (0, 0, beyond, beyond))
    for kernel, dilation in zip(stack.kernels, (1, 3, 9), strict=False):
        expected = convolved(expected, kernel, dilation)
    torch.testing.assert_close(stack(x), expected[:, beyond:-beyond])


def test_additive_attention_pair_by_pair() -> None:
    q, k, v = (some_input(B, length, D) * scale for length, scale in ((5, 1.0), (7, 2.0), (7, 3.0)))
    w = some_input(D)
    for b in range(B):
        for i in range(5):
            scores = torch.stack([w @ torch.tanh(q[b, i] + k[b, j]) for j in range(7)])
            torch.testing.assert_close(additive_attention(q, k, v, w)[b, i], scores.softmax(0) @ v[b])


@pytest.mark.parametrize("window", [0, 4])
def test_a_window_without_a_centre_is_refused(window: int) -> None:
    with pytest.raises(ValueError, match=f"must be odd to have a centre, got {window}. Use {max(window, 0) + 1}."):
        Convolution(d=D, k=window)
    with pytest.raises(ValueError, match="must be odd"):
        RestrictedAttention(d=D, n_heads=H, r=window)
