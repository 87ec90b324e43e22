"""Makes the runs of a sweep: in this process one after the other, or by a pool of processes on this machine.

`on_ray.py` has Ray make them. Under Slurm each task of an array is a command of its own, with `--shard`
(`docs/sweep.sbatch`). None of them keeps a queue: a run without a record is still to be made, and whoever makes it
holds its lease.

The pool has a thread for each worker, which hands it one run at a time. A worker is this command, started again. It
plans the same runs from the same arguments as the sweep, which therefore names one by its number. Messages are lines of
JSON on its standard input and output; what else it prints is shown as it is, and what libraries write to standard error
goes to its log. It stops with a checkpoint when the sweep sends SIGTERM or is gone. If a worker dies, another one
resumes its run.

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
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from repro.render.terminal import beneath
from repro.results.record import Record
from repro.runs.command import FAILED, PARENT, Signals, code_of, outlive_reader
from repro.runs.forecast import check_room
from repro.runs.machine import refuse_cards, visible
from repro.runs.options import Options
from repro.runs.progress import Lane, Progress, Watched
from repro.runs.run_dir import RunDir, with_texts
from repro.runs.scales import Scale
from repro.storage import atomic
from repro.storage.lease import Superseded
from repro.tracking.client import Tracker

if TYPE_CHECKING:
    from repro.training.group import Group

# exit codes beside those of `command.py`; a signal gives 128 + its number
DIVERGED, OUT_OF_MEMORY, BUSY = 70, 71, 75
LOGS = ".workers"  # in the folder of runs
WORKER = "REPRO_WORKER"  # in the environment of a worker
MARK = "\x1e"  # begins a message among the lines that a worker prints
LOOK = 0.5  # seconds between two looks at what a signal asked for
TIDY_UP = 10.0  # seconds that a worker has to end by itself once nothing more is wanted
MOST_WORKERS = 3  # that a run may have: then it is left out


class JobResult(NamedTuple):
    """How one run ended: with a record, or with none and the exit code that says why."""

    run: RunDir
    record: Record | None
    code: int = 0


class Executor(ExitStack):
    """Makes runs. Leaving it ends what it has started."""

    about = ""  # how many runs at a time, where, and why
    n_workers = 1  # how many runs at a time

    @abstractmethod
    def make(self, runs: Sequence[RunDir], progress: Progress) -> Iterator[JobResult]:
        """Make the runs in the order given; yields how each ended. An error of one is printed, and others go on.

        When asked to stop, it begins no further run; those in progress end with a checkpoint and a code above 128.
        """


class InProcess(Executor):
    """Makes runs in this process; `group` are the processes that share each update, None: this one alone."""

    def __init__(self, tracker: Tracker, signals: Signals, group: "Group | None" = None) -> None:
        super().__init__()
        self.tracker, self.signals, self.group = tracker, signals, group

    def make(self, runs: Sequence[RunDir], progress: Progress) -> Iterator[JobResult]:
        """Make one run after the other.

        Errors that every run would meet are raised: that of an only run, of a disk, of a card, of a group of processes.
        """
        lane = progress.lane()
        for run in runs:
            self.signals.training = True
            try:
                record, code = attempt(run, self.tracker, lane, self.signals.should_stop, self.group)
            except Exception as error:
                if len(runs) == 1 or self.group or isinstance(error, OSError):
                    raise
                record, code = None, told(error, f"{run.name}: run {run.id}", lane)
            finally:
                self.signals.training = False
            yield JobResult(run, record, code)
            if code > 128 or (code and self.group):
                return


def told(error: Exception, run: str, watched: Watched) -> int:
    """Print where an error of a run came from, and say what it is; its exit code.

    Raises ConnectionError where the process has lost its card, as after an illegal access: all that follows would fail.
    """
    import torch

    traceback.print_exc()
    watched.say(f"{run} failed. {type(error).__name__}: {error}")
    try:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
    except RuntimeError:
        raise ConnectionError("The card serves this process no more. The same command resumes in a new one.") from error
    return code_of(error) if isinstance(error, ValueError | OSError | ImportError) else FAILED


def attempt(
    run: RunDir, tracker: Tracker, watched: Watched, should_stop: Callable[[], bool], group: "Group | None" = None
) -> tuple[Record | None, int]:
    """Make a run. Returns its record and 0, or None and an exit code; `watched` is told the reason.

    Other errors are raised. `group` are the processes that share each update, None: this one alone.
    """
    import torch

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
        return None, 128 + signal.SIGTERM
    except OutOfMemory as error:
        watched.say(f"{name}: {error}")
        return None, OUT_OF_MEMORY
    except torch.OutOfMemoryError as error:  # no option lowers what a search takes
        watched.say(
            f"{name}: Out of memory while it was scored ({str(error).partition(chr(10))[0]}). Nothing was skipped. The "
            "same command goes on from the last checkpoint, where there is more memory. With less of it add --device "
            "cpu: the processor does the rest of this run."
        )
        return None, OUT_OF_MEMORY
    except (BlockingIOError, Superseded) as error:
        if group:
            raise  # the other processes of this run wait for this one: end them all
        watched.say(f"{name} is skipped. {error}")
        return None, BUSY


def log_file(runs: Path, name: str) -> Path:
    """Where a process that makes runs elsewhere prints; its folder is made."""
    atomic.make_folder(runs / LOGS)
    return runs / LOGS / f"{name}.log"


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log file."""
    text = log.read_bytes().decode("utf-8", "replace").rstrip() if log.is_file() else ""
    return "\n".join(f"  | {line}" for line in text.split("\n")[-lines:]) if text else "  (empty)"


