"""The likeliest tokens equal those of a softmax over everything, sorted."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from repro.decoding import translate
from repro.decoding.translate import Softmax, first_largest
from repro.model.special_tokens import PAD


def sorted_whole(weight: Tensor, hidden: Tensor, k: int) -> tuple[Tensor, Tensor]:
    log_prob = (hidden @ weight.T).float().log_softmax(-1)
    log_prob[:, PAD] = -math.inf
    value, token = log_prob.sort(dim=1, descending=True, stable=True)
    return value[:, :k], token[:, :k]


def check(softmax: Softmax, weight: Tensor, hidden: Tensor, k: int, atol: float) -> None:
    value, token = softmax.top_k(hidden, k)
    expected_value, expected_token = sorted_whole(weight, hidden.to(weight.dtype), k)
    assert torch.equal(token, expected_token)
    torch.testing.assert_close(value.float(), expected_value, rtol=0, atol=atol)


@pytest.mark.parametrize("block", [32, 96, 4_096])
@pytest.mark.parametrize("n_tokens", [13, 32, 33, 64, 1_000])
def test_the_same_as_sorting_the_whole_softmax(n_tokens: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "BLOCK", block)
    generator = torch.Generator().manual_seed(n_tokens)
    weight = 3 * torch.randn(n_tokens, 5, generator=generator)
    softmax = Softmax(weight)
    for k, n_rows in ((8, 3), (8, 3), (8, 7), (min(42, n_tokens), 1), (4, 5)):  # in the room of those before
        check(softmax, weight, torch.randn(n_rows, 5, generator=generator), k, atol=1e-5)


def test_padding_takes_no_group_from_likelier_tokens() -> None:
    """Padding is the likeliest of all, and the k likeliest real tokens are in k other groups."""
    weight = torch.zeros(6 * translate.GROUP, 1)
    weight[PAD] = 9
    weight[5 :: translate.GROUP, 0] = torch.arange(1.0, 7.0)
    check(Softmax(weight), weight, torch.ones(1, 1), 5, atol=1e-5)


@pytest.mark.parametrize("size", [8, 16])
def test_no_bit_depends_on_the_size_of_a_group(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    weight, hidden = torch.randn(1_485, 16, generator=generator), torch.randn(50, 16, generator=generator)
    monkeypatch.setattr(translate, "_group", lambda n_tokens, k: translate.GROUP)
    largest = Softmax(weight).top_k(hidden, 42)
    monkeypatch.setattr(translate, "_group", lambda n_tokens, k: size)
    value, token = Softmax(weight).top_k(hidden, 42)
    assert torch.equal(value, largest[0])
    assert torch.equal(token, largest[1])


def test_a_wide_search_looks_through_small_groups() -> None:
    sizes = {(1_500, 42): 8, (10_000, 42): 16, (16_384, 42): 32, (3_000, 8): 32, (37_000, 8): 32, (50, 100): 8}
    assert {of: translate._group(*of) for of in sizes} == sizes


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_of_equal_tokens_the_lowest_id_comes_first(dtype: torch.dtype) -> None:
    # whole numbers below 128: exact in all three, and most of them many times
    generator = torch.Generator().manual_seed(0)
    weight = torch.randint(-2, 3, (300, 3), generator=generator).to(dtype)
    hidden = torch.randint(-2, 3, (50, 3), generator=generator).to(dtype)
    check(Softmax(weight), weight, hidden, 10, atol=2e-6)


def test_fewer_pieces_than_are_wanted() -> None:
    value, token = Softmax(torch.tensor([[0.0], [0.0], [0.0]])).top_k(torch.tensor([[1.0]]), 70)
    assert token[0, :2].tolist() == [1, 2]
    assert value.shape == token.shape == (1, 70)
    assert value[0, 2:].tolist() == [-math.inf] * 68
    assert token.max() < 3


def test_nan_is_not_lost() -> None:
    value, _ = Softmax(torch.ones(100, 1)).top_k(torch.tensor([[math.nan], [1.0]]), 2)
    assert value.isnan().all(dim=1).tolist() == [True, False]


def test_large_logits_do_not_overflow() -> None:
    value, token = Softmax(torch.tensor([[0.0], [300.0], [299.0]])).top_k(torch.tensor([[1.0], [-1.0]]), 1)
    assert token.tolist() == [[1], [2]]
    assert value[:, 0].tolist() == [pytest.approx(-math.log1p(math.exp(-1)), abs=1e-6), -299.0]


def test_products_may_be_of_lower_precision_than_sums() -> None:
    generator = torch.Generator().manual_seed(0)
    weight, hidden = torch.randn(1_000, 16, generator=generator), torch.randn(4, 16, generator=generator)
    softmax = Softmax(weight, torch.bfloat16)
    assert softmax.top_k(hidden, 4)[0].dtype == torch.float32
    check(softmax, weight.bfloat16(), hidden, 4, atol=2e-6)


numbers = st.sampled_from([-math.inf, -2.5, -1.0, -0.0, 0.0, 1e-30, 1.0, 3.5, math.inf])


@given(st.lists(numbers, min_size=1, max_size=60), st.integers(1, 12))
def test_the_largest_come_as_a_stable_sort_brings_them(x: list[float], k: int) -> None:
    expected = sorted(range(len(x)), key=lambda place: -x[place])[:k]
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        values, places = first_largest(torch.tensor([x], dtype=dtype), k)
        assert places[0].tolist() == expected
        assert values[0].tolist() == torch.tensor([x[place] for place in expected], dtype=dtype).tolist()
