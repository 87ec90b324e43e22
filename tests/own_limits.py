"""Limits of the system for the tests of those who meet them."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def files_of(size: int) -> Iterator[None]:
    """No file grows beyond this many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
