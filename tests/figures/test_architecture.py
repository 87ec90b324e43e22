"""Figure 1 shows the model that runs: who changes it changes the picture."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from repro.figures import style
from repro.figures.architecture import BELOW, MEMORY, Block, Stack, boxes, height, paint_architecture, stacks
from repro.model import layers
from repro.model.config import Hyper
from repro.model.transformer import Transformer

SMALL = Hyper(n_layers=2, d_model=16, d_ff=32, n_heads=2, d_k=3, d_v=5, steps=20, average_every=1)


def drawing(drawn: tuple[Stack, Stack]) -> bytes:
    return style.svg((6.4, height(drawn) / 72), partial(paint_architecture, drawn=drawn))


def labels(column: Stack) -> list[str]:
    return [box.label.replace("\n", " ") for box, _ in boxes(column.layer)]


@pytest.fixture(scope="module")
def usual() -> bytes:
    return drawing(stacks(Transformer(SMALL, 11)))


def test_the_paper_s_picture() -> None:
    encoder, decoder = stacks(Transformer(SMALL, 11))
    assert encoder.entry == decoder.entry == ("Embedding", "Positional\nEncoding")
    assert (encoder.n_layers, encoder.layer) == (
        2,
        (
            Block("Multi-Head\nAttention", "SelfAttention", (BELOW,)),
            Block("Add", "add", (BELOW, 0)),
            Block("Norm", "LayerNorm", (1,)),
            Block("Feed\nForward", "FeedForward", (2,)),
            Block("Add", "add", (2, 3)),
            Block("Norm", "LayerNorm", (4,)),
        ),
    )
    assert labels(decoder) == [
        "Masked Multi-Head Attention",
        "Add & Norm",
        "Multi-Head Attention",
        "Add & Norm",
        "Feed Forward",
        "Add & Norm",
    ]
    assert decoder.layer[3].reads == (2, MEMORY)
    assert (encoder.head, decoder.head) == ((), ("Linear", "Softmax"))


def test_learned_positions_are_named() -> None:
    assert stacks(Transformer(replace(SMALL, learned_positions=True), 11))[0].entry[1] == "Learned\nEncoding"


def test_the_mask_is_seen_in_the_weights_and_not_in_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "tril", lambda tensor: tensor)  # a decoder that looks ahead
    assert labels(stacks(Transformer(SMALL, 11))[1])[0] == "Multi-Head Attention"


class GatedNetwork(layers.FeedForward):
    """The feed-forward network under another name."""


def without_feed_forward(layer: layers.EncoderLayer, x: Tensor, source_bias: Tensor) -> Tensor:
    attended: Tensor = layer.norms[0](x + layer.self_attention(x, source_bias))
    return attended


def without_residual(layer: layers.EncoderLayer, x: Tensor, source_bias: Tensor) -> Tensor:
    x = layer.norms[0](layer.self_attention(x, source_bias))
    return layer.norms[1](x + layer.feed_forward(x))  # type: ignore[no-any-return]


def norm_first(layer: layers.EncoderLayer, x: Tensor, source_bias: Tensor) -> Tensor:
    x = x + layer.self_attention(layer.norms[0](x), source_bias)
    return x + layer.feed_forward(layer.norms[1](x))


def rename(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(Transformer.__init__.__kwdefaults__, "feed_forward", GatedNetwork)  # type: ignore[arg-type]


def forward(function: Callable[..., Tensor]) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda monkeypatch: monkeypatch.setattr(layers.EncoderLayer, "forward", function)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (rename, ["Multi-Head Attention", "Add & Norm", "Gated Network", "Add & Norm"]),
        (forward(without_feed_forward), ["Multi-Head Attention", "Add & Norm"]),
        (forward(without_residual), ["Multi-Head Attention", "Norm", "Feed Forward", "Add & Norm"]),
        (forward(norm_first), ["Norm", "Multi-Head Attention", "Add", "Norm", "Feed Forward", "Add"]),
    ],
    ids=["renamed", "no feed-forward", "no residual", "pre-norm"],
)
def test_another_model_is_another_picture(
    change: Callable[[pytest.MonkeyPatch], None],
    expected: list[str],
    usual: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    change(monkeypatch)
    changed = stacks(Transformer(SMALL, 11))
    assert labels(changed[0]) == expected
    assert drawing(changed) != usual


def test_the_same_model_is_the_same_picture(usual: bytes) -> None:
    assert drawing(stacks(Transformer(SMALL, 11))) == usual
