"""Who may write in a run's folder: one process, and the same one for as long as it is heard of.

Each attempt at a run takes the next number by making a folder of that name, which on any file system, with locks or
without, only one of two processes can do. Its owner then beats: it counts up in a file. Who comes later and hears
nothing takes the next number, and from then on the old owner is refused whatever it still wants to write.

    runs/<id>/attempts/000003/owner.json    who it is; the file's time is the beat: 1, 2, 3, ..., and 0 once it let go
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from repro.storage import atomic, signed_json
from repro.storage.process import is_dead, this_process

EVERY = 5.0  # seconds between two beats
MISSED = 3  # beats that an owner may miss before it counts as gone
FRUITLESS = 3  # attempts that were killed before their first checkpoint, after which it is said

FORMAT = 1

_OWNER, _TOLD = "owner.json", "told.json"


class Superseded(RuntimeError):
    """Another process has taken the run over: this one may write nothing any more."""


class NoProgress(RuntimeError):
    """The last attempts were all killed before they had a new checkpoint."""


class Lease:
    """The right to write in the folder of a run, from an attempt at `step` on. Use as a context.

    Raises BlockingIOError if another process has it and is alive, `NoProgress` once after `FRUITLESS` attempts that
    were killed without a new checkpoint. `is_held` is a second sign of life, where there are locks; it must not be
    the only one, as some file systems let everybody pass. `tell` hears why it takes longer than usual.
    """

    def __init__(
        self, run: Path, step: int, is_held: Callable[[], bool] = lambda: False, tell: Callable[[str], object] = print
    ) -> None:
        self._attempts = run / "attempts"
        atomic.make_folder(self._attempts)
        before = _numbers(self._attempts)
        if before:
            _wait_until_gone(self._attempts / _name(before[-1]), is_held, tell)
            _count([self._attempts / _name(number) for number in before], step)
        self.number = before[-1] + 1 if before else 1
        self._folder = self._attempts / _name(self.number)
        try:
            with atomic.named(self._folder):
                self._folder.mkdir()
        except FileExistsError:
            raise BlockingIOError(f"{run} was taken by another process at the same moment. Wait, or stop it.") from None
        signed_json.write(self._folder / _OWNER, this_process() | {"step": step, "format": FORMAT})
        self._beats = 0
        with atomic.named(self._folder / _OWNER):
            self._beat()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_beating, name=f"lease of {run.name}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise `Superseded` where another attempt has begun: to be called before every write."""
        if (self._attempts / _name(self.number + 1)).exists():
            raise Superseded(
                f"{self._attempts.parent} was taken over by {_who(self._attempts / _name(self.number + 1))}, as this "
                f"process was not heard of for {MISSED * EVERY:.0f} s. It has stopped and written nothing since."
            )

    def close(self) -> None:
        """Let go, so that the next attempt need not wait."""
        self._closing.set()
        self._thread.join()
        with suppress(OSError):  # what went wrong before is to be told, and who comes next waits a little
            os.utime(self._folder / _OWNER, (0, 0))

    def _beat(self) -> None:
        self._beats += 1
        os.utime(self._folder / _OWNER, (self._beats, self._beats))

    def _keep_beating(self) -> None:
        while not self._closing.wait(EVERY):
            with suppress(OSError):  # a server that does not answer now answers the next beat
                self._beat()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def was_killed(run: Path) -> bool:
    """Whether the owner of the last attempt at a run never let go. It may live: who asks looks for that as well."""
    return (last := _last(run)) is not None and _heard(last) > 0


def let_go(run: Path) -> None:
    """Say it for the owner of the last attempt, once all is done that it left."""
    if (last := _last(run)) is not None and _heard(last) > 0:
        with atomic.named(last / _OWNER):
            os.utime(last / _OWNER, (0, 0))


def _last(run: Path) -> Path | None:
    attempts = run / "attempts"
    numbers = _numbers(attempts) if attempts.is_dir() else []
    return attempts / _name(numbers[-1]) if numbers else None


def _name(number: int) -> str:
    return f"{number:06}"


def _numbers(attempts: Path) -> list[int]:
    with atomic.named(attempts):
        return sorted(int(path.name) for path in attempts.iterdir() if path.name.isdecimal())


def _owner(attempt: Path) -> dict[str, Any]:
    """What the owner wrote about itself; nothing if it was killed before it could, or if that is damaged.

    Signed, as a digit of a process's number that has changed would make the living dead.
    """
    try:
        return signed_json.read(attempt / _OWNER, "an owner", FORMAT)
    except (OSError, ValueError, RecursionError):
        return {}


def _heard(attempt: Path) -> int:
    """Of the beats the last one, in nanoseconds; 0: it let go. To the nanosecond, as a clock may begin in 1970."""
    try:
        return (attempt / _OWNER).stat().st_mtime_ns
    except FileNotFoundError:
        return -1


def _who(attempt: Path) -> str:
    owner = _owner(attempt)
    return f"process {owner.get('pid', '?')} on {owner.get('host', '?')} (attempt {int(attempt.name)})"


def _wait_until_gone(attempt: Path, is_held: Callable[[], bool], tell: Callable[[str], object]) -> None:
    """Return when the owner of an attempt let go, is dead or was not heard of for long; else BlockingIOError."""
    heard, patience = _heard(attempt), time.monotonic() + MISSED * EVERY
    if heard > 0 and not _owner(attempt):
        tell(
            f"{attempt / _OWNER} is damaged or of another version: it no longer says who makes this run. Listening "
            f"{MISSED * EVERY:.0f} s for a sign of life; without one the run goes on here."
        )
    while _heard(attempt) != 0 and not is_dead(_owner(attempt)):
        if _heard(attempt) != heard:
            raise BlockingIOError(f"{attempt.parents[1]} has a writer: {_who(attempt)}. Wait, or stop it.")
        if time.monotonic() > patience:
            if not is_held():
                return
            raise BlockingIOError(
                f"{attempt.parents[1]} has a writer: {_who(attempt)}. It keeps its lock but is not heard of; if it was "
                "stopped, let it go on or end it."
            )
        time.sleep(EVERY / 20)


def _count(attempts: list[Path], step: int) -> None:
    """Raise `NoProgress` if the last attempts began where this one begins, and were killed; once."""
    for attempt in attempts[: -FRUITLESS - 1 : -1]:
        if _heard(attempt) == 0 or _owner(attempt).get("step", step) != step or (attempt / _TOLD).exists():
            return
    if len(attempts) < FRUITLESS:
        return
    atomic.write_json(attempts[-1] / _TOLD, {"step": step})
    raise NoProgress(
        f"{attempts[-1].parents[1]}: no progress in {FRUITLESS} attempts. All began after step {step} and were killed "
        "before their next checkpoint: for want of memory, or by a limit of time? The same command tries again."
    )
