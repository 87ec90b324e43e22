"""The mean of checkpoints."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from repro.training.averaging import average, last_mean
from repro.training.checkpoint import path_of, save

RUN = "0123456789abcdef"


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


def write(folder: Path, many: list[dict[str, Tensor]]) -> range:
    """Checkpoints three updates apart, the last after update 30; returns after which updates."""
    steps = range(33 - 3 * len(many), 31, 3)
    for step, state in zip(steps, many, strict=True):
        others = {"train_loss.total": torch.tensor(step)}
        save(path_of(folder, step), {"state_dict": {f"model.{k}": v for k, v in state.items()} | others}, RUN)
    return steps


def test_the_mean_of_the_last_is_that_of_a_loop_in_float64(tmp_path: Path) -> None:
    many = states(10)
    steps = write(tmp_path, many)
    found, mean = last_mean(tmp_path, RUN, steps)
    assert found == [*steps]
    assert mean.keys() == many[0].keys()
    for name, tensor in mean.items():
        values = [[x.item() for x in state[name].double().reshape(-1)] for state in many]
        by_hand = [sum(column) / 10 for column in zip(*values, strict=True)]
        assert torch.equal(tensor.reshape(-1), torch.tensor(by_hand, dtype=torch.float64).float())


def test_of_the_last_those_count_that_are_there_and_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = states(10)
    steps = write(tmp_path, many)
    for gone in steps[:6]:
        path_of(tmp_path, gone).unlink()
    damaged = path_of(tmp_path, steps[7])
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    found, mean = last_mean(tmp_path, RUN, steps)
    assert found == [steps[6], steps[8], steps[9]]
    assert all(torch.equal(mean[name], x) for name, x in average([many[6], many[8], many[9]]).items())
    assert f"{damaged} is damaged" in capsys.readouterr().out
