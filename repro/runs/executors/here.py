"""This process makes the runs, one after the other: `--jobs 1`, and every process of a run that has several."""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from repro.runs.command import code_of
from repro.runs.executors.attempt import attempt
from repro.runs.executors.executor import FAILED, Made, Work
from repro.runs.progress import Progress
from repro.runs.signals import Signals
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
                try:
                    measure_run(one.run, self.cache)
                except Exception as error:  # it may be made all the same, or fails again, as the only one
                    progress.say(f"{one.run.settings.name} could not be tried. {type(error).__name__}: {error}")

    def make(self, work: Sequence[Work], progress: Progress) -> Iterator[Made]:
        """In the order given. An error of one run ends no other: it is said, and the sweep names the run at its end.

        Raised is what would befall every run: the only run's own error, that of a disk, of processes that share a run.
        """
        lane = progress.lane()
        for one in work:
            lane.take(one.cell)
            self.signals.training = True
            try:
                record, code = attempt(one.run, self.tracker, lane, self.signals.should_stop, self.group)
            except Exception as error:
                if len(work) == 1 or self.group or isinstance(error, OSError):
                    raise
                record, code = None, code_of(error) if isinstance(error, ValueError | ImportError) else FAILED
                traceback.print_exc()
                lane.say(f"{one.run.settings.name}: run {one.run.id} failed. {type(error).__name__}: {error}")
            finally:
                self.signals.training = False
            yield Made(run=one.run, record=record, code=code)
            if code > 128 or (code and self.group):
                return
