"""Products of bfloat16 through float32: exact sums, rounded once, and nothing else is touched."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from model.samples import CPU, NoneOfBfloat16, through_float32
from torch import Tensor

from repro.model import bfloat16
from repro.model.bfloat16 import ThroughFloat32, bfloat16_products, without_gradients

PRODUCTS: dict[str, Callable[..., Tensor]] = {
    "mm": lambda a, b: a[0] @ b[0],
    "mm into memory": lambda a, b: torch.mm(a[0], b[0], out=torch.empty(5, 7, dtype=a.dtype)),
    "addmm": lambda a, b: F.linear(a[0], b[0].T, b[0, 0]),
    "addmm, two factors": lambda a, b: torch.addmm(b[0, 0], a[0], b[0], beta=2, alpha=-0.5),
    "bmm": lambda a, b: a @ b,
    "baddbmm": lambda a, b: torch.baddbmm(b[:, :1], a, b),
    "convolution": lambda a, b: F.conv1d(a.transpose(1, 2), b.permute(2, 1, 0).contiguous(), b[0, 0], padding=1),
}


def drawn(*shape: int) -> Tensor:
    """Numbers that bfloat16 has exactly."""
    return torch.randn(*shape).bfloat16()


@pytest.mark.parametrize("name", PRODUCTS)
def test_is_the_exact_product_rounded_once_and_so_are_its_gradients(name: str) -> None:
    product, takes_gradients = PRODUCTS[name], name != "mm into memory"
    a, b = (x.requires_grad_(takes_gradients) for x in (drawn(3, 5, 61), drawn(3, 61, 7)))
    wide = [x.detach().double().requires_grad_(takes_gradients) for x in (a, b)]
    with through_float32():
        found = product(a, b)
        weight = drawn(*found.shape)
        if takes_gradients:
            found.backward(weight)
    assert found.dtype == torch.bfloat16
    exact = product(*wide)
    # half a unit in the last of 8 bits, and what float32 loses in a sum
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-5)
    assert (found == exact.float().bfloat16()).double().mean() > 0.98, "a rounding more would be seen in many places"
    if takes_gradients:
        exact.backward(weight.double())
        for narrow, of in zip((a, b), wide, strict=True):
            assert narrow.grad is not None
            torch.testing.assert_close(narrow.grad.double(), of.grad, rtol=3 * 2**-8, atol=0.05)


def test_an_lstm_gives_what_float64_does() -> None:
    lstm = torch.nn.LSTM(13, 11, num_layers=2, batch_first=True)
    exact = torch.nn.LSTM(13, 11, num_layers=2, batch_first=True).double()
    exact.load_state_dict(lstm.state_dict())
    x = drawn(3, 5, 13).float()  # what an embedding gives: oneDNN is asked for the whole layer
    with through_float32():
        with torch.autocast("cpu", torch.bfloat16):
            found, _ = lstm(x)
        found.float().sum().backward()
    expected, _ = exact(x.double())
    expected.sum().backward()
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=0.02)
    for (name, parameter), one in zip(lstm.named_parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad.double(), one.grad, rtol=0.05, atol=0.05, msg=name)


def test_without_gradients_avoids_inference_mode_where_products_go_through_float32() -> None:
    linear = torch.nn.Linear(3, 5)
    with through_float32(), torch.autocast("cpu", torch.bfloat16):
        with without_gradients():
            assert not torch.is_inference_mode_enabled()
            assert not linear(torch.ones(2, 3)).requires_grad
        with torch.inference_mode(), pytest.raises(AssertionError, match="linear.* reads bfloat16"):
            linear(torch.ones(2, 3))
    with without_gradients():
        assert torch.is_inference_mode_enabled()


def test_products_of_other_types_are_left_as_they_are() -> None:
    a, b = torch.randn(31, 17), torch.randn(17, 29)
    ids = torch.arange(5)
    with ThroughFloat32():
        assert torch.equal(a @ b, torch.mm(a, b))
        assert (a @ b).dtype == torch.float32
        assert (a.double() @ b.double()).dtype == torch.float64
        assert (ids @ ids).item() == 30
        assert (a.half() @ b.half()).dtype == torch.float16
        assert torch.equal(a.bfloat16() + 1, (a.bfloat16().float() + 1).bfloat16())


@pytest.mark.parametrize(
    ("device", "has", "options", "entered"),
    [
        (CPU, False, {}, True),
        (CPU, True, {}, False),
        (CPU, False, {"wanted": False}, False),
        (torch.device("cuda"), False, {}, False),
    ],
)
def test_products_go_through_float32_only_on_a_cpu_that_lacks_bfloat16(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, has: bool, options: dict[str, Any], entered: bool
) -> None:
    monkeypatch.setattr(bfloat16, "has_bfloat16", lambda: has)
    a = drawn(2, 2)
    with NoneOfBfloat16(), bfloat16_products(device, **options):
        if entered:
            a @ a
        else:
            with pytest.raises(AssertionError, match="reads bfloat16"):
                a @ a


def test_the_processor_is_asked() -> None:
    weight = torch.ones(16, 16, dtype=torch.bfloat16)
    try:
        torch.ops.mkldnn._reorder_linear_weight(weight, None)
    except (RuntimeError, AttributeError):
        assert not bfloat16.has_bfloat16()
    else:
        assert bfloat16.has_bfloat16()
