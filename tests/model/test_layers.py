"""Layers against PyTorch's with the same weights; dropout and the first weights by their statistics."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from repro.model.attention import MultiHeadAttention, SelfAttention
from repro.model.dropout import Dropout
from repro.model.layers import DecoderLayer, EncoderLayer, FeedForward
from repro.model.masks import hidden_bias
from repro.model.prepacked import can_prepack, prepacked

B, S, T = 2, 7, 5
SIZES = {"d_model": 33, "d_ff": 13, "n_heads": 3, "d_k": 11, "d_v": 11, "dropout": 0.0}
LIBRARY = {
    "d_model": 33,
    "nhead": 3,
    "dim_feedforward": 13,
    "dropout": 0.0,
    "layer_norm_eps": 1e-6,
    "norm_first": False,
    "batch_first": True,
    "dtype": torch.float64,
}


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def drawn(layer: nn.Module) -> nn.Module:
    """The layer in float64, biases and norms drawn too: where they are zero, a lost one goes unseen."""
    layer.double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.5)
    return layer


def copy_attention(ours: MultiHeadAttention, library: nn.MultiheadAttention) -> None:
    library.in_proj_weight.copy_(ours.weight)
    library.in_proj_bias.copy_(ours.bias)
    library.out_proj.load_state_dict(ours.output.state_dict())


@torch.no_grad()
def copy_layer(
    ours: EncoderLayer | DecoderLayer, library: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer
) -> None:
    copy_attention(ours.self_attention, library.self_attn)
    if isinstance(ours, DecoderLayer):
        copy_attention(ours.cross_attention, library.multihead_attn)
    library.linear1.load_state_dict(ours.feed_forward[0].state_dict())
    library.linear2.load_state_dict(ours.feed_forward[2].state_dict())
    for i, norm in enumerate(ours.norms, start=1):
        getattr(library, f"norm{i}").load_state_dict(norm.state_dict())


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
    bound = math.sqrt(6 / (64 + 257))  # Glorot uniform
    for linear in (layer[0], layer[2]):
        assert 0.99 * bound < linear.weight.abs().max() <= bound
        assert linear.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)
        assert not linear.bias.any()


def test_the_gradient_of_the_feed_forward_network_is_not_copied() -> None:
    # an activation in place of the first product, which is a view, would cost three copies of [B, S, d_ff] a step
    nodes, names = [FeedForward(d_model=3, d_ff=7)(normal(B, S, 3).float()).grad_fn], set()
    while nodes:
        node = nodes.pop()
        names.add(node.name())
        nodes += [parent for parent, _ in node.next_functions if parent is not None]
    assert "ReluBackward0" in names
    assert "CopySlices" not in names


def test_encoder_layer_equals_the_librarys() -> None:
    ours, library = drawn(EncoderLayer(**SIZES)), nn.TransformerEncoderLayer(**LIBRARY)
    copy_layer(ours, library)
    x = normal(B, S, 33).requires_grad_()
    may_see = torch.arange(S) < torch.tensor([[S], [4]])
    found = ours(x, hidden_bias(may_see, x.dtype)[:, None, None, :])
    # in training mode, so that the library's fast path for inference stays out of it
    expected = library(x, src_key_padding_mask=~may_see)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    chance = normal(B, S, 33)
    torch.testing.assert_close(*(torch.autograd.grad(y, x, chance)[0] for y in (found, expected)))


def test_decoder_layer_equals_the_librarys() -> None:
    ours, library = drawn(DecoderLayer(**SIZES)), nn.TransformerDecoderLayer(**LIBRARY)
    copy_layer(ours, library)
    x, memory = normal(B, T, 33).requires_grad_(), normal(B, S, 33)
    may_see, causal = torch.arange(S) < torch.tensor([[S], [4]]), torch.ones(T, T, dtype=torch.bool).tril()
    found = ours(x, memory, hidden_bias(causal, x.dtype), hidden_bias(may_see, x.dtype)[:, None, None, :])
    expected = library(x, memory, tgt_mask=~causal, memory_key_padding_mask=~may_see)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    chance = normal(B, T, 33)
    torch.testing.assert_close(*(torch.autograd.grad(y, x, chance)[0] for y in (found, expected)))


def test_each_sub_layer_ends_in_its_norm() -> None:
    # post-norm: whatever comes in, what goes out has mean 0 and variance 1 while gain and bias are untouched
    x, no_bias = 100 * torch.randn(B, S, 33) + 7, torch.zeros(())
    for y in (EncoderLayer(**SIZES)(x, no_bias), DecoderLayer(**SIZES)(x, x, no_bias, no_bias)):
        torch.testing.assert_close(y.mean(-1), torch.zeros(B, S), rtol=0, atol=1e-5)
        torch.testing.assert_close(y.var(-1, correction=0), torch.ones(B, S), rtol=1e-3, atol=0)


def test_dropout_keeps_the_mean_and_the_rate() -> None:
    n, p = 400_000, 0.1
    y = Dropout(p)(torch.ones(n))
    zeros = (y == 0).double()
    deviation = math.sqrt(p * (1 - p) / n)
    assert abs(zeros.mean().item() - p) < 4 * deviation
    assert abs(y.double().mean().item() - 1) < 4 * deviation / (1 - p)
    assert y.unique().tolist() == pytest.approx([0, 1 / (1 - p)], rel=1e-5)
    # each of the four numbers that 64 random bits make is dropped as often, whatever befalls its neighbour
    lanes = zeros.view(-1, 4)
    assert (lanes.mean(0) - p).abs().max().item() < 8 * deviation
    assert (torch.corrcoef(lanes.T) - torch.eye(4)).abs().max().item() < 8 / math.sqrt(n)


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
    found = Dropout(p)(x)
    torch.manual_seed(1)
    bits = torch.empty(27, dtype=torch.int64).random_(-(2**63), None)  # four numbers of 16 bits in each
    kept = bits.view(torch.int16)[:105].view(3, 5, 7) >= round(p * 65_536) - 32_768
    scale = torch.tensor(65_536 / (65_536 - round(p * 65_536)))
    assert torch.equal(found, torch.where(kept, x * scale.to(dtype), 0.0).to(dtype))


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 5), (3, 5, 7), (0, 4)])
def test_dropout_takes_any_shape(shape: tuple[int, ...]) -> None:
    y = Dropout(0.5)(torch.ones(shape))
    assert y.shape == shape
    assert set(y.unique().tolist()) <= {0.0, 2.0}


def test_the_gradient_of_dropout_is_its_mask() -> None:
    x = torch.randn(B, S, 33, requires_grad=True)
    y = Dropout(0.3)(x)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x, y)


def test_no_dropout_where_none_is_wanted() -> None:
    x = torch.randn(B, S, 33)
    assert Dropout(0.0)(x) is x
    assert Dropout(0.3).eval()(x) is x


class Masks(nn.Module):
    """Dropout whose masks are written down: of P_drop 0.5 each number is 0 or twice what it was."""

    def __init__(self, n: int, *shape: int) -> None:
        super().__init__()
        self.masks = [2.0 * torch.randint(2, shape).double() for _ in range(n)]
        self.left = iter(self.masks)

    def forward(self, x: Tensor) -> Tensor:
        return x * next(self.left)


def normalised(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    """LayerNorm position by position, from its definition."""
    y = torch.empty_like(x)
    for b, t in itertools.product(*map(range, x.shape[:2])):
        mean = sum(x[b, t]) / x.shape[2]
        variance = sum((x[b, t] - mean) ** 2) / x.shape[2]
        y[b, t] = (x[b, t] - mean) / torch.sqrt(variance + 1e-6) * norm.weight + norm.bias
    return y


def test_dropout_falls_on_each_sub_layers_output_before_it_is_added() -> None:
    # section 5.4: "to the output of each sub-layer, before it is added to the sub-layer input and normalized"
    x, memory, none = normal(B, T, 33), normal(B, S, 33), torch.zeros((), dtype=torch.float64)
    one, two = drawn(EncoderLayer(**SIZES)), drawn(DecoderLayer(**SIZES))

    one.dropout = Masks(2, B, T, 33)
    y = normalised(x + one.dropout.masks[0] * one.self_attention(x, none), one.norms[0])
    y = normalised(y + one.dropout.masks[1] * one.feed_forward(y), one.norms[1])
    torch.testing.assert_close(one(x, none), y, rtol=0, atol=1e-10)

    two.dropout = Masks(3, B, T, 33)
    y = normalised(x + two.dropout.masks[0] * two.self_attention(x, none), two.norms[0])
    y = normalised(y + two.dropout.masks[1] * two.cross_attention(y, memory, none), two.norms[1])
    y = normalised(y + two.dropout.masks[2] * two.feed_forward(y), two.norms[2])
    torch.testing.assert_close(two(x, memory, none, none), y, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05)])
@pytest.mark.parametrize("kind", ["attention", "feed-forward"])
def test_weights_that_were_laid_out_give_the_same(kind: str, dtype: torch.dtype, close: float) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 5, 16)
    part = (
        SelfAttention(d_model=16, n_heads=3, d_k=2, d_v=5) if kind == "attention" else FeedForward(d_model=16, d_ff=7)
    )
    for parameter in part.parameters():
        nn.init.normal_(parameter, std=0.5)
    if not can_prepack(x, dtype):
        pytest.skip(f"this processor lays out no {dtype}")
    with torch.no_grad():
        expected = part(x)
        with prepacked(part, dtype):
            found = part(x)
        assert torch.equal(part(x), expected)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=close, atol=close)
