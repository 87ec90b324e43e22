"""The mean of checkpoints."""

import pytest
import torch
from torch import Tensor

from repro.training.averaging import average


def states(n: int) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"matrix": (3, 5), "bias": (7,), "scalar": ()}

    def one() -> dict[str, Tensor]:
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    return [one() for _ in range(n)]


def test_by_hand() -> None:
    found = average([{"w": torch.tensor([1.0, 5.0])}, {"w": torch.tensor([2.0, 7.0])}])
    assert found["w"].tolist() == [1.5, 6.0]


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_it_is_the_mean_tensor_by_tensor(n: int) -> None:
    many = states(n)
    found = average(iter(many))
    assert found.keys() == many[0].keys()
    for name, tensor in found.items():
        exact = torch.stack([state[name].double() for state in many]).mean(0)
        assert torch.equal(tensor, exact.float())


@pytest.mark.parametrize("n", [1, 3, 7])
def test_equal_checkpoints_are_their_own_mean(n: int) -> None:
    (state,) = states(1)
    assert all(torch.equal(tensor, state[name]) for name, tensor in average([state] * n).items())


def test_the_sum_is_kept_in_float64() -> None:
    # 2^24 + 1 does not exist in float32: a float32 sum would lose both ones
    found = average([{"w": torch.tensor(x)} for x in (2.0**24, 1.0, 1.0, -(2.0**24))])
    assert found["w"].item() == 0.5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_each_keeps_its_type(dtype: torch.dtype) -> None:
    assert average([{"w": torch.ones(3, dtype=dtype)}] * 2)["w"].dtype == dtype


def test_nothing_that_goes_in_is_changed() -> None:
    many, before = states(3), states(3)
    average(many)
    assert all(torch.equal(a[name], b[name]) for a, b in zip(many, before, strict=True) for name in a)


def test_other_weights_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Checkpoint 2 .* other weights than the first: odd, w\."):
        average([{"w": torch.ones(1)}, {"odd": torch.ones(1)}])


def test_nothing_has_no_mean() -> None:
    with pytest.raises(ValueError, match="expected at least one checkpoint, got none"):
        average([])


def test_weights_of_other_shapes_are_refused_and_not_spread() -> None:
    with pytest.raises(
        ValueError, match=r"Checkpoint 2 .* another shape of w than the first: expected \[3\], got \[1\]"
    ):
        average([{"w": torch.zeros(3)}, {"w": torch.ones(1)}])
