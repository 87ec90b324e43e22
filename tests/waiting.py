"""What tests wait for that others do, and where these may meet."""

import os
import socket
import time
from collections.abc import Callable
from typing import Any


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
