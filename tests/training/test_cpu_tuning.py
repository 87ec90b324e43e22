"""Settings of the process: made where they help, taken back where they would cost accuracy."""

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from repro.training import cpu_tuning

MEBIBYTE = 2**20
KEPT, HUGE = "malloc: freed memory is kept", "malloc: huge pages"
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, which only Linux has")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """The settings of this process as they were: other tests compare to the bit."""
    before, n, tf32 = torch.get_float32_matmul_precision(), torch.get_num_threads(), torch.backends.cudnn.allow_tf32
    yield
    torch.backends.cudnn.allow_tf32 = tf32
    torch.set_float32_matmul_precision(before)
    torch.set_num_threads(n)


def use(
    monkeypatch: pytest.MonkeyPatch,
    *,
    libc: str = "glibc",
    block: int | None = 12_345,
    offered: bool = True,
    advised: bool = True,
) -> mock.Mock:
    """Have a library in the place of glibc: its heap begins at 12,345, and ends behind what was asked for last."""
    library = mock.Mock()

    def malloc(size: int) -> int | None:
        library.sbrk.return_value = 12_345 + size + 777
        return block

    library.malloc.side_effect = malloc
    library.mallopt.return_value = 1
    library.madvise.return_value = 0 if advised else -1
    monkeypatch.setattr(cpu_tuning, "_huge_pages_are_offered", lambda: offered)
    monkeypatch.setattr(cpu_tuning.ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(cpu_tuning.platform, "libc_ver", lambda: (libc, "2.36"))
    monkeypatch.setattr(cpu_tuning.sys, "platform", "linux")
    return library


@pytest.mark.parametrize(
    ("product", "error", "gpu", "is_fast"),
    [
        (cpu_tuning.LARGE_PRODUCT, 1.0, False, True),
        (cpu_tuning.LARGE_PRODUCT, 0.0, False, False),  # as where the processor computes in bfloat16
        (cpu_tuning.LARGE_PRODUCT - 1, 1.0, False, False),
        (cpu_tuning.LARGE_PRODUCT, 1.0, True, False),  # which the setting would allow TF32
    ],
    ids=["large", "inaccurate", "small", "beside a GPU"],
)
def test_large_products_go_to_onednn_if_they_stay_float32(
    monkeypatch: pytest.MonkeyPatch, product: int, error: float, gpu: bool, is_fast: bool
) -> None:
    use(monkeypatch)
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    monkeypatch.setattr(cpu_tuning, "FLOAT32_ERROR", error)
    torch.set_float32_matmul_precision("medium")  # as other work left it
    torch.backends.cudnn.allow_tf32 = True
    for _ in range(2):
        assert cpu_tuning.tune(product) == (KEPT, HUGE, *["float32 products: oneDNN"] * is_fast)
    assert torch.get_float32_matmul_precision() == ("medium" if is_fast else "highest")
    assert not torch.backends.cudnn.allow_tf32  # cuDNN's own setting, for recurrent layers and convolutions


def test_huge_pages_are_asked_for_where_the_heap_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    glibc = use(monkeypatch)
    monkeypatch.setattr(cpu_tuning, "LARGEST_HEAP", 7 * MEBIBYTE)
    assert HUGE in cpu_tuning.tune(0)
    # from the first whole page to the heap's end; the block that made it grow is given back
    glibc.madvise.assert_called_once_with(2 * MEBIBYTE, 12_345 + 7 * MEBIBYTE + 777 - 2 * MEBIBYTE, 14)
    glibc.free.assert_called_once_with(12_345)


@pytest.mark.parametrize(
    "world",
    [{"block": None}, {"block": 2**40}, {"offered": False}, {"advised": False}, {"libc": ""}],
    ids=["refused", "not in the heap", "the kernel has none", "not granted", "musl gives no name"],
)
def test_no_huge_pages_where_there_are_none_or_the_heap_does_not_grow(
    monkeypatch: pytest.MonkeyPatch, world: dict[str, Any]
) -> None:
    glibc = use(monkeypatch, **world)
    assert HUGE not in cpu_tuning.tune(0)
    if "block" in world:
        glibc.madvise.assert_not_called()
        assert [call.args for call in glibc.free.call_args_list] == [(2**40,)] * (world["block"] is not None)


def test_products_of_few_shapes_are_kept_unless_somebody_asks_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    for asked, kept in (("7", "7"), (None, "64")):
        monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", asked or "")
        if asked is None:
            monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
        cpu_tuning.tune(0)
        assert os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == kept


@linux
def test_huge_pages_come_and_take_no_memory_before_they_are_used() -> None:
    if not (cpu_tuning._has_glibc() and cpu_tuning._huge_pages_are_offered()):
        pytest.skip("no glibc, or a kernel without huge pages")
    script = """if True:
        from pathlib import Path
        import torch
        from repro.training import cpu_tuning as machine
        made = machine.tune(0)
        memory = machine.PeakMemory()
        before = memory.bytes()
        machine.tune(0)
        grown = memory.bytes() - before
        zeros = torch.ones(2**25, dtype=torch.uint8)
        lines = Path("/proc/self/smaps_rollup").read_bytes().split(b"\\n")
        [huge] = [int(line.split()[1]) for line in lines if b"AnonHugePages" in line]
        print("malloc: huge pages" in made, grown < 2**24, huge >= 2**14)
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment)
    assert done.stdout.split() in (["True"] * 3, ["False", "True", "False"])  # not where memory may not be promised


@linux
@pytest.mark.skipif(torch.cuda.is_available(), reason="measures the GPU's memory there")
def test_the_peak_is_of_the_time_since_the_start() -> None:
    def touch(n_bytes: int) -> None:
        with mmap.mmap(-1, n_bytes) as memory:
            for i in range(0, n_bytes, mmap.PAGESIZE):
                memory[i] = 1

    memory = cpu_tuning.PeakMemory()
    before = memory.bytes()
    touch(64 * MEBIBYTE)
    with_it, after = memory.bytes(), cpu_tuning.PeakMemory().bytes()
    assert before
    assert with_it
    assert after
    assert with_it - before > 60 * MEBIBYTE
    assert after < with_it - 32 * MEBIBYTE


def test_a_peak_that_cannot_be_measured_is_unknown_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_tuning.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(cpu_tuning, "RESET", tmp_path / "absent" / "clear_refs")
    assert cpu_tuning.PeakMemory().bytes() is None  # not that of all the process did before
    monkeypatch.setattr(cpu_tuning.sys, "platform", "plan9")
    assert cpu_tuning.PeakMemory().bytes() is None
