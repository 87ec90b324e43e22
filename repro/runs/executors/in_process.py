"""This process makes the runs, one after the other: `--jobs 1`, and every process of a run that has several."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from signal import SIGTERM
from typing import TYPE_CHECKING

from repro.results.record import Record
from repro.runs.command import code_of
from repro.runs.executors.executor import BUSY, FAILED, OUT_OF_MEMORY, Job, JobResult
from repro.runs.progress import Progress, Watched
from repro.runs.session import check_room
from repro.runs.signals import Signals
from repro.storage.lease import Superseded
from repro.tracking.tracker import Tracker

if TYPE_CHECKING:
    from repro.runs.run_dir import RunDir
    from repro.training.group import Group


class InProcess(ExitStack):
    """An executor that starts nothing."""

    def __init__(self, tracker: Tracker, signals: Signals, group: "Group | None" = None) -> None:
        super().__init__()
        self.about, self.n_workers = "", 1
        self.tracker, self.signals, self.group = tracker, signals, group

    def make(self, work: Sequence[Job], progress: Progress) -> Iterator[JobResult]:
        """Make the runs in the order given. An error of one run is printed, and named at the sweep's end; others go on.

        Errors that every run would meet are raised: that of an only run, of a disk, of processes that share a run.
        """
        lane = progress.lane()
        for one in work:
            self.signals.training = True
            try:
                record, code = attempt(one.run, self.tracker, lane, self.signals.should_stop, self.group)
            except Exception as error:
                if len(work) == 1 or self.group or isinstance(error, OSError):
                    raise
                record, code = None, code_of(error) if isinstance(error, ValueError | ImportError) else FAILED
                traceback.print_exc()
                lane.say(f"{one.run.name}: run {one.run.id} failed. {type(error).__name__}: {error}")
            finally:
                self.signals.training = False
            yield JobResult(run=one.run, record=record, code=code)
            if code > 128 or (code and self.group):
                return


def attempt(
    run: "RunDir",
    tracker: Tracker,
    watched: Watched,
    should_stop: Callable[[], bool],
    group: "Group | None" = None,
) -> tuple[Record | None, int]:
    """Make a run. Returns its record and 0, or None and an exit code; `watched` is told the reason.

    Other errors are raised. `group` are the processes that share each update, None: this one alone.
    """
    from repro.runs.run import Run, Stopped
    from repro.training.loop import OutOfMemory

    name = run.name
    making = Run(dir=run, tracker=tracker, progress=watched, should_stop=should_stop, group=group)
    try:
        if group and (done := making.agreed_finished()):
            watched.say(f"{name}: finished before, in {run.folder}")
            return done, 0
        if making.is_first:
            check_room([run], run.runs)  # others may have filled the disk meanwhile
        return making.execute(), 0
    except Stopped as stopped:
        watched.say(f"{stopped}. The same command resumes there.")
        return None, 128 + SIGTERM
    except OutOfMemory as error:
        watched.say(f"{name}: {error}")
        return None, OUT_OF_MEMORY
    except (BlockingIOError, Superseded) as error:
        if group:
            raise  # the other processes of this run wait for this one: end them all
        watched.say(f"{name} is skipped. {error}")
        return None, BUSY
