"""The memory and disk that runs take, by measured constants, and what this machine has and what is free. No torch."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from repro.model.config import Hyper
from repro.model.cost import PAPER_VOCABULARY, n_parameters
from repro.runs.scales import Scale

CGROUP = Path("/sys/fs/cgroup")
FLOAT = 4  # bytes
COPIES = 5  # of each parameter: itself, its gradient, Adam's two moments, and the average that is scored
LOGITS = 2_048  # rows that the loss makes at once, at most, with their softmax and gradient (`repro/model/loss.py`)
ALWAYS = 1_360_000_000  # of every process: PyTorch, Lightning, the tracker, and what allocators keep
BYTES_A_PARAMETER = 12  # in a checkpoint: the weight and Adam's two moments
SPARE_CHECKPOINTS = 2  # the newest, beside those that are scored
BYTES_A_CHECKPOINT, BYTES_A_LINE = 64_000, 250  # at most: names and counters of a checkpoint; a line of the journal


def expected_vocabulary(scale: Scale, pair: str) -> int:
    """The size of the vocabulary; the paper's for one that comes with its text."""
    return scale.subwords(pair).size or PAPER_VOCABULARY


def run_memory(hyper: Hyper, scale: Scale, pair: str, system: Any = None) -> int:
    """Peak resident bytes of a process that makes this run here; on a GPU an upper bound of those of the host.

    For each token and layer, the backward pass keeps what enters and leaves the products, norms and dropout of both
    stacks. `tests/runs/test_forecast.py` compares the forecast with the peaks of published runs.
    """
    vocabulary, tokens = expected_vocabulary(scale, pair), min(scale.batch_tokens, scale.device_tokens)
    width = hyper.n_heads * (2 * hyper.d_k + hyper.d_v)
    activations = tokens * hyper.n_layers * (14 * hyper.d_model + 6 * hyper.d_ff + 6 * width)
    logits = 2 * min(tokens, LOGITS) * vocabulary
    return ALWAYS + FLOAT * (COPIES * n_parameters(hyper, vocabulary, system) + activations + logits)


def free_memory(cgroup: Path = CGROUP) -> int:
    """Bytes that new processes may take without pushing others out.

    Of this machine, or of the control group that this process is in, whichever leaves less; its file cache is free.
    """
    free = psutil.virtual_memory().available
    try:
        most, used = (int((cgroup / f"memory.{name}").read_bytes()) for name in ("max", "current"))
        lines = (cgroup / "memory.stat").read_bytes().split(b"\n")
    except (OSError, ValueError):  # no such file, or "max"
        return free
    cached = sum(int(line.split()[1]) for line in lines if line.startswith(b"inactive_file "))
    return min(free, max(0, most - used + cached))


def processors() -> int:
    """How many processors this process may use: more threads than that wait for each other.

    The size of its CPU set, or the number that its control group grants, whichever is less.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, granted() or usable)


def granted(root: Path = CGROUP) -> int | None:
    """How many processors' time the control group of this process may use, rounded up; None if there is no limit."""
    both = root / "cpu.max"  # version 2: quota and period
    files = [both] if both.exists() else [root / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period")]
    try:
        quota, period = (int(word) for file in files for word in file.read_bytes().split())
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return max(1, -(-quota // period)) if quota > 0 else None


def run_bytes(hyper: Hyper, scale: Scale, pair: str, system: Any = None, *, in_training: bool = False) -> int:
    """Bytes of checkpoints and journal that a finished run keeps; with `in_training`, the most until it is scored."""
    n = n_parameters(hyper, expected_vocabulary(scale, pair), system)
    checkpoint = BYTES_A_PARAMETER * n + BYTES_A_CHECKPOINT
    lines = hyper.steps // scale.log_every + hyper.steps // scale.validate_every + 1
    scored = hyper.kept_steps if in_training else hyper.averaged_steps
    return checkpoint * (SPARE_CHECKPOINTS + len(scored)) + lines * BYTES_A_LINE


def sweep_bytes(of_runs: Iterable[tuple[Hyper, Scale, str, Any]]) -> int:
    """Bytes on the disk for runs: `run_bytes` of each, and the most that one of them takes beyond that in training."""
    both = [(run_bytes(*one), run_bytes(*one, in_training=True)) for one in of_runs]
    return sum(kept for kept, _ in both) + max((most - kept for kept, most in both), default=0)


def size(n_bytes: float) -> str:
    """Bytes as a person says them."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes / 1e3:.0f} kB"
