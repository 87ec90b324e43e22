"""One process after the other, where several read a folder and write what comes of it: none loses what another wrote.

Each file is whole without it (`atomic.py`); a list that two read, lengthen and write at once would lack an entry.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from repro.storage import atomic

PATIENCE = 60.0  # seconds: whoever holds a turn for so long sleeps, and nobody waits for that
PAUSE = 0.02  # between two questions


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Be the only one in a folder, which is made where it is not there; the lock is that of the folder itself.

    Where the file system has no locks, or another does not let go, it goes on: then the last one to write decides.
    """
    atomic.make_folder(folder)
    with atomic.named(folder):
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _wait_for(handle)
        yield
    finally:
        with suppress(OSError):
            os.close(handle)  # and with it goes the lock


def _wait_for(handle: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                return  # no locks here
        time.sleep(PAUSE)
