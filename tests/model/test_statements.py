"""What teaching texts say of the Transformer, as far as arithmetic settles it, on the model's own parts.

Which text says it is of no account here; what is right stands in the name of the test.
"""

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from model.samples import normal, same
from torch import Tensor, nn
from torch.func import jacrev

from repro.complexity.measure import chain
from repro.model.ablations.codes import OneHotPositions, ScalarPositions
from repro.model.ablations.norms import NoResidual, PreNorm
from repro.model.ablations.selection import Hard, Sampled, StraightThrough
from repro.model.ablations.sharing import IdenticalHeads, QueriesAreKeys, start_alike
from repro.model.attention import MultiHeadAttention, ScaledDotProduct, attention_weights, scaled_scores
from repro.model.build import build
from repro.model.config import Hyper
from repro.model.cost import TextSizes, n_parameters, training_flops
from repro.model.counted import counted_flops, counted_parameters
from repro.model.embedding import sinusoids
from repro.model.layers import DecoderLayer, EncoderLayer, PostNorm
from repro.model.loss import smoothed_cross_entropy
from repro.model.masks import hidden_bias
from repro.model.rivals.attention_rnn import SoftAlignment
from repro.model.rivals.convs2s import ConvS2S
from repro.model.transformer import Transformer
from repro.runs.scales import SCALES

TINY = Hyper(n_layers=2, d_model=14, d_ff=11, n_heads=7, d_k=2, d_v=2, dropout=0.0)
LAYER = {"d_model": 6, "d_ff": 5, "n_heads": 2, "d_k": 3, "d_v": 3, "dropout": 0.0}


# positions


def test_the_dimension_alone_sets_the_wavelength() -> None:
    d, pairs = 64, sinusoids(200, 64).double().unflatten(1, (-1, 2))
    waves = torch.complex(pairs[..., 1], pairs[..., 0])  # exp(i angle)
    turned = (waves[1:] / waves[:-1]).angle()  # from each position to the next
    rates = 10_000.0 ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    same(turned, rates.expand(199, -1), atol=1e-5)


def test_a_shift_is_linear_for_sinusoids_and_one_hot_codes_and_affine_for_a_number() -> None:
    n, d, k = 40, 64, 3
    code = sinusoids(n, d).double()
    angle = k * 10_000.0 ** -(torch.arange(0, d, 2, dtype=torch.float64) / d)
    turns = [torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]], dtype=torch.float64) for a in angle]
    same(code[:-k] @ torch.block_diag(*turns).T, code[k:], atol=1e-5)
    one_hot = OneHotPositions(d)(0, n).double()
    same(one_hot[:-k] @ torch.eye(d, dtype=torch.float64).roll(k, dims=1), one_hot[k:])
    number = ScalarPositions(d)(0, n).double()
    same(number[:-k] + number[k], number[k:])  # of which no matrix is capable: it leaves 0 where it is
    assert not number[0].any()
    assert number[k].any()


def test_products_of_sinusoids_know_the_distance_and_a_number_grows() -> None:
    code, number = sinusoids(40, 64).double(), ScalarPositions(64)(0, 40).double()
    products = code @ code.T
    for distance in range(40):
        along = products.diagonal(distance)
        same(along, along[:1].expand_as(along), atol=1e-4)
    assert code.abs().max() <= 1
    assert (number @ number.T).diagonal(1).std() > 0


def test_sums_of_tokens_and_codes_hold_both_where_these_lie_apart_and_are_sums_of_maps_everywhere() -> None:
    token, code = normal(9, 5), normal(9, 3)
    side_by_side = torch.cat([token, code], dim=1)
    wide_token, wide_code = nn.functional.pad(token, (0, 3)), nn.functional.pad(code, (5, 0))
    same(wide_token + wide_code, side_by_side)  # a table of embeddings may learn to leave room
    weight = normal(8, 6)
    same(side_by_side @ weight, token @ weight[:5] + code @ weight[5:])  # concatenation adds, after maps of their own


