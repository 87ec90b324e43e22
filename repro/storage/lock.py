"""A lock on a file or folder, held by one process and released when that process ends, however it ends.

It saves work and keeps lists whole. On a file system without locks every process gets it, so nothing may become wrong
without it: a lease decides who may write in a run's folder (`lease.py`). Nobody waits for ever: a process that holds a
lock for longer than others wait was stopped, or sleeps.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from repro.storage import atomic

TURN = 60.0  # seconds to wait while another process reads a list, adds to it and writes it
WORK = 3_600.0  # seconds to wait while another process does work that would otherwise be done twice
PAUSE = 0.02  # seconds between two tries


def lock(handle: int, patience: float) -> bool:
    """Lock an open file or folder until it is closed or the process ends; False after `patience` seconds."""
    ends = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(min(PAUSE, patience))
        except OSError:  # a file system without locks: go on as if alone
            return True


@contextmanager
def locked(path: Path, patience: float = TURN, *, make: bool = False) -> Iterator[bool]:
    """Hold the lock of a file (`make` it if need be) or folder; yields False if another process keeps it."""
    with atomic.named(path):
        handle = os.open(path, os.O_RDONLY | (os.O_CREAT if make else 0), 0o666)
    try:
        yield lock(handle, patience)
    finally:
        os.close(handle)


@contextmanager
def alone(path: Path, tell: Callable[[str], object]) -> Iterator[None]:
    """Wait while another process does the same work, so that it is done once; go on without the lock after `WORK` s."""
    atomic.make_folder(path.parent)
    with locked(path, 10 * PAUSE, make=True) as mine, ExitStack() as later:
        if not mine:
            tell(f"Another process holds {path}; waiting for it.")
            if not later.enter_context(locked(path, WORK)):
                tell(f"{path} was held for {WORK / 60:.0f} minutes: going on without it.")
        yield
