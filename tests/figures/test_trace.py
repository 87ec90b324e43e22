"""A trace says what was computed, by whom and from what."""

import torch
from torch import Tensor, nn

from repro.figures.trace import trace, words


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


def test_the_model_is_left_as_it_was() -> None:
    model = Residual().train()
    first = trace(model, torch.ones(1, 3))
    assert model.training
    assert model.dropout.training
    assert trace(model, torch.ones(1, 3)) == first  # no hook of the first is still there
    with torch.no_grad():
        model(torch.ones(1, 3))
    assert len(first.calls) == 3


def test_names_are_said_in_words() -> None:
    assert [words(name) for name in ("FeedForward", "feed_forward", "gelu")] == ["Feed Forward", "Feed Forward", "Gelu"]