# the loss


@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_smoothing_is_the_mean_over_noisy_labels_in_loss_and_gradient(epsilon: float) -> None:
    hidden, weight, gold = normal(3, 5).requires_grad_(), normal(7, 5).requires_grad_(), torch.tensor([1, 4, 6])
    smoothed, _ = smoothed_cross_entropy(hidden, weight, gold, epsilon)
    share = torch.full((3, 7), epsilon / 6, dtype=torch.float64)  # how often noise gives each of the other labels,
    share[torch.arange(3), gold] = 1 - epsilon  # and leaves the gold one
    noisy = -(share * (hidden @ weight.T).log_softmax(dim=1)).sum()
    same(smoothed, noisy)
    same(*(torch.autograd.grad(loss, (hidden, weight)) for loss in (smoothed, noisy)))


# sub-layers


def test_what_the_decoder_has_beyond_the_encoder_is_attention_to_the_source_which_is_not_masked() -> None:
    model = Transformer(TINY, 23)
    assert [*dict(model.decoder[0].named_children())][:3] == ["self_attention", "cross_attention", "feed_forward"]
    maps = model.attention_maps(torch.randint(2, 23, (1, 5)), torch.randint(2, 23, (1, 3)))
    own, other = maps["decoder.0.self_attention"], maps["decoder.0.cross_attention"]
    assert (own.shape[-2:], other.shape[-2:]) == ((3, 3), (3, 5))
    assert not own.triu(1).any()
    assert (other > 0).all()


def test_the_output_matrix_is_h_d_v_by_d_model() -> None:
    assert MultiHeadAttention(d_model=7, n_heads=3, d_k=5, d_v=11).output.weight.T.shape == (3 * 11, 7)


def test_six_tokens_of_300_by_300_x_64_give_6_x_64_and_keys_are_as_many_as_values() -> None:
    attention = MultiHeadAttention(d_model=300, n_heads=1, d_k=64, d_v=13)
    k, v = attention.keys_values(torch.randn(1, 4, 300))
    assert attention.queries(torch.randn(1, 6, 300)).shape == (1, 1, 6, 64)
    assert (k.shape, v.shape) == ((1, 1, 4, 64), (1, 1, 4, 13))
    assert attention(torch.randn(1, 6, 300), torch.randn(1, 4, 300)).shape == (1, 6, 300)


class All(nn.Module):
    """Dropout at rate 1."""

    def forward(self, x: Tensor) -> Tensor:
        return 0 * x


def test_residual_dropout_stands_before_sum_and_norm() -> None:
    layer, x = EncoderLayer(**LAYER), torch.randn(2, 4, 6)  # type: ignore[arg-type]
    layer.dropout = All()  # type: ignore[assignment]
    assert torch.equal(layer(x, None), layer.norms[1](layer.norms[0](x)))


def silenced(around: type[PostNorm]) -> EncoderLayer:
    """A layer whose sub-layers say nothing."""
    layer = EncoderLayer(**LAYER, around=around)  # type: ignore[arg-type]
    for linear in (layer.self_attention.output, layer.feed_forward[2]):  # type: ignore[index]
        for parameter in linear.parameters():
            nn.init.zeros_(parameter)
    return layer


def test_a_layer_can_fall_back_to_the_identity_in_pre_norm_and_to_a_norm_in_post_norm() -> None:
    x = torch.randn(2, 4, 6)
    assert torch.equal(silenced(PreNorm)(x, None), x)
    assert torch.equal(silenced(PostNorm)(x, None), nn.LayerNorm(6, eps=1e-6)(nn.LayerNorm(6, eps=1e-6)(x)))


def test_a_block_ends_in_a_norm_in_post_norm_only() -> None:
    x, source = 3 * torch.randn(2, 4, 6), torch.randn(2, 5, 6)
    for around, ends in ((PostNorm, True), (PreNorm, False)):
        encoder, decoder = (kind(**LAYER, around=around) for kind in (EncoderLayer, DecoderLayer))  # type: ignore[arg-type]
        for made in (encoder(x, None), decoder(x, source, None, None)):
            spread = made.var(dim=-1, correction=0)
            assert torch.allclose(spread, torch.ones(2, 4), atol=1e-4) == ends


