"""What stands around a sub-layer, who sees whom and where, by hand and by loops."""

import math

import pytest
import torch
from torch import Tensor, nn

from repro.model.ablations.batch_norm import BatchNormalised, TokenBatchNorm
from repro.model.ablations.codes import FastSinusoids, NoPositions, OneHotPositions, ScalarPositions, SlowSinusoids
from repro.model.ablations.norms import NoNorm, NoResidual, PreNorm
from repro.model.ablations.parts import NoFeedForward, NoMask
from repro.model.ablations.reach import Restricted
from repro.model.ablations.relative import Relative, RelativePositions
from repro.model.ablations.static import StaticMixing
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.embedding import SinusoidalPositions, sinusoids
from repro.model.masks import hidden_bias
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer
from repro.runs.scales import SCALES

HYPER = Hyper(n_layers=2, d_model=6, d_ff=5, n_heads=2, d_k=3, d_v=3, dropout=0.0)
X = torch.tensor([3.0, -3.0])  # whose norm is (1, -1)


def double(x: Tensor) -> Tensor:
    return 2 * x


def third(x: Tensor) -> Tensor:
    """Stands for dropout."""
    return x / 3


@pytest.mark.parametrize(
    ("around", "expected"),
    [
        (PreNorm, 3 + 2 * 1 / 3),  # x + f(LN x)
        (NoNorm, 3 + 2 * 3 / 3),
        (NoResidual, 1.0),  # LN(2 x / 3)
    ],
)
def test_around_by_hand(around: type[PreNorm], expected: float) -> None:
    found = around.around(X, double, around.norm(2), third)
    torch.testing.assert_close(found, torch.tensor([expected, -expected]), rtol=0, atol=1e-5)


def test_batch_norm_in_loops() -> None:
    norm, x = TokenBatchNorm(3).double(), torch.randn(2, 5, 3, dtype=torch.float64)
    nn.init.normal_(norm.gain)
    nn.init.normal_(norm.bias)
    real = torch.tensor([[True] * 5, [True, True, False, False, False]])
    norm.real = real.unsqueeze(-1)
    found = norm(x)
    for d in range(3):
        cells = [x[b, i, d].item() for b in range(2) for i in range(5) if real[b, i]]
        mean = sum(cells) / 7
        variance = sum((cell - mean) ** 2 for cell in cells) / 7
        expected = norm.gain[d] * (x[..., d] - mean) / math.sqrt(variance + 1e-6) + norm.bias[d]
        torch.testing.assert_close(found[..., d], expected, rtol=0, atol=1e-12)
        assert norm.mean[d].item() == pytest.approx(0.1 * mean, rel=1e-12)
        assert norm.variance[d].item() == pytest.approx(0.9 + 0.1 * variance, rel=1e-12)
    evaluated = norm.eval()(x)
    expected = norm.gain * (x - norm.mean) / (norm.variance + 1e-6).sqrt() + norm.bias
    torch.testing.assert_close(evaluated, expected, rtol=0, atol=1e-12)


def test_a_model_tells_its_norms_which_tokens_are_real() -> None:
    model = BatchNormalised(HYPER, 23)
    source, decoder_in = torch.tensor([[2, 3, 1], [4, 1, PAD]]), torch.tensor([[PAD, 5, 6, 7], [PAD, 8, EOS, PAD]])
    model.decode(decoder_in, model.encode(source), source)
    norms = {name: part.real for name, part in model.named_modules() if isinstance(part, TokenBatchNorm)}
    assert len(norms) == 2 * (2 + 3)
    for name, real in norms.items():
        expected = (
            source != PAD if name.startswith("encoder") else torch.tensor([[True] * 4, [True, True, False, False]])
        )
        assert real is not None
        assert torch.equal(real.squeeze(-1), expected)


def test_without_a_feed_forward_network_attention_alone_is_normalised() -> None:
    model = NoFeedForward(HYPER, 23)
    assert sum(isinstance(part, nn.LayerNorm) for part in model.modules()) == 2 * (1 + 2)
    x = torch.randn(1, 4, 6)
    layer = model.encoder[0]
    expected = layer.norms[0](x + layer.self_attention(x))  # type: ignore[index, operator]
    assert torch.equal(layer(x, None), expected)


# Positions


def test_codes_by_hand() -> None:
    assert not NoPositions(3)(5, 7).any()
    assert NoPositions(3)(5, 7).shape == (2, 3)
    assert ScalarPositions(3)(63, 65).tolist() == [[63 / 128, 0, 0], [0.5, 0, 0]]
    assert OneHotPositions(3)(1, 5).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]


def test_halves_of_sinusoids_are_what_they_say_and_make_the_whole() -> None:
    fast, slow, whole = (kind(8)(0, 300) for kind in (FastSinusoids, SlowSinusoids, SinusoidalPositions))
    assert torch.equal(fast[:, :4], sinusoids(300, 8)[:, :4])
    assert not fast[:, 4:].any()
    assert not slow[:, :4].any()
    assert torch.equal(fast + slow, whole)


