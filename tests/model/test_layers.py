"""Layers by their definition; dropout and the first weights by their statistics."""

import pytest
import torch
from model.samples import drawn, is_glorot, normal, same
from torch import Tensor, nn

from repro.model.embedding import Dropout
from repro.model.layers import DecoderLayer, EncoderLayer, FeedForward

B, S, T = 2, 7, 5
SIZES = {"d_model": 33, "d_ff": 13, "n_heads": 3, "d_k": 11, "d_v": 11, "dropout": 0.0}


def test_feed_forward_by_hand() -> None:
    layer = FeedForward(d_model=1, d_ff=2)
    with torch.no_grad():
        layer[0].weight.copy_(torch.tensor([[1.0], [-1.0]]))
        layer[0].bias.copy_(torch.tensor([1.0, 1.0]))
        layer[2].weight.copy_(torch.tensor([[10.0, 100.0]]))
        layer[2].bias.fill_(0.5)
    # x = 3: max(0, 4) 10 + max(0, -2) 100 + 0.5; x = -3: max(0, -2) 10 + max(0, 4) 100 + 0.5
    assert layer(torch.tensor([[3.0], [-3.0]])).tolist() == [[40.5], [400.5]]


def test_first_weights_of_the_feed_forward_network() -> None:
    layer = FeedForward(d_model=64, d_ff=257)
    for linear in (layer[0], layer[2]):
        assert is_glorot(linear.weight, 64, 257, close=0.02)
        assert not linear.bias.any()


def test_each_sub_layer_ends_in_its_norm() -> None:
    # post-norm: whatever comes in, what goes out has mean 0 and variance 1 while gain and bias are untouched
    x, no_bias = 100 * torch.randn(B, S, 33) + 7, torch.zeros(())
    for y in (EncoderLayer(**SIZES)(x, no_bias), DecoderLayer(**SIZES)(x, x, no_bias, no_bias)):
        torch.testing.assert_close(y.mean(-1), torch.zeros(B, S), rtol=0, atol=1e-5)
        torch.testing.assert_close(y.var(-1, correction=0), torch.ones(B, S), rtol=1e-3, atol=0)


@pytest.mark.parametrize("p", [1.0, 0.999995, -0.1])
def test_dropout_keeps_something(p: float) -> None:
    with pytest.raises(ValueError, match=f"expected a probability below 0.999992, got {p}"):
        Dropout(p)
    Dropout(0.99999)(torch.ones(8))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.99])
def test_dropout_keeps_what_reaches_the_threshold(p: float, dtype: torch.dtype) -> None:
    x = torch.randn(3, 5, 7, dtype=dtype)
    torch.manual_seed(1)
    bits = torch.empty(27, dtype=torch.int64).random_(-(2**63), None)  # four numbers of 16 bits in each
    numbers = bits.view(torch.int16)[:105].view(3, 5, 7)
    for rate in (p, (numbers[0, 0, 0].item() + 32_768) / 65_536):  # the second is the threshold of a drawn number
        torch.manual_seed(1)
        found, dropped = Dropout(rate)(x), round(rate * 65_536)
        scale = torch.tensor(65_536 / (65_536 - dropped))
        assert torch.equal(found, torch.where(numbers >= dropped - 32_768, x * scale.to(dtype), 0.0).to(dtype))


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 5), (3, 5, 7), (0, 4)])
def test_dropout_takes_any_shape_and_its_gradient_is_its_mask(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape, requires_grad=True)
    y = Dropout(0.5)(x)
    assert y.shape == shape
    assert set(y.unique().tolist()) <= {0.0, 2.0}
    assert torch.equal(*torch.autograd.grad(y.sum(), x), y)
    assert Dropout(0.0)(x) is Dropout(0.3).eval()(x) is x


class Masks(nn.Module):
    """Dropout whose masks are written down: of P_drop 0.5 each number is 0 or twice what it was."""

    def __init__(self, n: int, *shape: int) -> None:
        super().__init__()
        self.masks = [2.0 * torch.randint(2, shape).double() for _ in range(n)]
        self.left = iter(self.masks)

    def forward(self, x: Tensor) -> Tensor:
        return x * next(self.left)


def test_dropout_falls_on_each_sub_layers_output_before_it_is_added() -> None:
    # section 5.4: "to the output of each sub-layer, before it is added to the sub-layer input and normalized"
    x, memory, none = normal(B, T, 33), normal(B, S, 33), torch.zeros((), dtype=torch.float64)
    one, two = drawn(EncoderLayer(**SIZES)), drawn(DecoderLayer(**SIZES))
    assert {norm.eps for norm in (*one.norms, *two.norms)} == {1e-6}

    one.dropout = Masks(2, B, T, 33)
    y = one.norms[0](x + one.dropout.masks[0] * one.self_attention(x, none))
    y = one.norms[1](y + one.dropout.masks[1] * one.feed_forward(y))
    same(one(x, none), y, atol=1e-10)

    two.dropout = Masks(3, B, T, 33)
    y = two.norms[0](x + two.dropout.masks[0] * two.self_attention(x, none))
    y = two.norms[1](y + two.dropout.masks[1] * two.cross_attention(y, memory, none))
    y = two.norms[2](y + two.dropout.masks[2] * two.feed_forward(y))
    same(two(x, memory, none, none), y, atol=1e-10)
