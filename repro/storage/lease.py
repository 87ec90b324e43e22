"""Who may write in a run's folder: one process, for as long as it shows signs of life.

Each attempt at a run takes the next number by making a folder of that name. On any file system, with locks or without,
only one of two processes can make it. Its owner then beats: it counts up in the time of a file. A later process that
sees no new beat takes the next number, and from then on the old owner may write nothing.

    runs/<id>/attempts/000003/owner.json    who it is; the file's time is the beat: 1, 2, 3, ..., 0 once it is released
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
FRUITLESS = 3  # attempts killed before their first checkpoint, after which `NoProgress` is raised

FORMAT = 1

_OWNER, _TOLD = "owner.json", "told.json"


class Superseded(RuntimeError):
    """Another process has taken over the run: this one must write nothing more."""


class NoProgress(RuntimeError):
    """The last attempts were all killed before they had a new checkpoint."""


class Lease:
    """The right to write in a run's folder, for an attempt that begins at `step`. Use it as a context manager.

    Raises BlockingIOError if another process has it and is alive, `NoProgress` once after `FRUITLESS` attempts that
    were killed without a new checkpoint. `is_held` says whether the other process holds its lock: a second sign of
    life, never the only one, as some file systems have no locks. `tell` is told why taking the lease takes long.
    """

    def __init__(
        self, run: Path, step: int, is_held: Callable[[], bool] = lambda: False, tell: Callable[[str], object] = print
    ) -> None:
        self._attempts = run / "attempts"
        atomic.make_folder(self._attempts)
        before = _attempts_of(run)
        if before:
            _wait_until_gone(before[-1], is_held, tell)
            _count(before, step)
        self.number = int(before[-1].name) + 1 if before else 1
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


def was_killed(run: Path) -> bool:
    """Whether the owner of the last attempt did not release the run. It may be alive: callers check that as well."""
    return any(_heard(last) > 0 for last in _attempts_of(run)[-1:])


def let_go(run: Path) -> None:
    """Release a run that `was_killed`, in place of its owner, once all that it left undone is done."""
    owner = _attempts_of(run)[-1] / _OWNER
    with atomic.named(owner):
        os.utime(owner, (0, 0))


def _name(number: int) -> str:
    return f"{number:06}"


def _attempts_of(run: Path) -> list[Path]:
    """The folders of all attempts, in order."""
    attempts = run / "attempts"
    with atomic.named(attempts):
        return sorted(path for path in attempts.iterdir() if path.name.isdecimal()) if attempts.is_dir() else []


def _owner(attempt: Path) -> dict[str, Any]:
    """What the owner wrote about itself; empty if it was killed before writing it, or if the file is damaged.

    The file is signed: with one digit of the process id changed, a living owner would count as dead.
    """
    try:
        return signed_json.read(attempt / _OWNER, "an owner", FORMAT)
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


def _wait_until_gone(attempt: Path, is_held: Callable[[], bool], tell: Callable[[str], object]) -> None:
    """Return once the owner of an attempt released it, is dead or stopped beating; else raise BlockingIOError."""
    heard, patience = _heard(attempt), time.monotonic() + MISSED * EVERY
    if heard > 0 and not _owner(attempt):
        tell(
            f"{attempt / _OWNER} is damaged or of another version, so the owner of this run is unknown. Waiting "
            f"{MISSED * EVERY:.0f} s for its sign of life; if there is none, the run goes on here."
        )
    while _heard(attempt) != 0 and not is_dead(_owner(attempt)):
        if _heard(attempt) != heard:
            raise BlockingIOError(f"{attempt.parents[1]} has a writer: {_who(attempt)}. Wait, or stop it.")
        if time.monotonic() > patience:
            if not is_held():
                return
            raise BlockingIOError(
                f"{attempt.parents[1]} has a writer: {_who(attempt)}. It holds its lock but gives no sign of life. If "
                "it is paused, resume it or end it."
            )
        time.sleep(EVERY / 20)


def _count(attempts: list[Path], step: int) -> None:
    """Raise `NoProgress`, once, if the last `FRUITLESS` attempts began at this step and were killed."""
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
