"""What a person watches while a table is made: a moving line for each run in a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Protocol, Self

from repro.render.console import beneath
from repro.render.escape import shown

PLAIN_EVERY = 15.0  # seconds between plain lines


class Watched(Protocol):
    """What a run tells while it is made."""

    def say(self, text: str) -> None:
        """A line that stays."""
        ...

    def begin(self, what: str, total: int) -> None:
        """A new piece of work, such as "h=1 seed 1"; its first step tells where it resumes."""
        ...

    def step(self, done: int, **numbers: float) -> None:
        """Progress of the current piece of work, with the numbers to show beside it."""
        ...


class Progress:
    """The runs of a table: a lane for each that is being made. Use as a context; quiet on all ranks but the first."""

    def __init__(self, table: str, n_runs: int, *, quiet: bool = False) -> None:
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self.table, self.n_runs, self.n_done = table, n_runs, 0
        self.console = Console(file=beneath(sys.stdout), quiet=quiet, highlight=False)  # it commands the terminal
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
        self.lanes: list[Lane] = []
        self.table_task = self.bars.add_task(escape(shown(table)), total=n_runs, numbers="runs", visible=n_runs > 1)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.console.print(shown(text), markup=False, soft_wrap=True)
        self.console.file.flush()

    def lane(self) -> "Lane":
        """Where one more run is watched, beside those that are."""
        self.lanes.append(Lane(self))
        return self.lanes[-1]

    def finish_run(self) -> None:
        """One more run of the table is done."""
        self.n_done += 1
        self.bars.update(self.table_task, completed=self.n_done)


class Lane:
    """One run after the other: table, row, step, loss, tokens per second, time left."""

    def __init__(self, board: Progress) -> None:
        self.board = board
        self.bar = board.bars.add_task("", total=1, numbers="", visible=False)
        self.started = self.printed = time.monotonic()

    def say(self, text: str) -> None:
        """A line that stays."""
        self.board.say(text)

    def begin(self, what: str, total: int) -> None:
        """A new piece of work, such as "h=1 seed 1"; its first step tells where it resumes."""
        from rich.markup import escape

        self.what, self.total = what, total
        self.first: int | None = None
        self.printed = time.monotonic()
        self.board.bars.reset(self.bar, total=total, description=escape(shown(what)), visible=True, numbers="")

    def step(self, done: int, **numbers: float) -> None:
        """Progress of the current piece of work, with the numbers to show beside it."""
        values = "  ".join(f"{name} {value:,.{0 if value >= 100 else 3}f}" for name, value in numbers.items())
        self.board.bars.update(self.bar, completed=done, numbers=values)
        now = time.monotonic()
        if self.first is None:
            self.first, self.started = done, now
        # as many lines a minute however many runs there are
        pause = PLAIN_EVERY * len(self.board.lanes)
        if not self.board.live and (now - self.printed >= pause or done >= self.total):
            self.printed = now
            here = done - self.first  # steps of this attempt
            left = f"{(now - self.started) / here * (self.total - done):.0f} s left" if here else ""
            line = (self.board.table, self.what, f"{done}/{self.total}", values, left)
            self.say("  ".join(part for part in line if part))

    def rest(self) -> None:
        """Nothing is made here for now."""
        self.board.bars.update(self.bar, visible=False)
