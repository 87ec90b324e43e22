"""Attention by hand, by PyTorch's own, and head by head in a loop."""

import math

import pytest
import torch
import torch.nn.functional as F
from model.samples import drawn, is_glorot, normal, same
from torch import Tensor, nn

from repro.model.attention import MultiHeadAttention, SelfAttention, attention, attention_weights
from repro.model.masks import hidden_bias

B, Q, K = 2, 13, 17
SIZES = {"d_model": 7, "n_heads": 3, "d_k": 5, "d_v": 11}


def some_seen(*shape: int) -> Tensor:
    """A mask, True = may be seen; in each row at least the first key."""
    may_see = torch.rand(shape) < 0.5
    may_see[..., 0] = True
    return may_see


def head_by_head(layer: MultiHeadAttention, x: Tensor, memory: Tensor, may_see: Tensor) -> Tensor:
    """Section 3.2.2 as it is read aloud; keys that may not be seen are not there. may_see [B, Q, K]."""
    widths = [layer.n_heads * layer.d_k, layer.n_heads * layer.d_k, layer.n_heads * layer.d_v]
    (w_q, w_k, w_v), (b_q, b_k, b_v) = layer.weight.split(widths), layer.bias.split(widths)
    result = torch.empty_like(x)
    for b in range(len(x)):
        for t in range(x.shape[1]):
            heads, seen = [], memory[b, may_see[b, t]]
            for h in range(layer.n_heads):
                key = slice(h * layer.d_k, (h + 1) * layer.d_k)
                value = slice(h * layer.d_v, (h + 1) * layer.d_v)
                q = w_q[key] @ x[b, t] + b_q[key]
                k, v = seen @ w_k[key].T + b_k[key], seen @ w_v[value].T + b_v[value]
                heads.append((k @ q / math.sqrt(layer.d_k)).softmax(0) @ v)
            result[b, t] = layer.output.weight @ torch.cat(heads) + layer.output.bias
    return result


