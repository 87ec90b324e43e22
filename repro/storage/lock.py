"""A lock on a file or folder, held by one process and released when that process ends, however it ends.

It saves work and keeps lists whole. On a file system without locks every process gets it, so nothing may become wrong
without it: a lease decides who may write in a run's folder (`lease.py`). Nobody waits for ever: a process that holds a
lock for longer than others wait was stopped, or sleeps.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.storage import atomic

TURN = 60.0  # seconds to wait while another process reads a list, adds to it and writes it
WORK = 3_600.0  # seconds to wait while another process does work that would otherwise be done twice
PAUSE = 0.02  # seconds between two tries


def lock(handle: int, patience: float, tell: Callable[[], object] = lambda: None) -> bool:
    """Lock an open file or folder until it is closed or the process ends; False after `patience` seconds.

    `tell` is called once if the wait takes a while.
    """
    began, told = time.monotonic(), False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            waited = time.monotonic() - began
            if waited >= patience:
                return False
            if waited > 10 * PAUSE and not told:
                told = True
                tell()
            time.sleep(min(PAUSE, patience))
        except OSError:  # a file system without locks: go on as if alone
            return True


@contextmanager
def locked(
    path: Path, patience: float = TURN, tell: Callable[[], object] = lambda: None, *, make: bool = False
) -> Iterator[bool]:
    """Hold the lock of a file (`make` it if need be) or folder; yields False if another process keeps it."""
    with atomic.named(path):
        handle = os.open(path, os.O_RDONLY | (os.O_CREAT if make else 0), 0o666)
    try:
        yield lock(handle, patience, tell)
    finally:
        os.close(handle)
