"""One lock: of a file or a folder, held by one process, and let go when that ends, however it ends.

It saves work and keeps lists whole. A file system may have no locks, and then everybody passes: so nothing becomes
wrong without it, and who may write in a run's folder is for its lease to say (`lease.py`). Nobody waits without end: a
process that keeps it for longer than others have patience was stopped, or sleeps.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.storage import atomic

TURN = 60.0  # seconds to wait for who reads a list, lengthens it and writes it
WORK = 3_600.0  # for who does work that would else be done twice
PAUSE = 0.02  # between two questions


def lock(handle: int, patience: float, tell: Callable[[], object] = lambda: None) -> bool:
    """Lock an open file or folder until it is closed or the process dies; False if another keeps it.

    `tell` is called once if that takes a while.
    """
    began, told = time.monotonic(), False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        else:
            return True


@contextmanager
def locked(path: Path, patience: float = TURN, tell: Callable[[], object] = lambda: None) -> Iterator[bool]:
    """Hold the lock of a file or folder that is there; gives False where another keeps it."""
    with atomic.named(path):
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # of a pipe: not until somebody writes
    try:
        yield lock(handle, patience, tell)
    finally:
        os.close(handle)
