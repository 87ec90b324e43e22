"""What a signal does: before training it ends the process; in training it asks to stop, and a second ends it at once.

Each signal is answered at once, on the terminal. While a run trains, a signal only sets a flag: the run stops at its
next optimizer step, with a checkpoint.
"""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1") if hasattr(signal, name))

PARENT = "REPRO_PARENT"  # in the environment of a process that ends with another one: the number of that
ECHO = 5.0  # seconds in which PyTorch's launcher passes on to its processes what the terminal has sent them already


class Signals:
    """Ctrl-C, SIGTERM and what schedulers send before the end: asked for once, obeyed at the next step boundary.

    The exit code is 128 plus the signal's number: 130, 143, 129, 138.
    """

    def __init__(self) -> None:
        """Raises ValueError outside the main thread: other threads get no signals."""
        if threading.current_thread() is not threading.main_thread():
            raise ValueError(
                "a run handles signals, which reach only the main thread, and this is another one. Start the "
                "experiment's file as a process of its own: subprocess.run([sys.executable, FILE, ...], check=True)."
            )
        self.received, self.since = 0, 0.0
        self.training = False
        self.at_once = b"Stopped before training."  # what is said while nothing trains
        self.answer = b"Stopping after this step, with a checkpoint. A second signal stops at once."
        self.children: set[int] = set()  # processes that end when this one is ended at once
        # a launcher, a sweep or a task of Ray: if it is lost, nothing else can end this process
        named = os.environ.pop(PARENT, None)
        self._parent = int(named) if named else os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
        self._before = {number: signal.getsignal(number) for number in STOPPING}
        for number, handler in self._before.items():
            if handler is not signal.SIG_IGN:  # nohup: whoever started us wants it ignored
                signal.signal(number, self._handle)

    def leave(self) -> None:
        """Restore what signals did before, for programs that go on after the run."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received and "TORCHELASTIC_RUN_ID" in os.environ and now - self.since < ECHO:
            return
        if self.received:
            # not by an exception, which other code may catch or delay: files on the disk are whole at any time
            _answer(b"Stopped at once; the same command goes on from the last checkpoint.")
            for child in list(self.children):
                with suppress(OSError):
                    os.kill(child, signal.SIGKILL)
            os._exit(128 + number)
        self.received, self.since = number, now
        if not self.training:
            _answer(self.at_once)
            sys.exit(128 + number)
        _answer(self.answer)

    def should_stop(self) -> bool:
        """Whether a signal asked for it, or the process with which this one ends is gone."""
        return bool(self.received) or self._parent not in (None, os.getppid())


def _answer(words: bytes) -> None:
    """Say it on the terminal now, not through Python's streams, which may be in the middle of a line."""
    if os.environ.get("RANK", "0") == "0":  # of several processes the first speaks
        # progress lines go up by their own number of lines before they are drawn again
        below = b"\n\n" if os.isatty(2) else b"\n"
        with suppress(OSError):  # nobody is there to read it
            os.write(2, b"\n" + words + below)