# depth


def apart(x: Tensor) -> float:
    """Of x [B, T, D] the share that differs from position to position; 0 at rank one (Dong et al. 2021)."""
    return ((x - x.mean(dim=1, keepdim=True)).norm() / x.norm()).item()


def through_six_layers(around: type[PostNorm]) -> tuple[float, float]:
    """Of a stack as it begins, means over 8 draws of sentences of 5: a position's own share of the (squared) gradient
    that its output sends back to all five, and how far the outputs are apart.
    """
    sizes: dict[str, Any] = {"d_model": 16, "d_ff": 64, "n_heads": 4, "d_k": 4, "d_v": 4, "dropout": 0.0}
    own = outputs_apart = 0.0
    for _ in range(8):
        x = normal(2, 5, 16).requires_grad_()
        out = x
        for layer in [EncoderLayer(**sizes, around=around).double() for _ in range(6)]:
            out = layer(out, None)
        (gradient,) = torch.autograd.grad((out[:, 0] * normal(2, 16)).sum(), x)
        own += (gradient[:, 0].norm() / gradient.norm()).item() ** 2 / 8
        outputs_apart += apart(out.detach()) / 8
    return own, outputs_apart


def test_residuals_bring_the_gradient_back_to_its_own_position_and_keep_positions_apart() -> None:
    own, outputs_apart = through_six_layers(PostNorm)
    assert own > 0.35
    assert outputs_apart > 0.2
    own, outputs_apart = through_six_layers(NoResidual)
    assert own == pytest.approx(1 / 5, abs=0.1)  # as much as to any other
    assert outputs_apart < 1e-3


def test_attention_alone_makes_all_positions_alike_ever_faster() -> None:
    bare = with_residuals = normal(1, 7, 16)
    shares = [apart(bare)]
    for _ in range(4):
        attention = MultiHeadAttention(d_model=16, n_heads=4, d_k=4, d_v=4).double()
        bare, with_residuals = attention(bare, bare), with_residuals + attention(with_residuals, with_residuals)
        shares.append(apart(bare))
    assert shares[3] < 1e-2 * shares[2]
    assert shares[4] < 1e-2 * shares[3]
    assert apart(with_residuals) > 0.1


def target_tokens_seen(system: Any) -> set[int]:
    """How far back the decoder's last position sees what was written, of 40 tokens."""
    model = build(system, TINY, 23).double()
    source, written = torch.full((1, 4), 7), torch.randint(2, 23, (1, 40))
    memory = model.encode(source)
    last = model.decode(written, memory, source)[0, -1]
    changed = [written.index_fill(1, torch.tensor([i]), int(written[0, i] - 1) % 21 + 2) for i in range(40)]
    return {
        39 - i for i, other in enumerate(changed) if not torch.equal(model.decode(other, memory, source)[0, -1], last)
    }


def test_a_convolution_cannot_copy_what_was_written_beyond_its_kernels_and_attention_can() -> None:
    assert target_tokens_seen(Transformer) == set(range(40))
    reach = max(target_tokens_seen(ConvS2S))
    assert target_tokens_seen(ConvS2S) == set(range(reach + 1))
    assert reach == 2 * TINY.n_layers * (3 - 1)  # twice as many blocks as layers, kernels of 3, all of them behind


# softmax


@pytest.mark.parametrize(("a", "digits"), [(1, "0.5761168847658291"), (10, "0.999909208384341"), (100, "1.0")])
def test_softmax_of_a_a_2a(a: int, digits: str) -> None:
    found = torch.tensor([a, a, 2 * a], dtype=torch.float64).softmax(0)[2].item()
    assert f"{found:.{len(digits) - 2}f}" == digits


