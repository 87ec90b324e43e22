"""Executors make the runs of a sweep: they take runs, which are settings and folders, and give records back.

    in_process.py  this process, one run after the other; also the processes that share each update under a launcher
    pool.py        processes of this machine, which take one run at a time
    on_ray.py      tasks of Ray
    slurm.py       a Slurm array

None of them keeps a queue. A run without a record is still to be made, and whoever makes it holds its lease.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from repro.results.record import Record
from repro.runs.progress import Progress
from repro.storage import atomic

if TYPE_CHECKING:
    from repro.runs.run_dir import RunDir
    from repro.training.group import Group

# exit codes beside those of `command.py`; a signal gives 128 + its number
FAILED, DIVERGED, OUT_OF_MEMORY, BUSY = 1, 70, 71, 75
LOGS = ".workers"  # in the folder of runs


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to be made."""

    cell: int  # its number in the sweep, by which the same command finds it again
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
