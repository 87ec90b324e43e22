"""How far runs are that other processes make, read from their files."""

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repro.results.record import Record
    from repro.runs.progress import Lane, Progress
    from repro.runs.run_dir import RunDir

STEP = re.compile(rb'"kind": "train", "step": (\d+)')
LANES = 8  # runs that are watched step by step
LATE, LOOK = 60.0, 0.5  # seconds in which a file of a shared folder may become visible, and between two looks at it


def noted_step(journal: Path) -> int:
    """The last step that a run has noted, 0 if none."""
    steps = STEP.findall(end_of(journal))
    return int(steps[-1]) if steps else 0


def late_record(run: "RunDir", seconds: float, should_stop: Callable[[], bool]) -> "Record | None":
    """The record of a run, if it has one or a shared folder shows one within so many seconds."""
    until = time.monotonic() + seconds
    while not (record := run.finished()) and time.monotonic() < until and not should_stop():
        time.sleep(min(LOOK, seconds))
    return record


def end_of(path: Path, n_bytes: int = 8_000) -> bytes:
    """The last bytes of a file; empty where it cannot be read, or is no regular file."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - n_bytes))
            return file.read()
    except OSError:
        return b""


def tail(log: str, lines: int = 12) -> str:
    """The last lines of a log file."""
    text = end_of(Path(log), 20_000).decode("utf-8", "replace").rstrip()
    return "\n".join(f"  | {line}" for line in text.split("\n")[-lines:]) if text else "  (empty)"


def how_it_ended(code: int) -> str:
    """How a process ended, in words."""
    return f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"


class Lanes:
    """Such runs on the terminal: a lane for each, as far as there is room."""

    def __init__(self, progress: "Progress") -> None:
        self._progress = progress
        self._lanes: dict[int, Lane] = {}
        self._free: list[Lane] = []
        self._steps: dict[int, int] = {}

    def show(self, running: "Mapping[int, RunDir]") -> None:
        """Show those that run now, each by its number."""
        for number in [number for number in self._lanes if number not in running]:
            self._free.append(self._lanes.pop(number))
            self._free[-1].rest()
        for number, run in running.items():
            if number not in self._lanes:
                if len(self._lanes) == LANES:
                    continue
                self._lanes[number] = self._free.pop() if self._free else self._progress.lane()
                self._lanes[number].begin(run.name, run.spec.hyper.steps)
                self._steps[number] = -1
            if (step := noted_step(run.folder / "journal.jsonl")) > self._steps[number]:
                self._steps[number] = step
                self._lanes[number].step(step)