@pytest.mark.parametrize("a", [0.0, 1.0, 1e6, -1e300])
def test_gaps_saturate_softmax_and_size_does_not(a: float) -> None:
    assert torch.tensor([a, a, a], dtype=torch.float64).softmax(0).tolist() == [1 / 3] * 3
    assert torch.tensor([a, a, a + 1e301], dtype=torch.float64).softmax(0).tolist() == [0, 0, 1]


def test_the_jacobian_of_softmax_and_that_it_vanishes_at_one_hot() -> None:
    x = normal(5)
    y = x.softmax(0)
    same(jacrev(lambda x: x.softmax(0))(x), torch.diag(y) - torch.outer(y, y))
    assert not jacrev(lambda x: x.softmax(0))(torch.tensor([0.0, 0.0, 1e4], dtype=torch.float64)).any()


@pytest.mark.parametrize("d_k", [2, 3, 5])
def test_a_product_of_independent_unit_entries_has_variance_d_k_and_scaled_1(d_k: int) -> None:
    every = torch.tensor([*itertools.product([-1.0, 1.0], repeat=d_k)], dtype=torch.float64)  # mean 0, variance 1
    products = every @ every.T  # all pairs of such vectors, each as likely
    assert products.var(correction=0).item() == d_k
    assert scaled_scores(every[None, None], every[None, None]).var(correction=0).item() == pytest.approx(1, rel=1e-15)
    assert (every * every).sum(dim=1).var(correction=0).item() == 0  # of a vector with itself it has none


# heads and projections


def test_where_queries_are_keys_scores_are_symmetric_and_weights_are_not() -> None:
    layer = QueriesAreKeys(d_model=7, n_heads=3, d_k=5, d_v=11).double()
    nn.init.normal_(layer.bias)
    q, k, _ = layer.project(normal(2, 13, 7))
    scores, weights = scaled_scores(q, k), attention_weights(q, k, None)
    same(scores, scores.transpose(-2, -1))
    assert (weights - weights.transpose(-2, -1)).abs().max() > 1e-3


def prefers_the_next(scores: Tensor) -> bool:
    """Of words a, b, c: whether a looks at b, b at c, and c at a."""
    return scores.argmax(dim=-1).tolist() == [1, 2, 0]


def test_a_shared_matrix_cannot_hold_who_follows_whom_and_two_can() -> None:
    words = torch.eye(3, dtype=torch.float64)  # without positions
    assert prefers_the_next((words @ torch.eye(3).double().roll(1, dims=1)) @ words.T)
    # s(a, b) > s(a, c) = s(c, a) > s(c, b) = s(b, c) > s(b, a) = s(a, b) is a contradiction: none of many drawn ones
    keys = normal(2_000, 3, 5)
    assert not any(map(prefers_the_next, keys @ keys.transpose(-2, -1)))
    assert any(map(prefers_the_next, keys @ normal(2_000, 3, 5).transpose(-2, -1)))


def trained(model: Any, updates: int) -> Any:
    """After so many updates on random text, in float64."""
    model.double().train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.98), eps=1e-9)
    for step in range(updates):
        torch.manual_seed(step)
        source, decoder_in, target = torch.randint(1, 23, (3, 4, 6)).unbind()
        hidden = model.decode(decoder_in, model.encode(source), source)
        loss, _ = smoothed_cross_entropy(hidden.flatten(0, 1), model.embedding.weight, target.flatten(), 0.1)
        optimizer.zero_grad()
        (loss / target.numel()).backward()
        optimizer.step()
    return model


def heads_apart(model: nn.Module) -> float:
    """How far the heads of a layer are from the first, at most."""
    parts = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    rows = [rows.unflatten(0, (part.n_heads, -1)) for part in parts for rows in part.weight.chunk(3)]
    return max((of_heads - of_heads[:1]).abs().max().item() for of_heads in rows)


