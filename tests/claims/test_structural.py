"""What the paper says of how the model is built, settled by the modules themselves; the catalogue names these tests."""

import itertools

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from repro.complexity.layers import Convolution, ElmanCell, Recurrent
from repro.complexity.measure import chain
from repro.model.config import Hyper
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


@pytest.mark.parametrize("part", [nn.GRU(2, 2), nn.LSTMCell(2, 2), nn.Conv1d(2, 2, 3), Convolution(d=2, k=3)])
def test_a_recurrence_or_convolution_would_be_seen(part: nn.Module) -> None:
    model = Transformer(TINY, V)
    model.add_module("planted", part)
    assert recurrences_and_convolutions(model)[0].startswith("planted")


def test_one_made_by_hand_would_be_seen() -> None:
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
