"""Commands that are tested inside this process answer signals their way; afterwards it answers its own way again."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from repro.signals import STOPPING


@contextmanager
def own_signals() -> Iterator[None]:
    """Put every handler back that a command may have set."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
