"""One attempt at a run, and the exit code that stands for how it went."""

from collections.abc import Callable
from signal import SIGTERM
from typing import TYPE_CHECKING

from repro.results.record import Record
from repro.runs.executors.executor import BUSY, OUT_OF_MEMORY
from repro.runs.progress import Watched
from repro.runs.workshop import check_room
from repro.storage.lease import NoProgress, Superseded
from repro.tracking.tracker import Tracker

if TYPE_CHECKING:
    from repro.runs.run import Run
    from repro.training.group import Group


def attempt(
    run: "Run",
    tracker: Tracker,
    watched: Watched,
    should_stop: Callable[[], bool],
    group: "Group | None" = None,
) -> tuple[Record | None, int]:
    """Make a run: its record and 0, or none and why, which `watched` is told too.

    Whatever else goes wrong is raised. `group` are the processes that share each update, None: this one alone.
    """
    from repro.runs.execution import Execution, Stopped
    from repro.training.loop import OutOfMemory

    name = run.settings.name
    execution = Execution(
        settings=run.settings,
        corpus=run.corpus,
        prepared=run.prepared,
        runs=run.runs,
        tracker=tracker,
        progress=watched,
        should_stop=should_stop,
        group=group,
    )
    try:
        if group and (done := execution.agreed_finished()):
            watched.say(f"{name}: finished before, in {run.folder}")
            return done, 0
        if execution.is_first:
            check_room([run], run.runs)  # others may have filled the disk meanwhile
        return execution.execute(), 0
    except Stopped as stopped:
        watched.say(f"{stopped}. The same command resumes there.")
        return None, 128 + SIGTERM
    except OutOfMemory as error:
        watched.say(f"{name}: {error}")
        return None, OUT_OF_MEMORY
    except (BlockingIOError, Superseded, NoProgress) as error:
        if group:
            raise  # the other processes of this run wait for this one: end them all
        watched.say(f"{name} is skipped. {error}")
        return None, BUSY
