"""Runs made by a pool of processes on this machine: the sweep has a thread for each, which hands it one run at a time.

A worker is this command, started again. It plans the same runs from the same arguments as the sweep, which therefore
names one by its number. Messages are lines of JSON on its standard input and output; what else it prints is shown as
it is, and what libraries write to standard error goes to its log. It stops with a checkpoint when the sweep sends
SIGTERM or is gone. If a worker dies, another one resumes its run.

    to it    {"number": 7, "run": "<id>"}
    from it  {"ready": true}    {"say": text}    {"begin": what, "total": n}    {"step": done, "numbers": {...}}
             {"ended": code}
"""

import json
import os
import queue
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.render.console import beneath
from repro.runs.executors.executor import FAILED, Job, JobResult, attempt, log_file, tail, told
from repro.runs.machine import refuse_cards, visible
from repro.runs.progress import Lane, Progress, Watched
from repro.runs.session import Session
from repro.runs.signals import PARENT, Signals
from repro.runs.streams import outlive_reader
from repro.storage import atomic
from repro.tracking.client import Tracker

if TYPE_CHECKING:
    from repro.runs.run_dir import RunDir

WORKER = "REPRO_WORKER"  # in the environment of a worker
MARK = "\x1e"  # begins a message among the lines that a worker prints
LOOK = 0.5  # seconds between two looks at what a signal asked for
TIDY_UP = 10.0  # seconds that a worker has to end by itself once nothing more is wanted
MOST_WORKERS = 3  # that a run may have: then it is left out


# The sweep's side --------------------------------------------------------------------------------------------


