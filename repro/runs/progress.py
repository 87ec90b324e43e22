"""What a sweep shows: which runs are done, running and missing, and then a line for each run in progress.

In a terminal the lines are updated in place; elsewhere they are plain, and few.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Protocol

from repro.render.terminal import beneath
from repro.render.text import shown
from repro.runs.forecast import duration, makespan
from repro.runs.run_dir import RunDir
from repro.tracking.run_folder import is_training

PLAIN_EVERY = 15.0  # seconds between plain lines
WHOLE_EVERY = 60.0  # seconds between two that tell of all runs


class Watched(Protocol):
    """Where a run reports while it is made."""

    def say(self, text: str) -> None:
        """A line that stays."""

    def begin(self, what: str, total: int) -> None:
        """A new piece of work, such as "h=1 seed 1"; its first step tells where it resumes."""

    def step(self, done: int, **numbers: float) -> None:
        """Progress of the current piece of work, with the numbers to show beside it."""


class Progress(ExitStack):
    """The runs of a table: a lane for each that is being made. Leave it as a context; quiet on ranks but the first."""

    def __init__(self, table: str, n_runs: int, *, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        super().__init__()
        self.table, self.n_runs, self.n_done = table, n_runs, 0
        self.console = Console(file=beneath(sys.stdout), quiet=quiet, highlight=False)  # it controls the terminal
        self.live = self.console.is_terminal
        self.bars = Bars(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            disable=not self.live,
            transient=True,
            refresh_per_second=4,  # enough to look alive; more would take time from training
        )
        self.enter_context(self.bars)
        self.lanes: list[Lane] = []
        self.expected: dict[int, float] = {}  # seconds of each run that is not done, by its number in the sweep
        self.told_left = self.began = self.last_end = time.monotonic()
        self.made: list[float] = []  # seconds that were forecast for the runs made here so far
        self.one_at_a_time = threading.RLock()  # a pool has a thread for each lane
        self.table_task = self.bars.add_task(escape(shown(table)), total=n_runs, numbers="runs", visible=n_runs > 1)

    def say(self, text: str) -> None:
        """A line that stays: a terminal breaks it between words, and a file has it whole."""
        self.console.print(shown(text), markup=False, soft_wrap=not self.live)
        self.console.file.flush()

    def show(self, page: str) -> None:
        """Show a page made for a terminal, in colour where the terminal has colours."""
        from rich.text import Text

        self.console.print(Text.from_ansi(page), soft_wrap=not self.live)

    def lane(self) -> "Lane":
        """A lane for one more run, beside the others."""
        self.lanes.append(Lane(self))
        return self.lanes[-1]

    def finish_run(self, number: int) -> None:
        """One more run of the table is done."""
        self.n_done += 1
        if number in self.expected:
            self.made.append(self.expected.pop(number))
            self.last_end = time.monotonic()
        self.bars.update(self.table_task, completed=self.n_done)

    def tell_left(self) -> None:
        """Show the time left, by the forecast and the pace of runs made: beside the bar, or as a line each minute."""
        if not self.expected or self.n_runs < 2:
            return
        now, n_lanes = time.monotonic(), max(1, len(self.lanes))
        spent = (self.last_end - self.began) * min(n_lanes, len(self.made))
        pace = spent / sum(self.made) if any(self.made) else 1.0
        seconds = makespan([*self.expected.values()], n_lanes) * pace - (now - self.last_end)
        left = f"about {duration(seconds)} left" if seconds > 0 else "longer than forecast"
        self.bars.update(self.table_task, numbers=f"runs  {left}")
        if not self.live and now - self.told_left >= WHOLE_EVERY:
            self.told_left = now
            self.say(f"{self.table}  {self.n_done} of {self.n_runs} runs done  {left}")


class Lane(Watched):
    """The line of one run after the other: table, row, step, loss, tokens per second, time left."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.bar = progress.bars.add_task("", total=1, numbers="", visible=False)
        self.started = self.printed = time.monotonic()

    def say(self, text: str) -> None:
        self.progress.say(text)

    def begin(self, what: str, total: int) -> None:
        from rich.markup import escape

        self.what, self.total = what, total
        self.first: int | None = None
        self.printed = time.monotonic()
        self.progress.bars.reset(self.bar, total=total, description=escape(shown(what)), visible=True, numbers="")

    def step(self, done: int, **numbers: float) -> None:
        with self.progress.one_at_a_time:
            values = "  ".join(f"{name} {value:,.{0 if value >= 100 else 3}f}" for name, value in numbers.items())
            self.progress.bars.update(self.bar, completed=done, numbers=values)
            now = time.monotonic()
            if self.first is None:
                self.first, self.started = done, now
            self.progress.tell_left()
            # as many lines a minute however many runs there are
            pause = PLAIN_EVERY * max(1, len(self.progress.lanes))
            if not self.progress.live and (now - self.printed >= pause or done >= self.total):
                self.printed = now
                here = done - self.first  # steps of this attempt
                left = f"{(now - self.started) / here * (self.total - done):.0f} s left" if here else ""
                line = (self.progress.table, self.what, f"{done}/{self.total}", values, left)
                self.say("  ".join(part for part in line if part))

    def rest(self) -> None:
        """Hide the line, since no run is made here for now."""
        self.progress.bars.update(self.bar, visible=False)


# Before a sweep begins ----------------------------------------------------------------------------------------


def overview(
    runs: Sequence[RunDir], expected: Sequence[float], measured: bool, n_workers: int = 1, shard: str | None = None
) -> str:
    """How many runs are done and begun, and how long what is left will take; finished runs are named when skipped."""
    states, left = Counter[str](), []
    for run, seconds in zip(runs, expected, strict=True):
        state = "finished" if run.finished() else "in another process" if is_training(run.folder) else ""
        states[state or ("begun" if run.last_step() else "to be begun")] += 1
        if not state:
            left.append(seconds * run.to_train())
    told = f"Shard {shard}, only these runs of the sweep. " if shard else ""
    told += f"Runs: {', '.join(f'{n} {state}' for state, n in states.items())}"
    if left:
        at_a_time = f" with {n_workers} at a time" * (n_workers > 1 and len(left) > 1)
        told += f"; about {duration(makespan(left, n_workers))} to come{at_a_time}{', guessed' * (not measured)}"
    return f"{told}."
