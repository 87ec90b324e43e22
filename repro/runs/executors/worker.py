"""A worker: this very command once more, which makes the runs it is told to, one at a time, and tells how they go.

It builds the same cells from the same words as the sweep that started it, so a run is known by the number of its cell
and nothing but plain text goes between the two. What libraries print goes to its log file. When the sweep is gone
it stops at its next step boundary, with a checkpoint.

    to it    {"make": 7, "run": "<id>"}    {"measure": 7, "run": "<id>"}    {"stop": true}
    from it  {"ready": true, "host": ..., "pid": ...}    {"alive": true}    {"say": text}    {"busy": text}
             {"begin": what, "total": n}    {"step": done, "numbers": {...}}
             {"ended": 7, "code": 0}    {"failed": 7, "code": ..., "said": text}
"""

import io
import os
import queue
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence

from repro.runs.cards import refuse_cards
from repro.runs.command import code_of
from repro.runs.executors.attempt import attempt
from repro.runs.executors.channel import Channel, Message
from repro.runs.executors.executor import FAILED
from repro.runs.signals import Signals
from repro.runs.speed.busy import BusyWatch
from repro.runs.streams import outlive_reader
from repro.runs.table import Cell
from repro.runs.workshop import Workshop
from repro.tracking.tracker import Tracker

ALIVE_EVERY = 5.0  # seconds between two signs of life


def leave_the_keyboard() -> None:
    """What the terminal sends goes to the sweep as well, which asks its workers itself: once, whoever was asked."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Told:
    """What a run tells, passed on to the sweep."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def say(self, text: str) -> None:
        """A line that stays."""
        self._channel.send({"say": text})

    def begin(self, what: str, total: int) -> None:
        """A new piece of work."""
        self._channel.send({"begin": what, "total": total})

    def step(self, done: int, **numbers: float) -> None:
        """Progress of it."""
        self._channel.send({"step": done, "numbers": numbers})


class Printed(io.TextIOBase):
    """Standard output of a worker: what is printed in passing, as that a checkpoint is damaged, is said as well."""

    def __init__(self, told: Told) -> None:
        self._told, self._line = told, ""

    def write(self, text: str) -> int:
        """Say each line that is whole."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self._told.say(line)
        return len(text)


class _Orders:
    """What the sweep wants: a thread listens, so that a run in the making is stopped as well."""

    def __init__(self, channel: Channel, signals: Signals) -> None:
        self._channel, self._signals, self._gone = channel, signals, threading.Event()
        self._jobs: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        for work in (self._listen, self._live):
            threading.Thread(target=work, name=work.__name__, daemon=True).start()

    def __iter__(self) -> Iterator[Message]:
        """Each run to be made, until the sweep wants no more or is gone, or somebody else stopped this process."""
        while (job := self._jobs.get()) is not None and not self.should_stop():
            yield job

    def should_stop(self) -> bool:
        """Whether the run in the making is to stop at its next step."""
        return self._gone.is_set() or self._signals.should_stop()

    def _listen(self) -> None:
        for message in self._channel.messages():
            if "make" in message or "measure" in message:
                self._jobs.put(message)
            elif "stop" in message:
                break
        self._gone.set()
        self._jobs.put(None)

    def _live(self) -> None:
        while not self._gone.wait(ALIVE_EVERY):
            self._channel.send({"alive": True})


def serve(workshop: Workshop, cells: Sequence[Cell], channel: Channel, signals: Signals) -> int:
    """Make what the sweep at the other end of `channel` asks for, until it asks no more; gives the exit code."""
    from repro.runs import execution  # noqa: F401  (it takes seconds, in which the sweep prepares the text)

    told, orders = Told(channel), _Orders(channel, signals)
    outlive_reader()  # the disk of its log may be the full one that the sweep has to hear of
    sys.stdout = Printed(told)
    tracker = Tracker(workshop.options.tracking_uri, runs=workshop.options.runs_dir, tell=told.say)
    busy = BusyWatch(lambda said: channel.send({"busy": said}), threads=workshop.options.threads)
    signals.training = True
    channel.send({"ready": True, "host": socket.gethostname(), "pid": os.getpid()})
    for job in orders:
        _make(workshop, cells, job, tracker, told, orders, busy, channel)
    return 128 + signals.received if signals.received else 0


def _make(
    workshop: Workshop,
    cells: Sequence[Cell],
    job: Message,
    tracker: Tracker,
    told: Told,
    orders: _Orders,
    busy: BusyWatch,
    channel: Channel,
) -> None:
    number = job["make"] if "make" in job else job["measure"]
    try:
        cell = cells[number]
        refuse_cards(workshop.options.products)
        if not workshop.texts:
            tasks = list(dict.fromkeys(one.task for one in cells))
            workshop.open_texts(tasks, lambda said: None)  # the sweep has said it all
        run = workshop.run(cell)
        if run.id != job["run"]:
            raise ValueError(
                f"{run.settings.name}: the sweep asks for run {job['run']}, which is {run.id} by now: text, settings "
                "or code have changed since the sweep began. Type the command again."
            )
        if "measure" in job:
            from repro.runs.speed.measure import measure_run

            measure_run(run, workshop.options.cache_dir)
            code = 0
        else:
            _, code = attempt(run, tracker, told, orders.should_stop, busy)
    except (ValueError, OSError, ImportError) as error:
        traceback.print_exc()
        channel.send({"failed": number, "code": code_of(error), "said": f"error: {error}"})
    except Exception as error:
        traceback.print_exc()
        channel.send({"failed": number, "code": FAILED, "said": f"{type(error).__name__}: {error}"})
    else:
        channel.send({"ended": number, "code": code})
