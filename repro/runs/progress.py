"""What a person watches while a table is made: one moving line in a terminal, plain lines elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

from repro.render.console import beneath
from repro.render.escape import shown

PLAIN_EVERY = 15.0  # seconds between plain lines


class Progress:
    """Table, row, step, loss, tokens per second, time left. Use as a context; quiet on all ranks but the first."""

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
        self.run_task = self.bars.add_task("", total=1, numbers="", visible=False)
        self.table_task = self.bars.add_task(escape(shown(table)), total=n_runs, numbers="runs", visible=n_runs > 1)
        self.started = self.printed = time.monotonic()

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

    def begin(self, what: str, total: int) -> None:
        """A new piece of work, such as "h=1 seed 1"; its first step tells where it resumes."""
        from rich.markup import escape

        self.what, self.total = what, total
        self.first: int | None = None
        self.printed = time.monotonic()
        self.bars.reset(self.run_task, total=total, description=escape(shown(what)), visible=True, numbers="")

    def step(self, done: int, **numbers: float) -> None:
        """Progress of the current piece of work, with the numbers to show beside it."""
        values = "  ".join(f"{name} {value:,.{0 if value >= 100 else 3}f}" for name, value in numbers.items())
        self.bars.update(self.run_task, completed=done, numbers=values)
        now = time.monotonic()
        if self.first is None:
            self.first, self.started = done, now
        if not self.live and (now - self.printed >= PLAIN_EVERY or done >= self.total):
            self.printed = now
            here = done - self.first  # steps of this attempt
            left = f"{(now - self.started) / here * (self.total - done):.0f} s left" if here else ""
            self.say("  ".join(part for part in (self.table, self.what, f"{done}/{self.total}", values, left) if part))

    def finish_run(self) -> None:
        """One more run of the table is done."""
        self.n_done += 1
        self.bars.update(self.table_task, completed=self.n_done)
