"""What is compiled, when it is forgotten, and what is said of it; by Dynamo itself, without its code generator."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters

from repro.model import attention, compiled
from repro.model.attention import ScaledDotProduct
from repro.model.config import Hyper
from repro.model.masks import RaggedMask, pack, paired
from repro.model.transformer import Transformer

V = 19
HYPER = Hyper(n_layers=1, d_model=12, d_ff=10, n_heads=3, d_k=2, d_v=5, dropout=0.1)

pytestmark = pytest.mark.filterwarnings("ignore")  # the compiler's, about itself


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    compiled.why_not.cache_clear()
    compiled.begin_run()
    yield
    compiled.why_not.cache_clear()
    compiled.begin_run()


def n_programs() -> int:
    """Dynamo's own count."""
    return counters["stats"]["unique_graphs"]


def trained(model: Transformer, lengths: list[int]) -> None:
    """A step on sentences in a row, of these lengths on both sides."""
    ids = torch.arange(sum(lengths)) % (V - 2) + 2
    source, target = paired(*(pack(ids, torch.tensor(lengths)) for _ in range(2)))
    model.decode(target, model.encode(source), source).square().sum().backward()


def made() -> Transformer:
    torch.manual_seed(1)
    model = Transformer(HYPER, V)
    model.compile_layers(backend="eager")
    return model


def test_layers_are_compiled_where_they_train_and_nowhere_else() -> None:
    model = made()
    model.eval()
    for length in range(2, 12):
        ids = torch.arange(2 * length).view(2, length) % (V - 2) + 2
        with torch.no_grad():
            model.decode(ids, model.encode(ids), ids)
    assert n_programs() == 0
    assert compiled.given_up() == "nothing was compiled"
    trained(model.train(), [3, 5, 2])
    assert n_programs() > 0
    assert compiled.given_up() is None


def test_the_user_is_told_when_there_are_more_shapes_than_programs() -> None:
    model = made()
    with torch._dynamo.config.patch(recompile_limit=1):
        for lengths in ([3, 5, 2], [30, 70, 41], [300, 2, 80]):
            trained(model, lengths)
    assert compiled.given_up() == "there were more shapes than the compiler keeps programs for"


def test_a_compiled_model_is_copied_without_its_programs() -> None:
    assert copy.deepcopy(made()).encoder[0]._compiled_call_impl is None


def test_without_a_compiler_the_reason_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def broken(function: Any) -> Any:
        asked.append(function)
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable.\nand 90 lines more")

    monkeypatch.setattr("torch.compile", broken)
    said = [compiled.why_not("cpu") for _ in range(2)]
    assert said == ["RuntimeError: Failed to find C compiler. Please specify via CC environment variable."] * 2
    assert len(asked) == 1


@pytest.mark.parametrize("causal", [False, True])
def test_the_padded_way_of_a_head_too_wide_is_one_program(causal: bool) -> None:
    ends = torch.tensor([0, 4, 4, 5, 12], dtype=torch.int32)
    q, k, v = (torch.randn(1, 12, 3) for _ in range(3))
    mixing = ScaledDotProduct(n_heads=1, d_k=3, d_v=3)

    def way(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attention.ragged_attention(mixing, q, k, v, RaggedMask(ends, ends, 7, 7, causal))

    found = torch.compile(way, backend="eager", fullgraph=True)(q, k, v)  # no part of it waits for the device
    torch.testing.assert_close(found, way(q, k, v))
