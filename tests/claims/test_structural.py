"""What the paper says of how the model is built, settled by the modules themselves; the catalogue names these tests."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from repro.complexity.measure import Convolution, ElmanCell, Recurrent, chain
from repro.model.config import BASE, Hyper
from repro.model.cost import TextSizes, n_parameters, training_flops
from repro.model.embedding import sinusoids
from repro.model.layers import FeedForward
from repro.model.special_tokens import EOS
from repro.model.transformer import Transformer

V = 23
TINY = Hyper(n_layers=3, d_model=14, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.0)


def recurrences_and_convolutions(module: nn.Module) -> list[str]:
    """The names of PyTorch's own among the parts of a module."""
    kinds = (nn.RNNBase, nn.RNNCellBase, _ConvNd)
    return [name for name, part in module.named_modules() if isinstance(part, kinds)]


def operations(result: Tensor) -> set[str]:
    """The names of all that was done to make it, as autograd calls them."""
    found, waiting = set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [before for before, _ in node.next_functions]
    return {node.name() for node in found}


def logits(model: Transformer, n: int) -> Tensor:
    return model(torch.randint(EOS, V, (2, n)), torch.randint(EOS, V, (2, n)))


def test_the_model_has_neither_recurrence_nor_convolution() -> None:
    model = Transformer(TINY, V)
    assert recurrences_and_convolutions(model) == []
    # nor one made by hand: of more text no product waits longer, and none of them is a convolution
    short, long = logits(model, 5), logits(model, 17)
    assert chain(short) == chain(long) > 0
    assert not [name for name in operations(long) if "onvolution" in name]


def test_a_recurrence_or_convolution_would_be_seen_and_one_made_by_hand_too() -> None:
    for part in (nn.GRU(2, 2), nn.LSTMCell(2, 2), nn.Conv1d(2, 2, 3), Convolution(d=2, k=3)):
        model = Transformer(TINY, V)
        model.add_module("planted", part)
        assert recurrences_and_convolutions(model)[0].startswith("planted")
    recurrent = Recurrent(ElmanCell(2))
    assert [chain(recurrent.mix(torch.ones(1, n, 2))) for n in (5, 17)] == [5, 17]
    assert any("onvolution" in name for name in operations(Convolution(d=2, k=3)(torch.ones(1, 5, 2))))


def test_a_feed_forward_network_is_the_same_at_every_position() -> None:
    # section 3.3: "applied to each position separately and identically"
    feed_forward, x = FeedForward(d_model=7, d_ff=11).double(), torch.randn(3, 5, 7, dtype=torch.float64)
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(feed_forward(x[:, order]), feed_forward(x)[:, order])
    alone = torch.stack([feed_forward(x[:, i]) for i in range(5)], dim=1)
    torch.testing.assert_close(feed_forward(x), alone)


def test_every_layer_has_a_feed_forward_network_of_its_own() -> None:
    networks = [part for part in Transformer(TINY, V).modules() if isinstance(part, FeedForward)]
    assert len(networks) == 3 + 3  # encoder and decoder
    for one, other in itertools.combinations(networks, 2):
        assert not {p.data_ptr() for p in one.parameters()} & {p.data_ptr() for p in other.parameters()}
        weights = [[p for p in network.parameters() if p.dim() == 2] for network in (one, other)]
        assert not any(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_a_dot_product_has_variance_d_k_and_scaling_saves_the_gradient() -> None:
    # section 3.2.1 and its footnote: q.k is a sum of d_k products of mean 0 and variance 1
    random = np.random.default_rng(1)

    def gradient(scores: Any) -> float:
        """Mean size of the softmax's Jacobian, diag(p) - p p^T, over rows of 16 scores."""
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        jacobians = p[:, :, None] * np.eye(16) - p[:, :, None] * p[:, None, :]
        return float(np.linalg.norm(jacobians, axis=(1, 2)).mean())

    sizes = {}
    for d_k in (4, 64, 1024):
        q, k = random.standard_normal((400, 1, d_k)), random.standard_normal((400, 16, d_k))
        scores = (q * k).sum(-1)
        assert scores.mean() == pytest.approx(0, abs=4 * math.sqrt(d_k / scores.size))
        assert scores.var() == pytest.approx(d_k, rel=0.15)
        sizes[d_k] = gradient(scores), gradient(scores / math.sqrt(d_k))
    unscaled = [of_both[0] for of_both in sizes.values()]
    assert unscaled == sorted(unscaled, reverse=True)
    assert sizes[1024][0] < sizes[4][0] / 4
    assert sizes[1024][1] == pytest.approx(sizes[4][1], rel=0.1)


def test_heads_that_share_the_width_cost_the_same() -> None:
    text = TextSizes(sentences=7, source_tokens=190, target_tokens=210)
    hypers = [replace(BASE, n_heads=h, d_k=512 // h, d_v=512 // h) for h in (1, 4, 8, 16, 32)]
    assert len({(n_parameters(one, 40_960), training_flops(one, 40_960, text)) for one in hypers}) == 1


def test_the_feed_forward_network_is_two_convolutions() -> None:
    feed_forward = FeedForward(d_model=7, d_ff=11).double()
    x = torch.randn(3, 5, 7, dtype=torch.float64)  # [B, S, D]
    hidden = torch.conv1d(x.transpose(1, 2), feed_forward[0].weight[:, :, None], feed_forward[0].bias).relu()
    expected = torch.conv1d(hidden, feed_forward[2].weight[:, :, None], feed_forward[2].bias).transpose(1, 2)
    torch.testing.assert_close(feed_forward(x), expected)


def test_wavelengths_are_a_geometric_progression() -> None:
    # of each pair, the angle of one step: its wavelength is 2 pi over that
    sine, cosine = sinusoids(2, 512)[1].double().view(256, 2).unbind(-1)
    wavelengths = 2 * math.pi / torch.atan2(sine, cosine)
    assert wavelengths[0].item() == pytest.approx(2 * math.pi, rel=1e-6)
    ratios = wavelengths[1:] / wavelengths[:-1]
    torch.testing.assert_close(ratios, torch.full_like(ratios, 10_000 ** (2 / 512)), rtol=1e-5, atol=0)
