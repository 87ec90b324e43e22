"""Relative positions against the three loops of their definition, and static weights against theirs."""

import math

import pytest
import torch
from torch import Tensor

from repro.model.ablations.relative import Relative, RelativePositions
from repro.model.ablations.static import StaticMixing
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.embedding import SinusoidalPositions
from repro.model.masks import hidden_bias
from repro.model.transformer import Transformer
from repro.runs.scales import SCALES

B, H, L, D_K, D_V, CLIP = 2, 3, 7, 5, 11, 2
HYPER = Hyper(n_layers=2, d_model=6, d_ff=5, n_heads=2, d_k=3, d_v=3, dropout=0.0)


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
