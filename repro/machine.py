"""Settings of this process that make a CPU fast, made once before training or decoding.

Both were measured before they were adopted (`benchmarks/training.py`): together they halve the time of a large step.
Neither changes what is computed: matrix products keep full float32 accuracy, or the setting is not made.
"""

import ctypes
import platform
import sys
from pathlib import Path

import torch

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # from glibc's malloc.h
LARGE_PRODUCT = 2**23  # multiplications; below it oneDNN's preparation of each new shape costs more than it saves
FLOAT32_ERROR = 1e-5  # relative error of a product that is still float32; bfloat16 has about 4e-3


def tune(product: int) -> tuple[str, ...]:
    """Set the allocator and the matrix-product library; returns the names of the settings made.

    `product` is the size of a typical matrix product of the work to come, in multiplications: rows x d_model^2.
    """
    made = []
    if _keep_freed_memory():
        made.append("malloc: freed memory is kept")
    torch.set_float32_matmul_precision("highest")
    if product >= LARGE_PRODUCT and _fast_float32_products():
        made.append("float32 products: oneDNN")
    return tuple(made)


def _keep_freed_memory() -> bool:
    """Reuse freed memory instead of handing it back: glibc maps, and the kernel clears, each large tensor anew."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    wanted = {_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 2**31 - 1, _M_TOP_PAD: 2**28}
    return all(libc.mallopt(name, value) == 1 for name, value in wanted.items())


def _fast_float32_products() -> bool:
    """Let oneDNN do float32 products, if on this processor they stay float32.

    The setting is called "medium" and allows bfloat16; where the processor would take that licence, the measured
    error shows it and the setting is taken back.
    """
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(256, 256, generator=generator) for _ in range(2))
    exact = a.double() @ b.double()
    torch.set_float32_matmul_precision("medium")
    error = ((a @ b).double() - exact).norm() / exact.norm()
    if error < FLOAT32_ERROR:
        return True
    torch.set_float32_matmul_precision("highest")
    return False


def start_peak_memory() -> None:
    """Begin a new measurement of this process's peak memory."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    elif sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_bytes(b"5")  # Linux: reset the resident set's high-water mark


def peak_memory() -> int | None:
    """Bytes at the peak since `start_peak_memory`: of the GPU if there is one, else resident; None if unknown."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_bytes().split(b"\n"):
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
    return None
