"""Who may write in a run's folder: one process, for as long as it shows signs of life.

Each attempt at a run takes the next number by making a folder of that name. On any file system, with locks or without,
only one of two processes can make it. Its owner then beats: it counts up in the time of a file. A later process that
sees no new beat takes the next number, and from then on the old owner may write nothing.

    runs/<id>/attempts/000003/owner.json    who it is; the file's time is the beat: 1, 2, 3, ..., 0 once it is released
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from repro.storage import atomic, signed_json

EVERY = 5.0  # seconds between two beats
MISSED = 3  # beats that an owner may miss before it counts as gone

_FORMAT, _OWNER = 1, "owner.json"


class Superseded(RuntimeError):
    """Another process has taken over the run: this one must write nothing more."""


class Lease:
    """The right to write in a run's folder. Use it as a context manager.

    Raises BlockingIOError if another process has it and is alive.
    """

    def __init__(self, run: Path) -> None:
        self._attempts = run / "attempts"
        atomic.make_folder(self._attempts)
        with atomic.named(self._attempts):
            before = sorted(path for path in self._attempts.iterdir() if path.name.isdecimal())
        if before:
            _wait_until_gone(before[-1])
        self.number = int(before[-1].name) + 1 if before else 1
        self._folder = self._attempts / _name(self.number)
        with atomic.named(self._folder):
            try:
                self._folder.mkdir()
            except FileExistsError:
                raise BlockingIOError(f"{run} was taken by another process at the same moment.") from None
            signed_json.write(self._folder / _OWNER, atomic.this_process() | {"format": _FORMAT})
            self._beats = 0
            self._beat()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, name=f"lease of {run.name}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise `Superseded` if another attempt has begun. Call it before every write."""
        if (self._attempts / _name(self.number + 1)).exists():
            raise Superseded(
                f"{self._attempts.parent} was taken over by {_who(self._attempts / _name(self.number + 1))}, as this "
                f"process gave no sign of life for {MISSED * EVERY:.0f} s. It has stopped and written nothing since."
            )

    def close(self) -> None:
        """Release the run, so that the next attempt need not wait."""
        self._closing.set()
        self._thread.join()
        with suppress(OSError):  # an earlier error must not be hidden; the next attempt only waits a little
            os.utime(self._folder / _OWNER, (0, 0))

    def _beat(self) -> None:
        self._beats += 1
        os.utime(self._folder / _OWNER, (self._beats, self._beats))

    def _keep_beating(self) -> None:
        while not self._closing.wait(EVERY):
            with suppress(OSError):  # a file server that does not answer now may answer the next beat
                self._beat()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _name(number: int) -> str:
    return f"{number:06}"


def _owner(attempt: Path) -> dict[str, Any]:
    """What the owner wrote about itself; empty if it was killed before writing it, or if the file is damaged.

    The file is signed: with one digit of the process id changed, a living owner would count as dead.
    """
    try:
        return signed_json.read(attempt / _OWNER, "an owner", _FORMAT)
    except (OSError, ValueError):
        return {}


def _heard(attempt: Path) -> int:
    """The last beat in nanoseconds: 0 if released, -1 if none. In seconds, a clock begun in 1970 could say 0 too."""
    try:
        return (attempt / _OWNER).stat().st_mtime_ns
    except FileNotFoundError:
        return -1


def _who(attempt: Path) -> str:
    owner = _owner(attempt)
    return f"process {owner.get('pid', '?')} on {owner.get('host', '?')} (attempt {int(attempt.name)})"


def _wait_until_gone(attempt: Path) -> None:
    """Return once the owner of an attempt released it, is dead or stopped beating; else raise BlockingIOError."""
    heard, patience = _heard(attempt), time.monotonic() + MISSED * EVERY
    while _heard(attempt) != 0 and not atomic.is_dead(_owner(attempt)) and time.monotonic() <= patience:
        if _heard(attempt) != heard:
            raise BlockingIOError(f"{attempt.parents[1]} has a writer: {_who(attempt)}. Wait, or stop it.")
        time.sleep(EVERY / 20)