def test_by_hand() -> None:
    q = torch.tensor([[[[0.0, 2**0.5]]]], dtype=torch.float64)
    k = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]], dtype=torch.float64)
    v = torch.tensor([[[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]], dtype=torch.float64)
    # the scores are 0 and 2^0.5, over sqrt(d_k) 0 and 1, so the weights are (1, e) / (1 + e)
    expected = torch.tensor([1.0, math.e], dtype=torch.float64) / (1 + math.e)
    torch.testing.assert_close(attention_weights(q, k, None)[0, 0, 0], expected)
    torch.testing.assert_close(attention(q, k, v)[0, 0, 0], torch.cat([expected, expected.new_zeros(1)]))


@pytest.mark.parametrize("d_k", [1, 3, 64])
def test_scores_are_divided_by_the_root_of_d_k(d_k: int) -> None:
    # q . k is d_k for the first key and 0 for the second: the odds are e^sqrt(d_k)
    q, k = torch.ones(1, 1, 1, d_k), torch.stack([torch.ones(d_k), torch.zeros(d_k)])[None, None]
    first, second = attention_weights(q, k, None)[0, 0, 0]
    assert math.log(first / second) == pytest.approx(math.sqrt(d_k), rel=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_equals_the_library(masked: bool) -> None:
    q, k, v = normal(B, 3, Q, 5), normal(B, 3, K, 5), normal(B, 3, K, 11)
    mask = some_seen(B, 1, Q, K) if masked else None
    bias = hidden_bias(mask, q.dtype) if mask is not None else None
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    same(attention(q, k, v, bias), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares the fused kernel of a GPU")
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
def test_the_kernel_of_a_gpu_equals_the_plain_products(dtype: torch.dtype, atol: float) -> None:
    q, k, v = normal(B, 3, Q, 8), normal(B, 3, K, 8), normal(B, 3, K, 16)
    may_see = some_seen(B, 1, Q, K)
    may_see[1, 0, 0] = False  # a query that may see nothing
    expected = attention(q, k, v, hidden_bias(may_see, q.dtype))
    found = attention(*(x.to("cuda", dtype) for x in (q, k, v)), hidden_bias(may_see, torch.float32).cuda())
    torch.testing.assert_close(found.cpu().double(), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_hidden_key_stays_hidden_whatever_its_score(dtype: torch.dtype) -> None:
    bias = hidden_bias(torch.tensor([True, False]), dtype)
    huge = torch.tensor(torch.finfo(dtype).max / 8, dtype=dtype)
    assert (bias - huge).isfinite().all()
    assert (bias + torch.stack([-huge, huge])).softmax(0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("kind", [MultiHeadAttention, SelfAttention])
def test_heads_in_a_loop(kind: type[MultiHeadAttention]) -> None:
    layer, x = drawn(kind(**SIZES)), normal(B, Q, 7)
    memory = x if kind is SelfAttention else normal(B, K, 7)
    may_see = some_seen(B, Q, memory.shape[1])
    read = (x,) if kind is SelfAttention else (x, memory)
    same(layer(*read, hidden_bias(may_see, x.dtype).unsqueeze(1)), head_by_head(layer, x, memory, may_see))


def test_recorded_weights_are_those_of_each_head() -> None:
    layer = drawn(MultiHeadAttention(**SIZES))
    x, memory, may_see = normal(B, Q, 7), normal(B, K, 7), some_seen(B, 1, Q, K)
    layer.recorded = []
    plain = layer(x, memory, hidden_bias(may_see, x.dtype))
    (weights,) = layer.recorded
    assert weights.shape == (B, 3, Q, K)
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, 3, Q, dtype=torch.float64))
    assert not weights[~may_see.expand_as(weights)].any()
    _, v = layer.keys_values(memory)
    torch.testing.assert_close(layer.output((weights @ v).transpose(1, 2).flatten(-2)), plain)


@pytest.mark.parametrize(("d_k", "d_v"), [(32, 32), (8, 64)])
@pytest.mark.parametrize("kind", [MultiHeadAttention, SelfAttention])
def test_first_weights(kind: type[MultiHeadAttention], d_k: int, d_v: int) -> None:
    layer, q, k, v = kind(d_model=96, n_heads=3, d_k=d_k, d_v=d_v), 3 * d_k, 3 * d_k, 3 * d_v
    # of self-attention one matrix makes q, k and v; of attention to the source one makes q, and one k and v
    parts = [(layer.weight, q + k + v)] if kind is SelfAttention else [(layer.weight[:q], q), (layer.weight[q:], k + v)]
    for weight, fan_out in parts:
        assert is_glorot(weight, 96, fan_out)
    assert is_glorot(layer.output.weight, v, 96)
    assert not layer.bias.any()
    assert not layer.output.bias.any()


# Dropout of the weights, and another way for queries to meet keys


class Halves(nn.Module):
    """Stands for dropout at rate 1/2: drops the first key of two, and doubles the other."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.tensor([0.0, 2.0], dtype=x.dtype)


def test_dropout_falls_on_the_weights_after_the_softmax() -> None:
    q = torch.tensor([[[[0.0, 2**0.5]]]], dtype=torch.float64)
    k = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]], dtype=torch.float64)
    v = torch.tensor([[[[3.0], [5.0]]]], dtype=torch.float64)
    # weights (1, e) / (1 + e), of which the second remains, twice: 2 * 5 e / (1 + e)
    found = attention(q, k, v, None, Halves())
    assert found.item() == pytest.approx(10 * math.e / (1 + math.e), rel=1e-12)


def test_dropout_of_weights_is_drawn_in_training_only_and_not_at_rate_0() -> None:
    x, memory = torch.randn(B, Q, 7), torch.randn(B, K, 7)
    plain, dropping = MultiHeadAttention(**SIZES), MultiHeadAttention(**SIZES, dropout=0.5)
    dropping.load_state_dict(plain.state_dict())
    before = torch.get_rng_state()
    expected = plain(x, memory)
    assert torch.equal(torch.get_rng_state(), before), "a number was drawn at rate 0"
    assert torch.equal(dropping.eval()(x, memory), expected)
    dropping.train()
    assert not torch.equal(dropping(x, memory), expected)
