"""A run of several processes, made by a worker: each of them is this very command once more, for that run alone.

They share the machine that the worker is on. One of them writes and holds the lease; the worker tells how far they are,
and has them stop. They end by themselves where it is lost (`repro/runs/signals.py`).
"""

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from repro.runs.executors.channel import WORKER
from repro.runs.executors.followed import noted_step
from repro.runs.executors.workers import this_command
from repro.runs.launch import launch
from repro.runs.progress import Watched
from repro.runs.signals import STOPPING
from repro.runs.table import shard_of
from repro.runs.workshop import Workshop

if TYPE_CHECKING:
    from repro.runs.run import Run

LOOK = 0.5  # seconds between two looks at how far they are


def make_together(cell: int, run: "Run", workshop: Workshop, told: Watched, should_stop: Callable[[], bool]) -> int:
    """Have the processes of a run started, and wait for their end: 0, or the exit code of the first that failed."""
    options, n = workshop.options, len(workshop.whole)
    command = this_command()
    assert command is not None, "a worker was started from a file"
    number = workshop.whole.index(shard_of(workshop.whole, options.shard)[cell]) + 1
    os.environ.pop(WORKER, None)  # they are no workers
    with tempfile.TemporaryDirectory(prefix="attention-repro-tables-") as tables, _followed(run, told, should_stop):
        # the tables are made where the sweep is
        own = ["--on", "here", "--jobs", "1", "--shard", f"{number}/{n}", "--results-dir", tables]
        code = launch([*command[1:], *own], options.processes)
    return 0 if run.finished() else code


@contextmanager
def _followed(run: "Run", told: Watched, should_stop: Callable[[], bool]) -> Iterator[None]:
    """While it lasts, say how far the run is; and hand on, once the launcher listens, that it should stop."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    ended = threading.Event()

    def follow() -> None:
        step, asked = -1, False
        while not ended.wait(LOOK):
            if (noted := noted_step(run.folder / "journal.jsonl")) > step:
                step = noted
                told.step(step)
            if not asked and should_stop() and signal.getsignal(signal.SIGTERM) is not before[signal.SIGTERM]:
                asked = True
                os.kill(os.getpid(), signal.SIGTERM)  # the launcher passes it on

    told.begin(run.settings.name, run.settings.hyper.steps)
    follower = threading.Thread(target=follow, name="follower", daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()
        for number, handler in before.items():
            signal.signal(number, handler)
