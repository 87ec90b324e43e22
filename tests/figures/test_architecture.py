"""Figures 1 and 2 show the model that runs and its operations: who changes it changes the picture."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from repro.figures import architecture, style
from repro.figures.architecture import ATTENTION, BELOW, MEMORY, Block, multi_head, scaled_dot_product, stacks, trace
from repro.model import attention as module
from repro.model import layers
from repro.model.config import Hyper
from repro.model.transformer import Transformer

SMALL = Hyper(n_layers=2, d_model=16, d_ff=32, n_heads=2, d_k=3, d_v=5, steps=20, average_every=1)


def drawing(model: Transformer) -> bytes:
    return style.svg(*architecture.draw_architecture(model))


def labels(column: architecture.Stack) -> list[str]:
    return [box.label.replace("\n", " ") for box, _ in architecture.boxes(column.layer)]


@pytest.fixture(scope="module")
def usual() -> bytes:
    return drawing(Transformer(SMALL, 11))


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
    change: Callable[[pytest.MonkeyPatch], None], expected: list[str], usual: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch)
    changed = Transformer(SMALL, 11)
    assert labels(stacks(changed)[0]) == expected
    assert drawing(changed) != usual


# ---- figure 2


def test_scaled_dot_product_attention() -> None:
    assert scaled_dot_product() == [
        ("Scale", (-1,)),  # of q, before the product
        ("MatMul", (0, -2)),
        ("Mask (opt.)", (1,)),
        ("SoftMax", (2,)),
        ("MatMul", (3, -3)),
    ]


def test_multi_head_attention() -> None:
    found = multi_head()
    assert [operation.label for operation in found] == [
        "Linear",
        "Heads apart",
        "Linear",  # keys and values by one product
        "Split",
        "Heads apart",
        "Heads apart",
        ATTENTION,
        "Concat",
        "Linear",
    ]
    assert found[6].reads == (1, 4, 5)


def unscaled(q_BHQE: Tensor, k_BHKE: Tensor, bias: Tensor | None) -> Tensor:
    scores = q_BHQE @ k_BHKE.transpose(-2, -1)
    return (scores if bias is None else scores + bias).softmax(dim=-1)


def test_without_scaling_the_picture_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    before = style.svg(*architecture.draw_operations())
    monkeypatch.setattr(module, "attention_weights", unscaled)
    assert [operation.label for operation in scaled_dot_product()] == ["MatMul", "Mask (opt.)", "SoftMax", "MatMul"]
    assert style.svg(*architecture.draw_operations()) != before


def test_a_mask_that_is_always_added_is_not_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = module.attention_weights

    def masked(q_BHQE: Tensor, k_BHKE: Tensor, bias: Tensor | None) -> Tensor:
        return usual(q_BHQE, k_BHKE, torch.zeros(3, 5) if bias is None else bias)

    monkeypatch.setattr(module, "attention_weights", masked)
    assert scaled_dot_product()[2].label == "Mask"


def test_a_box_stands_above_all_that_it_reads_and_on_none_beside_it() -> None:
    diagram = multi_head()
    heights, xs = architecture.levels(diagram), architecture.places(diagram, [300.0, 410.0])
    assert heights == [1, 2, 1, 2, 3, 3, 4, 5, 6]
    spots = list(zip(heights, xs, strict=True))
    beside = [abs(x - other) for i, (row, x) in enumerate(spots) for at, other in spots[:i] if at == row]
    assert min(beside) > architecture.BOX


# ---- what was computed, by whom and from what


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.ones(3)  # made from nothing: no step
        return x + self.dropout(self.inner(x)) * mask


def test_a_residual_block_by_hand() -> None:
    done = trace(Residual(), torch.ones(2, 3))
    calls = [done.calls[step.calls[-1]].path for step in done.steps]
    assert [step.name for step in done.steps] == ["linear", "mul", "add"]  # dropout rests
    assert calls == ["inner", "", ""]
    assert [step.reads for step in done.steps] == [(-1,), (0,), (-1, 1)]
    assert [(call.path, call.kind, call.reads) for call in done.calls] == [
        ("", "Residual", (-1,)),
        ("inner", "Linear", (-1,)),
        ("dropout", "Dropout", (0,)),
    ]


def test_looking_at_a_tensor_is_no_step_and_keeps_its_origin() -> None:
    done = trace(lambda x, y: x.transpose(0, 1)[:, :1] @ y, torch.ones(2, 3), torch.ones(1, 5))
    assert [(step.name, step.reads) for step in done.steps] == [("matmul", (-1, -2))]


def test_a_second_trace_is_as_the_first() -> None:
    model = Residual().train()
    first = trace(model, torch.ones(1, 3))
    assert trace(model, torch.ones(1, 3)) == first
    assert len(first.calls) == 3, "no hook of the first is still there"


def test_names_are_said_in_words() -> None:
    assert [architecture.words(name) for name in ("FeedForward", "feed_forward", "gelu")] == [
        "Feed Forward",
        "Feed Forward",
        "Gelu",
    ]
