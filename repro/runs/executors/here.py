"""This process makes the runs, one after the other: `--jobs 1`, and every process of a run that has several."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from repro.runs.executors.attempt import attempt
from repro.runs.executors.executor import Made, Work
from repro.runs.progress import Progress
from repro.runs.signals import Signals
from repro.runs.speed.busy import BusyWatch
from repro.tracking.tracker import Tracker

if TYPE_CHECKING:
    from repro.training.group import Group


class Here(ExitStack):
    """An executor that starts nothing."""

    def __init__(self, cache: Path, tracker: Tracker, signals: Signals, group: "Group | None" = None) -> None:
        super().__init__()
        self.about, self.n_workers = "", 1
        self.cache, self.tracker, self.signals, self.group = cache, tracker, signals, group

    def measure(self, work: Sequence[Work], progress: Progress) -> None:
        """One after the other."""
        if self.group is None:
            from repro.runs.speed.measure import measure_run

            for one in work:
                measure_run(one.run, self.cache)

    def make(self, work: Sequence[Work], progress: Progress) -> Iterator[Made]:
        """In the order given; what goes wrong with one beyond the usual is raised, and ends it all."""
        lane, busy = progress.lane(), None
        for one in work:
            busy = busy or BusyWatch(progress.say, threads=one.run.settings.threads)
            lane.take(one.cell)
            self.signals.training = True
            try:
                record, code = attempt(one.run, self.tracker, lane, self.signals.should_stop, busy, self.group)
            finally:
                self.signals.training = False
            yield Made(run=one.run, record=record, code=code)
            if code > 128 or (code and self.group):
                return
