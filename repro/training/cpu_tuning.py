"""Settings of this process that make a CPU fast, made once before training or decoding.

Each was adopted after a measurement (`benchmarks/train.py`); the user has to set none of them. None changes what is
computed: a setting is only made if matrix products keep full float32 accuracy.
"""

import ctypes
import os
import platform
import sys
from pathlib import Path

import torch

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # from glibc's malloc.h
_MADV_HUGEPAGE = 14  # from Linux's mman.h
HUGE_PAGE = 2**21
LARGEST_HEAP = 2**35  # huge pages are requested for at most so many bytes; none is taken before it is used
OF_SHAPES, SHAPES = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64"  # an update finds 79 % of its shapes; with 1,024, 85 %
LARGE_PRODUCT = 2**23  # multiplications; below it oneDNN's preparation of each new shape costs more than it saves
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")  # Linux: where the peak is read and reset
FLOAT32_ERROR = 1e-5  # largest relative error of a product that counts as float32; bfloat16 has about 4e-3


def tune(product: int) -> tuple[str, ...]:
    """Set the allocator and the matrix-product library; returns the names of the settings made.

    `product` is the size of a typical matrix product of the work to come, in multiplications: rows x d_model^2.
    """
    made = []
    _forget_shapes()
    if _keep_freed_memory():
        made.append("malloc: freed memory is kept")
        if _huge_pages():
            made.append("malloc: huge pages")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False  # cuDNN has its own setting, for recurrent layers and convolutions
    if product >= LARGE_PRODUCT and not torch.cuda.is_available() and _fast_float32_products():
        made.append("float32 products: oneDNN")
    return tuple(made)


def _has_glibc() -> bool:
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc"


def _keep_freed_memory() -> bool:
    """Reuse freed memory. By default glibc maps memory anew for each large tensor, and the kernel has to clear it."""
    if not _has_glibc():
        return False
    libc = ctypes.CDLL(None)
    wanted = {_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: -1, _M_TOP_PAD: 2**28}  # -1: never trim free memory at the top
    return all(libc.mallopt(name, value) == 1 for name, value in wanted.items())


def _huge_pages() -> bool:
    """Ask for pages of 2 MiB where the heap is going to be: a step touches hundreds of MiB of large tensors.

    glibc itself asks for them only if an environment variable is set before the process starts. So the heap is grown
    once, which takes addresses but no memory, and the kernel is asked to use huge pages for these addresses.
    """
    if not (_has_glibc() and _huge_pages_are_offered()):
        return False
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    libc.sbrk.argtypes, libc.sbrk.restype = [ctypes.c_ssize_t], ctypes.c_void_p
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    size = min(LARGEST_HEAP, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    block = libc.malloc(size)
    if block is None:  # more than this process is allowed
        return False
    end = libc.sbrk(0)
    libc.free(block)
    if block + size > end:  # the block is not in the heap, which ends at `end`
        return False
    start = -(-block // HUGE_PAGE) * HUGE_PAGE
    return bool(libc.madvise(start, end - start, _MADV_HUGEPAGE) == 0)


def _huge_pages_are_offered() -> bool:
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    return switch.exists() and b"[never]" not in switch.read_bytes()


def _forget_shapes() -> None:
    """Limit oneDNN's cache to the last few shapes: older shapes seldom recur, as batches differ in length.

    By default it keeps 1,024 entries of one or two megabytes each. It reads this variable at its first product. A value
    that the user has set is kept.
    """
    os.environ.setdefault(OF_SHAPES, SHAPES)


def _fast_float32_products() -> bool:
    """Let oneDNN compute float32 products, if they stay float32 on this processor.

    The setting is called "medium" and allows bfloat16. If the processor really uses bfloat16, the measured error
    shows it and the setting is reverted. On a GPU, which is not measured here, it would allow TF32.
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


class PeakMemory:
    """The peak memory of this process from now on.

    It is unknown if the system's high-water mark cannot be reset, as with a read-only /proc. The mark would then
    include everything that this process did before, such as another run.
    """

    def __init__(self) -> None:
        self.is_known = True
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        elif sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)
            _huge_pages()  # again for the free end of the heap, which has just been given back
            try:
                RESET.write_bytes(b"5")  # the resident set's high-water mark
            except OSError:
                self.is_known = False

    def bytes(self) -> int | None:
        """The peak up to now: GPU memory if there is a GPU, else resident memory; None if unknown."""
        if torch.cuda.is_available():
            return torch.cuda.max_memory_allocated()
        if sys.platform == "linux" and self.is_known:
            for line in STATUS.read_bytes().split(b"\n"):
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
        return None
