"""What stands around a sub-layer, by hand; batch normalisation in loops."""

import math

import pytest
import torch
from torch import Tensor, nn

from repro.model.ablations.batch_norm import BatchNormalised, TokenBatchNorm
from repro.model.ablations.norms import NoNorm, NoResidual, PreNorm
from repro.model.ablations.parts import NoFeedForward
from repro.model.config import Hyper
from repro.model.special_tokens import EOS, PAD

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
