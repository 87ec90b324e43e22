"""Runs handed to workers, wherever those are: each has one at a time, what it tells is shown, and who dies is replaced.

A run that a dead worker had goes on from its checkpoint in another. One that ran out of memory, or whose worker was
killed more than once, is tried again when it is alone.
"""

import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Protocol

from repro.runs.executors.channel import Message
from repro.runs.executors.executor import FAILED, OUT_OF_MEMORY, Made, Work
from repro.runs.executors.workers import how_it_ended, tail
from repro.runs.progress import Lane, Progress
from repro.runs.signals import Signals

LOOK_EVERY = 0.5  # seconds between two looks at what a signal asked for
SILENT = 60.0  # seconds without a sign of life after which a worker counts as hung
FRUITLESS = 3  # workers that a run may lose without a step of progress
UNBORN = 3  # workers in a row that may end before they are ready


class Worker(Protocol):
    """Somebody who makes runs, here or on another machine (`worker.py` has the messages)."""

    host: str
    log: str

    def send(self, message: Message) -> None:
        """Tell the worker; one that is gone hears nothing."""
        ...

    def messages(self) -> Iterator[Message]:
        """What it tells, until it ends."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...

    def end(self) -> int:
        """Tell it that nothing more is wanted and wait until it is gone; the exit code, negative for a signal."""
        ...


@dataclass(eq=False)
class _Slot:
    """Where one worker works, and after it the next."""

    worker: Worker
    lane: Lane
    heard: float = 0.0  # when, by the clock of the shift
    work: Work | None = None
    is_ready: bool = False
    step: int = -1  # of the work, the last that it told


class Dispatcher(ExitStack):
    """An executor of `n_workers` that `start` starts, each with its number."""

    def __init__(self, start: Callable[[int], Worker], n_workers: int, signals: Signals, about: str = "") -> None:
        super().__init__()
        self.about = about
        self.start, self.n_workers, self.signals = start, n_workers, signals
        self.told: queue.SimpleQueue[tuple[Worker, Message | None]] = queue.SimpleQueue()
        self.workers: list[Worker] = []
        self.slots: list[_Slot] = []  # of those that work, for as long as there are runs to be measured or made
        self._born: list[Worker] = []  # those that were ready once
        self._n_started = 0
        self.callback(self._end_all)

    def begin(self) -> None:
        """Start the workers now, so that they do what takes seconds while the sweep looks after the text."""
        while len(self.workers) < self.n_workers:
            self.start_one()

    def make(self, work: Sequence[Work], progress: Progress) -> Iterator[Made]:
        """Make the runs in the order given, each as soon as a worker has time."""
        self.n_workers = min(self.n_workers, len(work))
        self.begin()
        for unused in self.workers[self.n_workers :]:
            unused.send({"stop": True})
        del self.slots[self.n_workers :]
        self.signals.training = True
        yield from _Shift(self, work, progress).outcomes()
        self.signals.training = False

    def measure(self, work: Sequence[Work], progress: Progress) -> None:
        """As many rows at a time as runs will be made: so they share the machine as those will."""
        self.begin()
        for _ in _Shift(self, work, progress, verb="measure").outcomes():
            pass

    def start_one(self) -> Worker:
        """One more worker, listened to by a thread of its own."""
        self._n_started += 1
        worker = self.start(self._n_started)
        self.workers.append(worker)
        if pid := getattr(worker, "pid", None):
            self.signals.children.add(pid)

        def listen() -> None:
            for message in worker.messages():
                if "ready" in message:
                    self._born.append(worker)
                self.told.put((worker, message))
            self.told.put((worker, None))

        threading.Thread(target=listen, name=f"worker {self._n_started}", daemon=True).start()
        return worker

    def end(self, worker: Worker) -> int:
        """Have one gone; its exit code."""
        self.workers.remove(worker)
        code = worker.end()
        self.signals.children.discard(getattr(worker, "pid", 0))
        return code

    def _end_all(self) -> None:
        for worker in self.workers:
            worker.send({"stop": True})
            if worker not in self._born:  # it would hear that in seconds only, and has nothing to bring to an end
                worker.kill()
        for worker in list(self.workers):
            if self.end(worker) == -SIGKILL and worker not in self._born:  # nor anything to tell
                Path(worker.log).unlink(missing_ok=True)


class _Shift:
    """The making of some runs: who has which, and what is left."""

    def __init__(self, dispatcher: Dispatcher, work: Sequence[Work], progress: Progress, verb: str = "make") -> None:
        self.dispatcher, self.progress, self.waiting, self.verb = dispatcher, progress, deque(work), verb
        for worker in dispatcher.workers[len(dispatcher.slots) : dispatcher.n_workers]:
            dispatcher.slots.append(_Slot(worker, progress.lane()))
        self.slots = dispatcher.slots  # who was ready for an earlier shift says so but once
        for slot in self.slots:
            slot.heard = 0.0
        self.alone: deque[Work] = deque()  # to be tried when nothing else is made
        self.tried_alone: set[int] = set()  # cells
        self.fruitless: Counter[int] = Counter()  # of each cell: workers lost without a step of progress
        self.unborn = 0  # workers in a row that ended before they were ready
        self.clock = 0.0  # seconds in which this process was not stopped: nor were its workers, then
        self.asked_to_stop = self.is_busy = False

    def outcomes(self) -> Iterator[Made]:
        """Of each run as it ends."""
        looked = time.monotonic()
        while self.waiting or self.alone or any(slot.work for slot in self.slots):
            if self.dispatcher.signals.should_stop() and not self.asked_to_stop:
                self._stop()
            self._assign()
            try:
                worker, message = self.dispatcher.told.get(timeout=LOOK_EVERY)
            except queue.Empty:
                pass
            else:
                slot = next((one for one in self.slots if one.worker is worker), None)
                if slot and message is None:
                    yield from self._lost(slot)
                elif slot and message is not None:
                    yield from self._hear(slot, message)
            now = time.monotonic()
            self.clock, looked = self.clock + min(now - looked, 2 * LOOK_EVERY), now
            self._end_silent()

    def _assign(self) -> None:
        """Give the next run to who is free; one that is to be alone when nobody works."""
        for slot in self.slots:
            if slot.work is None and slot.is_ready and self.waiting:
                self._give(slot, self.waiting.popleft())
        ready = [slot for slot in self.slots if slot.is_ready]
        if self.alone and ready and not self.waiting and not any(slot.work for slot in self.slots):
            self.tried_alone.add(self.alone[0].cell)
            self._give(ready[0], self.alone.popleft())

    def _give(self, slot: _Slot, work: Work) -> None:
        slot.work, slot.step = work, -1
        slot.lane.take(work.cell)
        slot.worker.send({self.verb: work.cell, "run": work.run.id})

    def _hear(self, slot: _Slot, message: Message) -> Iterator[Made]:
        slot.heard = self.clock
        if "ready" in message:
            slot.is_ready, self.unborn = True, 0
            slot.worker.host = message["host"]
        elif "say" in message:
            slot.lane.say(message["say"])
        elif "busy" in message and not self.is_busy:  # one word for all
            self.is_busy = True
            self.progress.say(message["busy"])
        elif "begin" in message:
            slot.lane.begin(message["begin"], message["total"])
            slot.step = -1
        elif "step" in message:
            if slot.work and message["step"] > slot.step >= 0:
                self.fruitless[slot.work.cell] = 0
            slot.step = message["step"]
            slot.lane.step(message["step"], **message["numbers"])
        elif slot.work and slot.work.cell in (message.get("ended"), message.get("failed")):
            yield from self._ended(slot, slot.work, message)

    def _ended(self, slot: _Slot, work: Work, message: Message) -> Iterator[Made]:
        """A worker is done with a run, well or not."""
        slot.work = None
        slot.lane.rest()
        name, run, code = work.run.settings.name, work.run, message["code"]
        where = f"on {slot.worker.host}, log {slot.worker.log}"
        if "failed" in message:
            self.progress.say(f"{name}: run {run.id} failed {where}\n{message['said']}")
        if code > 128 and not self.dispatcher.signals.should_stop():  # somebody else stopped the worker, which ends now
            self.waiting.appendleft(work)
            return
        if code == OUT_OF_MEMORY and len(self.slots) > 1 and work.cell not in self.tried_alone:
            self.progress.say(f"{name} is tried again when no other run is in progress.")
            self.alone.append(work)
            return
        record = run.finished() if code == 0 else None
        if code == 0 and record is None and self.verb == "make":
            self.progress.say(f"{name}: run {run.id} was made {where}, but {run.folder} has no record. Another folder?")
            code = FAILED
        yield Made(run=run, record=record, code=code)

    def _lost(self, slot: _Slot) -> Iterator[Made]:
        """A worker has ended: as it was told to, or by itself, and then another takes its place."""
        work, worker = slot.work, slot.worker
        was_ready, slot.work, slot.is_ready = slot.is_ready, None, False
        slot.lane.rest()
        code = self.dispatcher.end(worker)
        if self.asked_to_stop:
            if work:
                yield Made(run=work.run, record=None, code=128 + SIGTERM)
            return
        whose = f"The worker of {work.run.settings.name}" if work else "A worker"
        said = f"{whose} on {worker.host} ended {how_it_ended(code)}; log {worker.log}"
        self.unborn += not was_ready
        if self.unborn >= UNBORN:
            raise OSError(f"{said}\n{tail(worker.log)}\n{UNBORN} workers in a row ended before they began.")
        slot.worker, slot.heard = self.dispatcher.start_one(), self.clock
        if work is None:
            self.progress.say(f"{said}. Another takes its place.")
            return
        self.fruitless[work.cell] += 1
        if self.fruitless[work.cell] >= FRUITLESS:
            self.progress.say(
                f"{said}\n{tail(worker.log)}\n{FRUITLESS} workers ended without a step of it: it is left out."
            )
            yield Made(run=work.run, record=None, code=FAILED)
        elif code == -SIGKILL and self.fruitless[work.cell] > 1:
            self.progress.say(f"{said}. Out of memory? It is tried again when no other run is in progress.")
            self.alone.append(work)
        else:
            from_there = ", and goes on from the last checkpoint" if self.verb == "make" else ""
            self.progress.say(f"{said}. Another takes its place{from_there}.")
            self.waiting.appendleft(work)

    def _end_silent(self) -> None:
        for slot in self.slots:
            if slot.is_ready and self.clock - slot.heard > SILENT:
                self.progress.say(f"The worker on {slot.worker.host} was silent for {SILENT:.0f} s: it is stopped.")
                slot.heard = self.clock
                slot.worker.kill()

    def _stop(self) -> None:
        """Ask all to stop; what nobody has begun is not begun."""
        self.asked_to_stop = True
        for slot in self.slots:
            slot.worker.send({"stop": True})
        self.waiting.clear()
        self.alone.clear()
