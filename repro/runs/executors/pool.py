"""Runs made by a pool of processes on this machine: the sweep has a thread for each, which hands it one run at a time.

A worker is this command, started again. It builds the same cells from the same arguments as the sweep, so the number of
a cell names a run. Only lines of JSON go through its standard input and output; what libraries print goes to its log.
When its input ends, as when the sweep is gone, it stops at its next step, with a checkpoint. If a worker dies, another
one resumes its run. A run that ran out of memory, or whose worker was killed more than once, is tried again alone.

    to it    {"make": 7, "run": "<id>"}    {"measure": 7, "run": "<id>"}
    from it  {"ready": true}    {"say": text}    {"begin": what, "total": n}    {"step": done, "numbers": {...}}
             {"ended": code}
"""

import io
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Any

from repro.runs.cards import refuse_cards
from repro.runs.command import code_of
from repro.runs.executors.executor import FAILED, OUT_OF_MEMORY, Job, JobResult
from repro.runs.executors.in_process import attempt
from repro.runs.executors.tail import end_of, how_it_ended, tail
from repro.runs.progress import Lane, Progress
from repro.runs.session import Session
from repro.runs.signals import Signals
from repro.runs.streams import outlive_reader
from repro.runs.table import Cell
from repro.storage import atomic
from repro.tracking.tracker import Tracker

Message = dict[str, Any]

WORKER = "REPRO_WORKER"  # in the environment of a worker
LOGS = ".workers"  # in the folder of runs
LOOK = 0.5  # seconds between two looks at what a signal asked for
TIDY_UP = 10.0  # seconds that a worker has to end by itself once nothing more is wanted
FRUITLESS = 3  # workers that a run may lose without a step of progress
UNBORN = 3  # workers in a row that may end before they are ready


# The sweep's side --------------------------------------------------------------------------------------------