class Worker:
    """A process that makes runs, one at a time. Its log is removed if it ends well, as asked or without a word."""

    def __init__(self, command: Sequence[str], log: Path, environment: dict[str, str]) -> None:
        self.log, self.is_ready, self._is_stopping = log, False, False
        with atomic.named(log), open(log, "ab") as opened:
            self._process = subprocess.Popen(
                command,
                env=environment | {WORKER: "1", PARENT: str(os.getpid())},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=opened,
                encoding="utf-8",
                errors="replace",
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from, self.pid = self._process.stdin, self._process.stdout, self._process.pid

    def ask(self, job: dict[str, Any], lane: Lane) -> int | None:
        """Hand it a run and show what it says; the exit code of the run, None if the worker died."""
        with suppress(BrokenPipeError):
            self._to.write(f"{json.dumps(job)}\n")
            self._to.flush()
        for line in self._from:
            if not line.endswith("\n"):
                break  # it was killed within a line
            message: dict[str, Any] = json.loads(line[1:]) if line.startswith(MARK) else {"say": line.rstrip("\n")}
            if "ended" in message:
                return int(message["ended"])
            if "ready" in message:
                self.is_ready = True
            elif "say" in message and self.is_ready:  # before that, the experiment's file prints what it always prints
                lane.say(message["say"])
            elif "begin" in message:
                lane.begin(message["begin"], message["total"])
            elif "step" in message:
                lane.step(message["step"], **message["numbers"])
        return None

    def stop(self) -> None:
        """Ask it to stop with a checkpoint, once: a second signal would end it at once."""
        if not self._is_stopping:
            self._is_stopping = True
            self._process.terminate()

    def end(self) -> int:
        """Wait some seconds for its end, then kill it: its files are whole at any time. Its exit code."""
        with suppress(BrokenPipeError):
            self._to.close()
        try:
            code = self._process.wait(TIDY_UP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._from.close()
        if code == 0 or self._is_stopping or (self.log.exists() and self.log.stat().st_size == 0):
            self.log.unlink(missing_ok=True)
        return code


class Pool(ExitStack):
    """An executor with `n_workers` workers, which start at once: they import while the sweep prepares the text.

    `command` starts a worker; its log goes below the folder `runs`.
    """

    def __init__(self, command: Sequence[str], runs: Path, n_workers: int, signals: Signals, why: str = "") -> None:
        super().__init__()
        self.about = f"{n_workers} runs at a time: {why}."
        self.n_workers, self.signals = n_workers, signals
        self._command, self._runs = command, runs
        self._cards = list(visible())
        self._n_started, self._is_stopping = 0, False
        self._workers = [self._started(place) for place in range(n_workers)]
        self._lanes: list[Lane | None] = [None] * n_workers
        self._idle: queue.SimpleQueue[int] = queue.SimpleQueue()
        for place in range(n_workers):
            self._idle.put(place)
        self.callback(self._end_all)

    def make(self, work: Sequence[Job], progress: Progress) -> Iterator[JobResult]:
        """Make the runs in the order given, each as soon as a worker is free."""
        self.signals.training = True
        with ThreadPoolExecutor(self.n_workers) as threads:
            going = [threads.submit(self._made, one, progress) for one in work]
            try:
                while going:
                    if self.signals.should_stop():
                        self._stop()
                    wait(going, timeout=LOOK, return_when=FIRST_COMPLETED)
                    ended = [one for one in going if one.done()]
                    going = [one for one in going if one not in ended]
                    yield from (made for one in ended if (made := one.result()))
            except BaseException:
                self._stop()
                raise
        self.signals.training = False

    def _made(self, work: Job, progress: Progress) -> JobResult | None:
        """Make one run, by as many workers as it takes. None where the sweep stops before the run is begun."""
        if self._ends():
            return None
        place = self._idle.get()
        lane = self._lanes[place] = self._lanes[place] or progress.lane()
        try:
            code = self._asked(place, lane, work)
        finally:
            lane.rest()
            self._idle.put(place)
        record = work.run.finished() if code == 0 else None
        if code == 0 and record is None:
            lane.say(f"{work.run.name}: {work.run.folder} has no record. Do all processes use the same folder?")
            code = FAILED
        return JobResult(run=work.run, record=record, code=code)

    def _asked(self, place: int, lane: Lane, work: Job) -> int:
        """Have one worker after the other make a run, until one tells how it ended; the exit code."""
        for more in reversed(range(MOST_WORKERS)):
            if self._ends():
                break
            worker = self._workers[place]
            code = worker.ask({"number": work.number, "run": work.run.id}, lane)
            if code is not None and (code <= 128 or self._ends()):
                return code
            ended = worker.end()
            self.signals.children.discard(worker.pid)
            if self._ends():
                break
            by = f"by signal {signal.Signals(-ended).name}" if ended < 0 else f"with exit code {ended}"
            said = f"The worker of {work.run.name} ended {by}; log {worker.log}"
            if not worker.is_ready and self._n_started == len(self._workers):  # none has been replaced yet
                raise OSError(
                    f"{said}\n{tail(worker.log)}\nIt had not begun. Correct that, and type the command again."
                )
            self._workers[place] = self._started(place)
            lane.say(
                f"{said}. Another takes its place, and goes on from the last checkpoint."
                if more
                else f"{said}\n{tail(worker.log)}\nIt was worker {MOST_WORKERS} of this run, which is left out."
            )
        return 128 + signal.SIGTERM if self._ends() else FAILED

    def _started(self, place: int) -> Worker:
        """A worker, with one card of its own where there are cards."""
        self._n_started += 1
        own = {"CUDA_VISIBLE_DEVICES": self._cards[place % len(self._cards)]} if self._cards else {}
        log = log_file(self._runs, f"{os.uname().nodename}-{os.getpid()}-{self._n_started}")
        worker = Worker(self._command, log, dict(os.environ) | own)
        self.signals.children.add(worker.pid)
        return worker

    def _ends(self) -> bool:
        """Whether no further run is to be begun."""
        return self._is_stopping or self.signals.should_stop()

    def _stop(self) -> None:
        self._is_stopping = True
        for worker in self._workers:
            worker.stop()

    def _end_all(self) -> None:
        for worker in self._workers:
            if not worker.is_ready:  # it would notice only after seconds
                worker.stop()
        for worker in self._workers:
            worker.end()
            self.signals.children.discard(worker.pid)


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


def _tell(**message: Any) -> None:
    """Send the sweep a message; one that is gone gets none."""
    stream = beneath(sys.stdout)  # which shows no control character by its name
    stream.write(f"{MARK}{json.dumps(message)}\n")
    stream.flush()


class _Sweep(Watched):
    """The lane that a worker reports to: its messages go to the sweep."""

    def say(self, text: str) -> None:
        _tell(say=text)

    def begin(self, what: str, total: int) -> None:
        _tell(begin=what, total=total)

    def step(self, done: int, **numbers: float) -> None:
        _tell(step=done, numbers=numbers)


def serve(session: Session, runs: "Sequence[RunDir]", signals: Signals) -> int:
    """Make the runs that the sweep asks for, one after the other, until it asks no more; returns the exit code."""
    outlive_reader()  # where the disk of its log is full, the sweep must still be told
    from repro.runs import run  # noqa: F401  (it takes seconds, in which the sweep prepares the text)

    sweep = _Sweep()
    tracker = Tracker(session.options.tracking_uri, runs=session.options.runs_dir, tell=sweep.say)
    _tell(ready=True)
    for line in sys.stdin:
        signals.training = True
        _tell(ended=_one(session, runs, json.loads(line), tracker, sweep, signals))
        signals.training = False
        if signals.should_stop():
            break
    return 128 + signals.received if signals.received else 0


def _one(
    session: Session, runs: "Sequence[RunDir]", job: dict[str, Any], tracker: Tracker, sweep: _Sweep, signals: Signals
) -> int:
    """Make one run; returns its exit code. The sweep is told what went wrong."""
    name = f"Run {job['run']}"
    try:
        asked = runs[job["number"]]
        name = f"{asked.name}: run {job['run']}"
        refuse_cards(session.options.products)
        if not session.texts:
            session.open_texts(list(dict.fromkeys(one.task for one in runs)), lambda said: None)  # the sweep tells
        run = session.opened(asked)
        if run.id != job["run"]:
            raise ValueError(f"it is {run.id} by now: text or code have changed. Type the command again.")
        return attempt(run, tracker, sweep, signals.should_stop)[1]
    except Exception as error:
        return told(error, name, sweep)
