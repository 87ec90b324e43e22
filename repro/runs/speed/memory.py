"""What a run takes of memory, before it is begun, and what is free. Measured constants; no torch."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from repro.model.config import Hyper

MEMINFO, CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
FLOAT = 4  # bytes
IMPORTS = 760_000_000  # PyTorch, Lightning, the tracker, and what the allocator keeps of what was freed
OF_CUDA = 2_000_000_000  # of its libraries in the host's memory: a guess, no GPU was at hand
COPIES = 5  # of each parameter: itself, its gradient, Adam's two moments, and the average that is scored
LARGE_PRODUCT = 2**23  # as `repro/training/cpu_tuning.py` has it: from there on oneDNN has products, and keeps some
LOGITS = 2_048  # rows that the loss makes at once, at most, with their softmax and gradient (`repro/model/loss.py`)
KEPT_SHAPES, KEPT_A_TOKEN = 600_000_000, 75_000  # bytes that it keeps: of any shapes, and for a token of a batch
WIDE, KEPT_WIDE = "avx512f", 500_000_000  # a processor with these vectors has code made for small products as well


@dataclass(frozen=True, kw_only=True)
class MemoryUse:
    """The sizes of a run that its row does not say."""

    n_parameters: int
    vocabulary: int
    tokens: int  # of each side that the process takes at once
    vectors: Collection[str] = ()  # of the processor, as `repro.results.processor` names them


def memory_use(hyper: Hyper, use: MemoryUse) -> int:
    """Resident bytes of a process that trains the row, at its peak.

    Kept for the backward pass, of each token and layer: what enters and leaves the products, norms and dropout of both
    stacks. `tests/runs/speed/test_memory.py` holds it against the peaks of published runs.
    """
    width = hyper.n_heads * (2 * hyper.d_k + hyper.d_v)
    a_layer = 14 * hyper.d_model + 6 * hyper.d_ff + 6 * width
    activations = use.tokens * hyper.n_layers * a_layer * FLOAT
    logits = 2 * min(use.tokens, LOGITS) * use.vocabulary * FLOAT
    kept = KEPT_WIDE if WIDE in use.vectors else 0
    if use.tokens * hyper.d_model**2 >= LARGE_PRODUCT:
        kept = KEPT_SHAPES + KEPT_A_TOKEN * use.tokens
    return IMPORTS + COPIES * FLOAT * use.n_parameters + activations + logits + kept


def host_memory(use: MemoryUse) -> int:
    """Resident bytes of a process whose work is on a GPU: its libraries, and what it reads, writes and averages."""
    return IMPORTS + OF_CUDA + COPIES * FLOAT * use.n_parameters


def free_memory(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> int | None:
    """Bytes that new processes may take without pushing others out; None where nobody says.

    Of this machine, or of the control group that this process is in, whichever leaves less.
    """
    found = [_available(meminfo), _granted(cgroup)]
    return min((one for one in found if one is not None), default=None)


def _available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_bytes().split(b"\n")
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _granted(cgroup: Path) -> int | None:
    """What is left of the group's limit: version 2 or 1; its file cache counts as free."""
    for limit, used, stat, cached in (
        ("memory.max", "memory.current", "memory.stat", b"inactive_file "),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", b"total_inactive_file "),
    ):
        try:
            most, now = int((cgroup / limit).read_bytes()), int((cgroup / used).read_bytes())
            lines = (cgroup / stat).read_bytes().split(b"\n")
        except (OSError, ValueError):  # no such file, or "max"
            continue
        return max(0, most - now + sum(int(line.split()[1]) for line in lines if line.startswith(cached)))
    return None