# Who sees whom


def test_the_encoder_sees_half_of_them_on_each_side_and_the_decoder_the_last() -> None:
    model, source, decoder_in = Restricted(HYPER, 23, r=5), torch.arange(2, 13)[None], torch.arange(2, 11)[None]
    maps = model.attention_maps(source, decoder_in)
    near = (torch.arange(11) - torch.arange(11)[:, None]).abs() <= 2
    last = torch.tensor([[i - 4 <= j <= i for j in range(9)] for i in range(9)])
    for layer in range(2):
        assert torch.equal((maps[f"encoder.{layer}.self_attention"] > 0).all(1)[0], near)
        assert torch.equal((maps[f"decoder.{layer}.self_attention"] > 0).all(1)[0], last)
        assert (maps[f"decoder.{layer}.cross_attention"] > 0).all(), "the source is seen whole"


def test_without_a_mask_all_is_seen_but_what_a_batch_has_behind_a_shorter_sentence() -> None:
    weights = NoMask(HYPER, 23).attention_maps(torch.tensor([[2, 3]]), torch.tensor([[PAD, 2, 3, EOS, PAD]]))
    assert (weights["decoder.0.self_attention"] > 0).all(1)[0, 0].tolist() == [True, True, True, False, False]


# Distances, and weights by place


B, H, L, D_K, D_V, CLIP = 2, 3, 7, 5, 11, 2


def test_in_three_loops() -> None:
    mixing = Relative(n_heads=H, d_k=D_K, d_v=D_V, clip=CLIP).double()
    q, k = torch.randn(2, B, H, L, D_K, dtype=torch.float64).unbind()
    v = torch.randn(B, H, L, D_V, dtype=torch.float64)
    may_see = (torch.rand(L, L) < 0.7) | torch.eye(L, dtype=torch.bool)
    found = mixing(q, k, v, hidden_bias(may_see, torch.float64))
    for b, h, i in torch.cartesian_prod(*map(torch.arange, (B, H, L))).tolist():
        scores, values = [], []
        for j in range(L):
            c = min(CLIP, max(-CLIP, j - i)) + CLIP
            if may_see[i, j]:
                scores.append(q[b, h, i] @ (k[b, h, j] + mixing.keys[c]) / math.sqrt(D_K))
                values.append(v[b, h, j] + mixing.values[c])
        expected = torch.stack(scores).softmax(0) @ torch.stack(values)
        torch.testing.assert_close(found[b, h, i], expected, rtol=0, atol=1e-12)


def memory(model: torch.nn.Module, source: Tensor) -> Tensor:
    found: Tensor = model.encode(source)  # type: ignore[operator]
    return found


def test_order_is_told_by_distances_alone() -> None:
    model = RelativePositions(HYPER, 23).double().eval()
    source = torch.arange(2, 9)[None]
    assert not torch.allclose(memory(model, source.flip(1)).flip(1), memory(model, source))
    for layer in model.encoder:
        mixing: Relative = layer.self_attention.mixing  # type: ignore[union-attr, assignment]
        torch.nn.init.zeros_(mixing.keys)
        torch.nn.init.zeros_(mixing.values)
    torch.testing.assert_close(memory(model, source.flip(1)).flip(1), memory(model, source), rtol=0, atol=1e-12)
    assert isinstance(RelativePositions(HYPER, 23, positions=SinusoidalPositions).source_positions, SinusoidalPositions)


def test_static_weights_ignore_what_is_read() -> None:
    model = StaticMixing(HYPER, 23)
    maps = [model.attention_maps(torch.randint(2, 23, (1, 5)), torch.randint(2, 23, (1, 4))) for _ in range(2)]
    for name in maps[0]:
        assert torch.equal(maps[0][name], maps[1][name]) == ("self" in name)
    places = model.encoder[0].self_attention.places[:, :, :5]  # type: ignore[union-attr, index]
    expected = (places[0] @ places[1].transpose(-2, -1) / 3**0.5).softmax(dim=-1)
    torch.testing.assert_close(maps[0]["encoder.0.self_attention"][0], expected)


def test_the_first_scores_of_places_spread_as_those_of_tokens() -> None:
    """W^Q is Glorot uniform beside W^K and W^V: variance 2 / 4 D, times D numbers of unit variance."""
    laptop = SCALES["laptop"].base
    ours, base = (system(laptop, 23).encoder[0].self_attention for system in (StaticMixing, Transformer))
    for of_queries_or_keys in (*ours.places, *base.project(torch.randn(8, 512, laptop.d_model))[:2]):
        assert of_queries_or_keys.std().item() == pytest.approx(0.5**0.5, rel=0.03)


def test_places_beyond_the_table_are_refused() -> None:
    with pytest.raises(ValueError, match="Static weights end at place 512, but 513 tokens were read"):
        memory(StaticMixing(HYPER, 23), torch.full((1, LEARNED_POSITIONS + 1), 2))