class LocalWorker:
    """A process that makes runs, one at a time. What it prints goes to `log`, which is removed if it ends well."""

    def __init__(self, command: Sequence[str], runs: Path, number: int, environment: dict[str, str]) -> None:
        atomic.make_folder(runs / LOGS)
        self.log = str(runs / LOGS / f"{os.uname().nodename}-{os.getpid()}-{number}.log")
        with atomic.named(Path(self.log)), open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                env=environment | {WORKER: "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        self.pid = self._process.pid

    def send(self, message: Message) -> None:
        """Send it a message; one that is gone gets none."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError, ValueError):  # or its input was closed
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def messages(self) -> Iterator[Message]:
        """Its messages until it ends; skips what the experiment file prints before the worker serves."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"{") and line.endswith(b"}\n"):
                yield json.loads(line)

    def hang_up(self) -> None:
        """Close its input, which tells it that nothing more is wanted."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    def end(self, at_once: bool = False) -> int:
        """Hang up, wait some seconds for its end, then kill it; its files are whole at any time. The exit code."""
        self.hang_up()
        if at_once:
            self._process.kill()
        try:
            code = self._process.wait(TIDY_UP)
        except subprocess.TimeoutExpired:
            at_once = True
            self._process.kill()
            code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        if code == 0 or (at_once and not end_of(Path(self.log))):
            Path(self.log).unlink(missing_ok=True)
        return code


Going = Future["JobResult | Job | None"]


class _Slot:
    """The place of one worker, and of its successor if it ends."""

    def __init__(self, worker: LocalWorker) -> None:
        self.worker, self.said, self.is_ready = worker, worker.messages(), False
        self.lane: Lane | None = None


class Pool(ExitStack):
    """An executor with `n_workers` workers; `start` starts each, given its number."""

    def __init__(self, start: Callable[[int], LocalWorker], n_workers: int, signals: Signals, about: str = "") -> None:
        super().__init__()
        self.about = about
        self._start, self.n_workers, self.signals = start, n_workers, signals
        self._slots: list[_Slot] = []
        self._idle: queue.SimpleQueue[_Slot] = queue.SimpleQueue()
        self._n_started = self._unborn = 0  # the second: workers in a row that ended before they were ready
        self._is_stopping = False
        self.callback(self._end_all)

    def begin(self) -> None:
        """Start the workers now, so that they import what takes seconds while the sweep prepares the text."""
        while len(self._slots) < self.n_workers:
            self._slots.append(_Slot(self._started()))
            self._idle.put(self._slots[-1])

    def make(self, work: Sequence[Job], progress: Progress) -> Iterator[JobResult]:
        """Make the runs in the order given, each as soon as a worker is free."""
        self.signals.training = True
        yield from self._outcomes(work, progress, "make")
        self.signals.training = False

    def measure(self, work: Sequence[Job], progress: Progress) -> None:
        """Time as many rows at once as runs will be made at once, so that they share the machine as those will."""
        for _ in self._outcomes(work, progress, "measure"):
            pass

    def _outcomes(self, work: Sequence[Job], progress: Progress, verb: str) -> Iterator[JobResult]:
        """Yields the outcome of each run as it ends; runs that have to be alone come last."""
        self.begin()
        self.n_workers = min(self.n_workers, len(work)) if verb == "make" else self.n_workers
        while self._idle.qsize() > self.n_workers:
            self._idle.get().worker.hang_up()
        going, alone, ended = set[Going](), list[Job](), queue.SimpleQueue[Going]()

        def begin(one: Job, is_alone: bool) -> None:
            going.add(future := threads.submit(self._made, one, progress, verb, is_alone))
            future.add_done_callback(ended.put)

        with ThreadPoolExecutor(self.n_workers) as threads:
            try:
                for one in work:
                    begin(one, self.n_workers == 1)
                while going or alone:
                    if not going:
                        begin(alone.pop(0), True)
                    if self.signals.should_stop():  # each time: a run may have begun meanwhile
                        alone.clear()
                        self._stop(going)
                    with suppress(queue.Empty):
                        going.remove(future := ended.get(timeout=LOOK))
                        made = None if future.cancelled() else future.result()
                        if isinstance(made, Job):
                            alone.append(made)
                        elif made:
                            yield made
            except BaseException:
                self._stop(going)
                raise

    def _stop(self, going: Iterable[Going]) -> None:
        """Ask all workers to stop, and begin nothing more."""
        self._is_stopping = True
        for future in [*going]:
            future.cancel()
        for slot in self._slots:
            slot.worker.hang_up()

    def _ends(self) -> bool:
        """Whether no further run is to be begun."""
        return self._is_stopping or self.signals.should_stop()

    def _made(self, work: Job, progress: Progress, verb: str, is_alone: bool) -> JobResult | Job | None:
        """Make one run, by as many workers as it takes; returns the job itself where it has to be tried again alone.

        Returns None where the sweep stops before the run is begun.
        """
        if self._ends():
            return None
        slot, name, fruitless = self._idle.get(), work.run.name, 0
        slot.lane = slot.lane or progress.lane()
        try:
            while True:
                code, got_on = self._asked(slot, slot.lane, work, verb)
                if code is not None and (code <= 128 or self._ends()):
                    break
                ended, log, was_ready = slot.worker.end(), slot.worker.log, slot.is_ready
                self.signals.children.discard(slot.worker.pid)
                if self._ends():
                    return JobResult(run=work.run, record=None, code=128 + SIGTERM)
                said = f"The worker of {name} ended {how_it_ended(ended)}; log {log}"
                self._unborn = 0 if was_ready else self._unborn + 1
                if self._unborn >= UNBORN:
                    raise OSError(f"{said}\n{tail(log)}\n{UNBORN} workers in a row ended before they were ready.")
                slot.worker = self._started()
                slot.said, slot.is_ready = slot.worker.messages(), False
                fruitless = 1 if got_on else fruitless + 1
                if fruitless >= FRUITLESS and code is None:
                    why = f"{FRUITLESS} workers in a row ended without a step of this run. It is skipped."
                    progress.say(f"{said}\n{tail(log)}\n{why}")
                    return JobResult(run=work.run, record=None, code=FAILED)
                if ended == -SIGKILL and fruitless > 1 and not is_alone:
                    progress.say(f"{said}. Out of memory? It is tried again when no other run is in progress.")
                    return work
                progress.say(f"{said}. Another takes its place, and goes on from the last checkpoint.")
        finally:
            slot.lane.rest()
            self._idle.put(slot)
        if code == OUT_OF_MEMORY and not is_alone:
            progress.say(f"{name} is tried again when no other run is in progress.")
            return work
        record = work.run.finished() if code == 0 else None
        if code == 0 and record is None and verb == "make":
            progress.say(
                f"{name}: run {work.run.id} was made, but {work.run.folder} has no record. Do both use the same folder?"
            )
            code = FAILED
        return JobResult(run=work.run, record=record, code=code)

    def _asked(self, slot: _Slot, lane: Lane, work: Job, verb: str) -> tuple[int | None, bool]:
        """Hand a run to a worker and show its messages. The exit code, None if it died; whether it made progress."""
        lane.take(work.cell)
        slot.worker.send({verb: work.cell, "run": work.run.id})
        first, last = None, None
        for message in slot.said:
            if "ended" in message:
                return message["ended"], True
            slot.is_ready = True
            if "say" in message:
                lane.say(message["say"])
            elif "begin" in message:
                lane.begin(message["begin"], message["total"])
            elif "step" in message:
                last = message["step"]
                first = last if first is None else first
                lane.step(last, **message["numbers"])
        return None, first != last

    def _started(self) -> LocalWorker:
        self._n_started += 1
        worker = self._start(self._n_started)
        self.signals.children.add(worker.pid)
        return worker

    def _end_all(self) -> None:
        for slot in self._slots:
            slot.worker.hang_up()
        for slot in self._slots:
            slot.worker.end(at_once=not slot.is_ready)  # which would notice only after seconds
            self.signals.children.discard(slot.worker.pid)


def this_command() -> list[str] | None:
    """The command line that starts this process again; None where it was not started from a file."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script is None or not Path(script).is_file() or Path(script).name == "__main__.py":
        return None
    return [sys.executable, script, *sys.argv[1:]]


# The worker's side -------------------------------------------------------------------------------------------


def is_worker() -> bool:
    """Whether a sweep started this process; it then ignores Ctrl-C, since the sweep itself asks its workers once."""
    if os.environ.pop(WORKER, None) is None:
        return False
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return True


class _Sweep:
    """The sweep as a worker sees it: where its messages go."""

    def __init__(self) -> None:
        self._messages, self._one_at_a_time = os.dup(1), threading.Lock()
        os.dup2(2, 1)  # what is printed past `sys.stdout` goes to the log

    def tell(self, **message: Any) -> None:
        """Send the sweep a message; one that is gone gets none."""
        line = json.dumps(message).encode() + b"\n"
        with self._one_at_a_time, suppress(BrokenPipeError):
            while line:
                line = line[os.write(self._messages, line) :]

    def say(self, text: str) -> None:
        """A line that stays."""
        self.tell(say=text)

    def begin(self, what: str, total: int) -> None:
        """A new piece of work."""
        self.tell(begin=what, total=total)

    def step(self, done: int, **numbers: float) -> None:
        """Progress of it."""
        self.tell(step=done, numbers=numbers)


class Printed(io.TextIOBase):
    """Standard output of a worker: what code prints, such as a note on a damaged checkpoint, goes to the sweep."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self._say, self._line = say, ""

    def write(self, text: str) -> int:
        """Pass on each complete line."""
        *whole, self._line = (self._line + text).split("\n")
        for line in whole:
            self._say(line)
        return len(text)


def serve(session: Session, cells: Sequence[Cell], signals: Signals) -> int:
    """Make the runs that the sweep asks for, one after the other, until it asks no more; returns the exit code."""
    jobs: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
    is_gone = threading.Event()

    def listen() -> None:
        with open(0, "rb", closefd=False) as told:
            for line in told:
                jobs.put(json.loads(line))
        is_gone.set()
        jobs.put(None)

    threading.Thread(target=listen, daemon=True).start()  # so that a run in progress is stopped, too
    sweep = _Sweep()
    outlive_reader()  # where the disk of its log is full, the sweep must still be told
    sys.stdout = Printed(sweep.say)
    from repro.runs import run  # noqa: F401  (it takes seconds, in which the sweep prepares the text)

    tracker = Tracker(session.options.tracking_uri, runs=session.options.runs_dir, tell=sweep.say)
    signals.training = True
    sweep.tell(ready=True)

    def should_stop() -> bool:
        return is_gone.is_set() or signals.should_stop()

    while (job := jobs.get()) is not None and not should_stop():
        sweep.tell(ended=_one(session, cells, job, tracker, sweep, should_stop))
    return 128 + signals.received if signals.received else 0


def _one(
    session: Session,
    cells: Sequence[Cell],
    job: Message,
    tracker: Tracker,
    sweep: _Sweep,
    should_stop: Callable[[], bool],
) -> int:
    """Make or measure one run; returns its exit code. The sweep is told what went wrong."""
    name = f"Run {job['run']}"
    try:
        cell = cells[job["make"] if "make" in job else job["measure"]]
        name = f"{cell.row.name} seed {cell.seed}: run {job['run']}"
        refuse_cards(session.options.products)
        if not session.texts:
            session.open_texts(list(dict.fromkeys(one.task for one in cells)), lambda said: None)  # the sweep tells
        run = session.run(cell)
        if run.id != job["run"]:
            raise ValueError(
                f"{run.name}: the sweep asks for run {job['run']}, which is {run.id} by now: text, settings "
                "or code have changed since the sweep began. Type the command again."
            )
        if "make" in job:
            return attempt(run, tracker, sweep, should_stop)[1]
        from repro.runs.measure import measure_run

        measure_run(run, session.options.cache_dir)
        return 0
    except Exception as error:
        traceback.print_exc()
        is_known = isinstance(error, ValueError | OSError | ImportError)
        sweep.say(f"{name} failed. {'error' if is_known else type(error).__name__}: {error}")
        return code_of(error) if is_known else FAILED