def test_heads_that_start_alike_stay_alike_and_are_one() -> None:
    model = trained(IdenticalHeads(TINY, 23), 20)
    assert heads_apart(model) < 1e-14
    attention = model.encoder[0].self_attention
    one = type(attention)(d_model=14, n_heads=1, d_k=2, d_v=2).double()
    with torch.no_grad():
        for name in ("weight", "bias"):
            rows = getattr(attention, name).unflatten(0, (3, 7, 2))[:, 0].flatten(0, 1)
            getattr(one, name).copy_(rows)
        one.output.weight.copy_(attention.output.weight.unflatten(1, (7, 2)).sum(dim=1))
        one.output.bias.copy_(attention.output.bias)
    x = normal(2, 5, 14)
    same(attention(x), one(x))


def test_heads_that_start_alike_but_for_the_output_matrix_part_at_once() -> None:
    model = Transformer(TINY, 23)
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            start_alike(part, output=False)
    assert heads_apart(model) == 0
    assert heads_apart(trained(model, 2)) > 1e-3


def asking(model: nn.Module) -> Tensor:
    """W^Q and W^K of all attentions."""
    parts = [part for part in model.modules() if isinstance(part, MultiHeadAttention)]
    return torch.cat([part.weight[: 2 * part.d_queries].detach().flatten() for part in parts])


@pytest.mark.parametrize(("mix", "moves"), [(Hard, False), (StraightThrough, True), (Sampled, True)])
def test_hard_attention_is_not_trained_by_its_gradient_but_by_one_that_goes_straight_through(
    mix: Any, moves: bool
) -> None:
    model = Transformer(TINY, 23, mix=mix).double()
    before, values = asking(model), model.encoder[0].self_attention.weight[-1].detach().clone()
    trained(model, 3)
    assert torch.equal(asking(model), before) != moves
    assert not torch.equal(model.encoder[0].self_attention.weight[-1], values)


def test_the_mean_of_hard_attention_is_soft_attention() -> None:
    q, k, v = normal(1, 1, 3, 5), normal(1, 1, 7, 5), normal(1, 1, 7, 2)
    bias, n = hidden_bias(torch.arange(7) < 6, torch.float64), 20_000
    of = {"n_heads": 1, "d_k": 5, "d_v": 2}
    drawn = Sampled(**of)(q.expand(n, -1, -1, -1), k, v, bias)
    spread = drawn.std(dim=0) / n**0.5
    assert ((drawn.mean(dim=0) - ScaledDotProduct(**of)(q, k, v, bias)[0]).abs() < 5 * spread).all()


# cost


def waits(system: Any, n: int) -> int:
    """Products that wait for each other until n target tokens are read."""
    model = build(system, SCALES["smoke"].base, 23)
    source, decoder_in = torch.randint(2, 23, (1, 3)), torch.randint(2, 23, (1, n))
    return chain(model.decode(decoder_in, model.encode(source), source)[:, -1])


def test_soft_alignment_waits_for_each_step_and_the_transformer_for_none() -> None:
    soft = [waits(SoftAlignment, n) for n in (5, 6, 7, 17)]
    assert soft[1] > soft[0]
    assert [one - soft[0] for one in soft] == [step * (soft[1] - soft[0]) for step in (0, 1, 2, 12)]
    assert waits(None, 5) == waits(None, 17)


@pytest.mark.parametrize("h", [1, 2, 4, 8, 16, 32])
def test_heads_cost_neither_parameters_nor_operations(h: int) -> None:
    base, text = SCALES["laptop"].base, TextSizes(sentences=3, source_tokens=33, target_tokens=39)
    row = replace(base, n_heads=h, d_k=base.d_model // h, d_v=base.d_model // h)
    assert n_parameters(row, 600) == n_parameters(base, 600) == counted_parameters(Transformer, row, 600)
    assert training_flops(row, 600, text) == training_flops(base, 600, text)
    assert counted_flops(Transformer, row, 600, 1, 11, 13) == counted_flops(Transformer, base, 600, 1, 11, 13)
