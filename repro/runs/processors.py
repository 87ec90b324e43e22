"""How many processors this process may use: more threads than that wait for each other."""

import os
from pathlib import Path


def processors() -> int:
    """The size of its CPU set, or the number that its control group grants, whichever is less."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, granted() or usable)


def granted(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """How many processors' time the control group of this process may use, rounded up; None if there is no limit."""
    both = root / "cpu.max"  # version 2: quota and period
    files = [both] if both.exists() else [root / "cpu" / f"cpu.cfs_{name}_us" for name in ("quota", "period")]
    try:
        quota, period = (int(word) for file in files for word in file.read_bytes().split())
    except (OSError, ValueError):  # no such file, or "max"
        return None
    return max(1, -(-quota // period)) if quota > 0 else None
