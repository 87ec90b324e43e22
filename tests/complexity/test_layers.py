"""The layers of Table 1 against PyTorch's own, against explicit loops and against a mask. All in float64."""

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
    contiguous,
    dot_product_attention,
    restricted,
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


@pytest.mark.parametrize(
    "layer",
    [
        pytest.param(FullAttention(d=D, n_heads=H), id="full attention"),
        pytest.param(RestrictedAttention(d=D, n_heads=H, r=5), id="restricted attention"),
        pytest.param(Recurrent(ElmanCell(D)), id="recurrent"),
        pytest.param(Recurrent(GatedCell(D)), id="gated"),
        pytest.param(Convolution(d=D, k=5), id="convolution"),
        pytest.param(SeparableConvolution(d=D, k=5), id="separable convolution"),
    ],
)
def test_a_layer_keeps_the_shape_and_is_the_sum_of_its_parts(layer: Layer) -> None:
    x = some_input()
    drawn(layer)
    mixed = layer.mix(*layer.project(x))
    assert mixed.shape == layer(x).shape == x.shape
    output = getattr(layer, "output", nn.Identity())
    torch.testing.assert_close(output(mixed), layer(x))


@pytest.mark.parametrize("r", [1, 5, 2 * N - 1])
def test_restricted_attention_is_full_attention_behind_a_band(r: int) -> None:
    x, near = some_input(), torch.arange(N)
    full, band = drawn(FullAttention(d=D, n_heads=H)), RestrictedAttention(d=D, n_heads=H, r=r).double()
    band.load_state_dict(full.state_dict())
    may_see = (near.unsqueeze(1) - near).abs() <= r // 2
    torch.testing.assert_close(band(x), full(x, hidden_bias(may_see, x.dtype)))


def test_the_plain_recurrence_is_the_librarys() -> None:
    x, ours = some_input(), Recurrent(ElmanCell(D))
    drawn(ours)
    library = nn.RNN(D, D, batch_first=True).double()
    library.load_state_dict(
        {
            "weight_ih_l0": ours.cell.input.weight,
            "weight_hh_l0": ours.cell.state.weight,
            "bias_ih_l0": ours.cell.input.bias,
            "bias_hh_l0": torch.zeros(D),
        }
    )
    torch.testing.assert_close(ours(x), library(x)[0])


def test_the_gated_recurrence_is_the_librarys() -> None:
    x, ours = some_input(), Recurrent(GatedCell(D))
    drawn(ours)
    library = nn.GRU(D, D, batch_first=True).double()
    for name, part in {"ih": ours.cell.input, "hh": ours.cell.state}.items():
        library.load_state_dict({f"weight_{name}_l0": part.weight, f"bias_{name}_l0": part.bias}, strict=False)
    torch.testing.assert_close(ours(x), library(x)[0])


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


def test_stacks_have_the_depth_they_were_asked_for() -> None:
    assert [layer.kernel.kernel_size for layer in contiguous(d=D, k=3, depth=4)] == [(3,)] * 4
    assert [kernel.dilation for kernel in Dilated(d=D, k=5, depth=3).kernels] == [(1,), (5,), (25,)]
    assert [layer.side for layer in restricted(d=D, r=5, depth=2)] == [2, 2]


def test_additive_attention_pair_by_pair() -> None:
    q, k, v = (some_input(B, length, D) * scale for length, scale in ((5, 1.0), (7, 2.0), (7, 3.0)))
    w = some_input(D)
    for b in range(B):
        for i in range(5):
            scores = torch.stack([w @ torch.tanh(q[b, i] + k[b, j]) for j in range(7)])
            torch.testing.assert_close(additive_attention(q, k, v, w)[b, i], scores.softmax(0) @ v[b])


def test_dot_product_attention_is_the_librarys() -> None:
    q, k, v = some_input(B, 5, D), some_input(B, 7, D), some_input(B, 7, D) + 1
    torch.testing.assert_close(dot_product_attention(q, k, v, q[0, 0]), F.scaled_dot_product_attention(q, k, v))


@pytest.mark.parametrize("window", [0, 4])
def test_a_window_without_a_centre_is_refused(window: int) -> None:
    with pytest.raises(ValueError, match=f"must be odd to have a centre, got {window}. Use {max(window, 0) + 1}."):
        Convolution(d=D, k=window)
    with pytest.raises(ValueError, match="must be odd"):
        RestrictedAttention(d=D, n_heads=H, r=window)


def test_heads_share_the_width_evenly() -> None:
    with pytest.raises(ValueError, match="multiple of the number of heads, got 6 and 4"):
        FullAttention(d=D, n_heads=4)