# The pool: the sweep's side --------------------------------------------------------------------------------------


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


class Pool(Executor):
    """An executor with `n_workers` workers, which start at once: they import while the sweep prepares the text.

    `command` starts a worker; its log goes below the folder `runs`.
    """

    def __init__(self, command: Sequence[str], runs: Path, n_workers: int, signals: Signals, why: str = "") -> None:
        super().__init__()
        self.about, self.n_workers, self.signals = f"{n_workers} runs at a time: {why}.", n_workers, signals
        self._command, self._runs = command, runs
        self._cards = list(visible())
        self._n_started, self._is_stopping = 0, False
        self._workers = [self._started(place) for place in range(n_workers)]
        self._idle: queue.SimpleQueue[tuple[int, Lane]] = queue.SimpleQueue()  # places of workers, each with its lane
        self.callback(self._end_all)

    def make(self, runs: Sequence[RunDir], progress: Progress) -> Iterator[JobResult]:
        """Make the runs in the order given, each as soon as a worker is free."""
        self.signals.training = True
        for place in range(min(self.n_workers, len(runs))):
            self._idle.put((place, progress.lane()))
        with ThreadPoolExecutor(self.n_workers) as threads:
            going = [threads.submit(self._made, run) for run in runs]
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

    def _made(self, run: RunDir) -> JobResult | None:
        """Make one run, by as many workers as it takes. None where the sweep stops before the run is begun."""
        if self._ends():
            return None
        place, lane = self._idle.get()
        try:
            code = self._asked(place, lane, run)
        finally:
            lane.rest()
            self._idle.put((place, lane))
        record = run.finished() if code == 0 else None
        if code == 0 and record is None:
            lane.say(f"{run.name}: {run.folder} has no record. Do all processes use the same folder?")
            code = FAILED
        return JobResult(run, record, code)

    def _asked(self, place: int, lane: Lane, run: RunDir) -> int:
        """Have one worker after the other make a run, until one tells how it ended; the exit code."""
        for left in reversed(range(MOST_WORKERS)):
            worker = self._workers[place]
            code = worker.ask({"number": run.number, "run": run.id}, lane)
            if code is not None and (code <= 128 or self._ends()):
                return code
            ended = worker.end()
            self.signals.children.discard(worker.pid)
            if self._ends():
                return 128 + signal.SIGTERM
            by = f"by signal {signal.Signals(-ended).name}" if ended < 0 else f"with exit code {ended}"
            said = f"The worker of {run.name} ended {by}; log {worker.log}"
            if not worker.is_ready and self._n_started == len(self._workers):  # none has been replaced yet
                raise OSError(f"{said}\n{tail(worker.log)}\nIt had not begun. Correct that, and type it again.")
            self._workers[place] = self._started(place)
            lane.say(
                f"{said}. Another takes its place, and goes on from the last checkpoint."
                if left
                else f"{said}\n{tail(worker.log)}\nIt was worker {MOST_WORKERS} of this run, which is left out."
            )
        return FAILED

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


def serve(asked: Sequence[RunDir], whole: Sequence[RunDir], scale: Scale, options: Options, signals: Signals) -> int:
    """Make the runs that the sweep asks for, one after the other, until it asks no more; returns the exit code."""
    outlive_reader()  # where the disk of its log is full, the sweep must still be told
    import repro.runs.run  # noqa: F401  (it takes seconds, in which the sweep prepares the text)

    sweep, runs = _Sweep(), {run.number: run for run in asked}
    tracker = Tracker(options.tracking_uri, runs=options.runs_dir, tell=sweep.say)
    _tell(ready=True)
    for line in sys.stdin:
        signals.training, job = True, json.loads(line)
        run = runs[job["number"]]
        try:
            refuse_cards(options.products)
            if run.text is None:
                opened = with_texts(asked, whole, scale, options, lambda said: None)  # the sweep tells
                runs = {run.number: run for run in opened}
                run = runs[job["number"]]
            if run.id != job["run"]:
                raise ValueError(f"it is {run.id} by now: text or code have changed. Type the command again.")
            code = attempt(run, tracker, sweep, signals.should_stop)[1]
        except Exception as error:
            code = told(error, f"{run.name}: run {job['run']}", sweep)
        _tell(ended=code)
        signals.training = False
        if signals.should_stop():
            break
    return 128 + signals.received if signals.received else 0
