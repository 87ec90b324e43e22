"""What a signal does: before training it ends the process, during training it asks, and a second one ends it at once.

Nothing but a flag is set while a run trains: it stops at its next optimizer step, with a checkpoint.
"""

import os
import signal
import sys
import time
from types import FrameType

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1") if hasattr(signal, name))

ECHO = 5.0  # seconds in which PyTorch's launcher passes on to its processes what the terminal has sent them already


class Signals:
    """Ctrl-C, SIGTERM and what schedulers send before the end: asked for once, obeyed at the next step boundary.

    The exit code is 128 and the signal's number: 130, 143, 129, 138.
    """

    def __init__(self) -> None:
        self.received, self.since = 0, 0.0
        self.training = False
        for number in STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup: whoever started us wants it ignored
                signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received and "LOCAL_RANK" in os.environ and now - self.since < ECHO:
            return
        if self.received:
            # not by an exception, which others may catch, delay or answer with work: what lasts is whole at any time
            os.write(2, b"\nStopped at once; the same command goes on from the last checkpoint.\n")
            os._exit(128 + number)
        self.received, self.since = number, now
        if not self.training:
            sys.exit(128 + number)

    def should_stop(self) -> bool:
        return bool(self.received)
