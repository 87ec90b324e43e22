"""Figure 2 shows the operations that are executed, in their order."""

from functools import partial

import pytest
import torch
from torch import Tensor

from repro.figures import operations, style
from repro.figures.operations import ATTENTION, Operation, levels, multi_head, places, scaled_dot_product
from repro.model import attention as module


def drawing() -> bytes:
    left, right = scaled_dot_product(), multi_head()
    paint = partial(operations.paint_operations, left=left, right=right)
    return style.svg(operations.paper_size(left, right), paint)


def test_scaled_dot_product_attention() -> None:
    assert scaled_dot_product().operations == (
        Operation("Scale", (-1,)),  # of q, before the product
        Operation("MatMul", (0, -2)),
        Operation("Mask (opt.)", (1,)),
        Operation("SoftMax", (2,)),
        Operation("MatMul", (3, -3)),
    )


def test_multi_head_attention() -> None:
    found = multi_head().operations
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
    before = drawing()
    monkeypatch.setattr(module, "attention_weights", unscaled)
    assert [operation.label for operation in scaled_dot_product().operations] == [
        "MatMul",
        "Mask (opt.)",
        "SoftMax",
        "MatMul",
    ]
    assert drawing() != before


def test_a_mask_that_is_always_added_is_not_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = module.attention_weights

    def masked(q_BHQE: Tensor, k_BHKE: Tensor, bias: Tensor | None) -> Tensor:
        return usual(q_BHQE, k_BHKE, torch.zeros(3, 5) if bias is None else bias)

    monkeypatch.setattr(module, "attention_weights", masked)
    assert scaled_dot_product().operations[2].label == "Mask"


def test_a_box_stands_above_all_that_it_reads_and_on_none_beside_it() -> None:
    diagram = multi_head()
    heights, xs = levels(diagram), places(diagram, [300.0, 410.0], 76)
    assert heights == [1, 2, 1, 2, 3, 3, 4, 5, 6]
    spots = list(zip(heights, xs, strict=True))
    beside = [abs(x - other) for i, (row, x) in enumerate(spots) for at, other in spots[:i] if at == row]
    assert min(beside) > operations.WIDE
