"""The mean of checkpoints."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from repro.training.checkpoint import average, averaged, last_mean, path_of, save

RUN = "0123456789abcdef"


def states(n: int) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"matrix": (3, 5), "bias": (7,), "scalar": ()}

    def one() -> dict[str, Tensor]:
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    return [one() for _ in range(n)]


@pytest.mark.parametrize("n", [1, 5])
def test_it_is_the_mean_tensor_by_tensor(n: int) -> None:
    many, before = states(n), states(n)
    found = average(iter(many))
    assert found.keys() == many[0].keys()
    for name, tensor in found.items():
        exact = torch.stack([state[name].double() for state in many]).mean(0)
        assert torch.equal(tensor, exact.float())
    assert all(torch.equal(a[name], b[name]) for a, b in zip(many, before, strict=True) for name in a)


def test_the_sum_is_kept_in_float64_and_each_tensor_in_its_type() -> None:
    # 2^24 + 1 does not exist in float32: a float32 sum would lose both ones
    found = average([{"w": torch.tensor(x)} for x in (2.0**24, 1.0, 1.0, -(2.0**24))])
    assert found["w"].item() == 0.5
    kinds = {str(kind): torch.ones(3, dtype=kind) for kind in (torch.float64, torch.float32, torch.bfloat16)}
    assert {name: str(mean.dtype) for name, mean in average([kinds] * 2).items()} == {name: name for name in kinds}


@pytest.mark.parametrize(
    ("many", "said"),
    [
        ([{"w": torch.ones(1)}, {"odd": torch.ones(1)}], r"Checkpoint 2 .* other weights than the first: odd, w\."),
        ([{"w": torch.zeros(3)}, {"w": torch.ones(1)}], r"2 .* another shape of w .*: expected \[3\], got \[1\]"),
        ([], "expected at least one checkpoint, got none"),
    ],
    ids=["weights", "shapes", "none"],
)
def test_what_has_no_mean_is_refused(many: list[dict[str, Tensor]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        average(many)


def write(folder: Path, many: list[dict[str, Tensor]]) -> range:
    """Checkpoints three updates apart, the last after update 30; returns after which updates."""
    steps = range(33 - 3 * len(many), 31, 3)
    for step, state in zip(steps, many, strict=True):
        others = {"train_loss.total": torch.tensor(step)}
        save(path_of(folder, step), {"state_dict": {f"model.{k}": v for k, v in state.items()} | others}, RUN)
    return steps


def test_the_mean_of_the_last_leaves_damaged_ones_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = states(10)
    steps = write(tmp_path, many)
    assert last_mean(tmp_path, RUN, steps)[0] == [*steps]
    for gone in steps[:6]:
        path_of(tmp_path, gone).unlink()
    damaged = path_of(tmp_path, steps[7])
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    found, mean = last_mean(tmp_path, RUN, steps)
    assert found == [steps[6], steps[8], steps[9]]
    assert all(torch.equal(mean[name], x) for name, x in average([many[6], many[8], many[9]]).items())
    assert f"{damaged} is damaged" in capsys.readouterr().out


def test_the_checkpoints_that_a_row_names_are_averaged(tmp_path: Path) -> None:
    many = states(3)
    steps = write(tmp_path, many)
    mean = averaged(tmp_path, RUN, steps[1:])
    assert all(torch.equal(mean[name], x) for name, x in average(many[1:]).items())
    with pytest.raises(ValueError, match=r"averages 4 checkpoints, but .* lacks step-000000033\S+, step-000000036"):
        averaged(tmp_path, RUN, range(27, 37, 3))
