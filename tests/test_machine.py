"""Settings of the process: made where they help, taken back where they would cost accuracy."""

import ctypes
import mmap
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from repro import machine

MEBIBYTE = 2**20
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which only Linux has")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """The settings of this process as they were: other tests compare to the bit."""
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


class Allocator:
    """Stands in for glibc: notes what is set and refuses what it is told to."""

    def __init__(self, refused: int | None = None) -> None:
        self.settings: dict[int, int] = {}
        self.refused = refused

    def mallopt(self, name: int, value: int) -> int:
        self.settings[name] = value
        return int(name != self.refused)


def use(monkeypatch: pytest.MonkeyPatch, allocator: Any, libc: str = "glibc") -> None:
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda _: allocator)
    monkeypatch.setattr(machine.platform, "libc_ver", lambda: (libc, "2.36"))
    monkeypatch.setattr(machine.sys, "platform", "linux")


def error_of_a_product() -> float:
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(128, 128, generator=generator) for _ in range(2))
    exact = a.double() @ b.double()
    return (((a @ b).double() - exact).norm() / exact.norm()).item()


def test_tuned_products_are_still_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Allocator())
    machine.tune(machine.LARGE_PRODUCT)
    assert error_of_a_product() < machine.FLOAT32_ERROR


def test_a_product_that_loses_accuracy_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Allocator())
    torch.set_float32_matmul_precision("highest")
    monkeypatch.setattr(machine, "FLOAT32_ERROR", 0.0)  # as where the processor computes in bfloat16
    assert machine.tune(machine.LARGE_PRODUCT) == ("malloc: freed memory is kept",)
    assert torch.get_float32_matmul_precision() == "highest"


def test_small_products_stay_where_they_were_also_after_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Allocator())
    machine.tune(machine.LARGE_PRODUCT)
    assert machine.tune(machine.LARGE_PRODUCT - 1) == ("malloc: freed memory is kept",)
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_product_that_keeps_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Allocator())
    monkeypatch.setattr(machine, "FLOAT32_ERROR", 1.0)
    assert machine.tune(machine.LARGE_PRODUCT) == ("malloc: freed memory is kept", "float32 products: oneDNN")
    assert torch.get_float32_matmul_precision() == "medium"


def test_the_measurement_draws_no_number_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Allocator())
    before = torch.get_rng_state()
    machine.tune(machine.LARGE_PRODUCT)
    assert torch.equal(torch.get_rng_state(), before)


def test_freed_memory_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    allocator = Allocator()
    use(monkeypatch, allocator)
    machine.tune(machine.LARGE_PRODUCT)
    assert allocator.settings == {-4: 0, -1: 2**31 - 1, -2: 2**28}  # no maps, no trimming, generous steps
    assert all(value < 2**31 for value in allocator.settings.values())  # mallopt takes a C int


def test_an_allocator_that_refuses_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Allocator(refused=-4))
    assert "malloc: freed memory is kept" not in machine.tune(machine.LARGE_PRODUCT)


def test_another_libc_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    allocator = Allocator()
    use(monkeypatch, allocator, libc="")  # musl gives no name
    assert "malloc: freed memory is kept" not in machine.tune(machine.LARGE_PRODUCT)
    assert allocator.settings == {}


def test_the_same_work_gets_the_same_settings_again(monkeypatch: pytest.MonkeyPatch) -> None:
    allocator = Allocator()
    use(monkeypatch, allocator)
    monkeypatch.setattr(machine, "FLOAT32_ERROR", 1.0)
    first, settings = machine.tune(machine.LARGE_PRODUCT), dict(allocator.settings)
    machine.tune(1)
    assert (machine.tune(machine.LARGE_PRODUCT), allocator.settings) == (first, settings)
    assert torch.get_float32_matmul_precision() == "medium"


@linux
@pytest.mark.skipif(torch.cuda.is_available(), reason="measures the GPU's memory there")
def test_the_peak_is_of_the_time_since_the_start() -> None:
    def touch(n_bytes: int) -> None:
        with mmap.mmap(-1, n_bytes) as memory:
            for i in range(0, n_bytes, mmap.PAGESIZE):
                memory[i] = 1

    machine.start_peak_memory()
    before = machine.peak_memory()
    touch(64 * MEBIBYTE)
    with_it = machine.peak_memory()
    machine.start_peak_memory()
    after = machine.peak_memory()
    assert before is not None
    assert with_it is not None
    assert after is not None
    assert with_it - before > 60 * MEBIBYTE
    assert after < with_it - 32 * MEBIBYTE


def test_an_unknown_system_has_no_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(machine.sys, "platform", "plan9")
    machine.start_peak_memory()
    assert machine.peak_memory() is None


@linux
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library has no mallopt")
def test_the_real_allocator_knows_the_settings() -> None:
    assert ctypes.CDLL(None).mallopt(machine._M_MMAP_MAX, 65_536) == 1  # its default
