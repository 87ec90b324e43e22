"""Executors make the runs of a sweep: they take runs, which are settings and folders, and give records back.

    InProcess  this process, one run after the other; also the processes that share each update under a launcher
    pool.py    processes of this machine, which take one run at a time
    on_ray.py  tasks of Ray

Under Slurm each task of an array is a command of its own, with `--shard` (`docs/sweep.sbatch`).

None of them keeps a queue. A run without a record is still to be made, and whoever makes it holds its lease.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import TYPE_CHECKING, Any, Protocol

from repro.results.record import Record
from repro.runs.command import code_of
from repro.runs.forecast import check_room
from repro.runs.progress import Progress, Watched
from repro.runs.signals import Signals
from repro.storage import atomic
from repro.storage.lease import Superseded
from repro.tracking.client import Tracker

if TYPE_CHECKING:
    from repro.runs.run_dir import RunDir
    from repro.training.group import Group

# exit codes beside those of `command.py`; a signal gives 128 + its number
FAILED, DIVERGED, OUT_OF_MEMORY, BUSY = 1, 70, 71, 75
LOGS = ".workers"  # in the folder of runs


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to be made."""

    number: int  # in the sweep, by which the same command finds it again
    run: "RunDir"


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """How one run ended: with a record, or with none and the exit code that says why."""

    run: "RunDir"
    record: Record | None
    code: int = 0


class Executor(AbstractContextManager[Any], Protocol):
    """Makes runs. Use as a context: leaving it ends what it has started."""

    about: str  # how many runs at a time, where, and why; may be empty
    n_workers: int  # how many runs at a time

    def make(self, work: Sequence[Job], progress: Progress) -> Iterator[JobResult]:
        """Make the runs; yields the outcome of each as it ends.

        When asked to stop, it begins no further run; those in progress end with a checkpoint and a code above 128.
        """
        ...


def made_by(
    executor: Executor, work: Sequence[Job], progress: Progress, group: "Group | None" = None
) -> Iterator[JobResult]:
    """Yields the runs that were finished before, and then those that the executor makes.

    Processes that share each update skip no run by themselves: `group` has to agree on it.
    """
    left = []
    for one in work:
        record = None if group else one.run.finished()
        if record:
            progress.say(f"{one.run.name}: finished before, in {one.run.folder}")
            yield JobResult(run=one.run, record=record)
        else:
            left.append(one)
    if left:
        yield from executor.make(left, progress)


def log_file(runs: Path, name: str) -> Path:
    """Where a process that makes runs elsewhere prints; its folder is made."""
    atomic.make_folder(runs / LOGS)
    return runs / LOGS / f"{name}.log"


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log file."""
    text = log.read_bytes().decode("utf-8", "replace").rstrip() if log.is_file() else ""
    return "\n".join(f"  | {line}" for line in text.split("\n")[-lines:]) if text else "  (empty)"


# This process: `--jobs 1`, and every process of a run that has several ------------------------------------------


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
                record, code = None, told(error, f"{one.run.name}: run {one.run.id}", lane)
            finally:
                self.signals.training = False
            yield JobResult(run=one.run, record=record, code=code)
            if code > 128 or (code and self.group):
                return


def told(error: Exception, run: str, watched: Watched) -> int:
    """Print where an error of a run came from, and say what it is; its exit code."""
    traceback.print_exc()
    watched.say(f"{run} failed. {type(error).__name__}: {error}")
    return code_of(error) if isinstance(error, ValueError | OSError | ImportError) else FAILED


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
