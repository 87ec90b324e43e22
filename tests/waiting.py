"""What tests wait for that others do, where these may meet, and what the processor under them can do."""

import os
import platform
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def until(condition: Callable[[], Any], seconds: float = 240.0, said: Callable[[], object] = lambda: "") -> Any:
    """What `condition` gives once that counts as true; fails after so many seconds, with what is `said` then."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain: {said()}"
        time.sleep(0.02)
    return found


def ended_process() -> int:
    """The number of a process that has ended."""
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
    return child


def free_port() -> int:
    """One that nobody listens at on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


CPUINFO = Path("/proc/cpuinfo")
FLAGS = frozenset(CPUINFO.read_bytes().decode("ascii", "replace").split()) if CPUINFO.exists() else frozenset()

# without these instructions the sum of two 8-bit products is cut off at 16 bits (microsoft/onnxruntime#6004)
exact_8_bits = pytest.mark.skipif(
    platform.machine() in ("x86_64", "AMD64") and not {"avx512_vnni", "avx_vnni"} & FLAGS,
    reason="8-bit products of this processor saturate: it has no VNNI.",
)
