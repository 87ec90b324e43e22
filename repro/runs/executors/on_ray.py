"""`--on ray`: workers on the nodes of a Ray cluster, or of one that is started here.

Each worker is an actor that holds the processors, the memory and the GPUs of one run; it starts this very command again
on its node (`on_node.py`) and passes on what the two tell each other. Where the node does not see the folder of runs,
this side holds the lease of the run, writes what the node sends into its folder (`courier.py`), and mirrors it.

What Ray itself pickles is the name of the actor's class and plain values: words, numbers, bytes.
"""

import math
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.render.several import several
from repro.results import record
from repro.results.places import EXPERIMENTS
from repro.runs.command import code_of
from repro.runs.executors import courier, luggage
from repro.runs.executors.channel import Message
from repro.runs.executors.cluster import Cluster, Share, tokens
from repro.runs.executors.dispatch import Dispatcher
from repro.runs.executors.executor import BUSY, Made, Work
from repro.runs.executors.on_node import Node
from repro.runs.executors.workers import LOGS
from repro.runs.forecast import cell_bytes
from repro.runs.options import Options
from repro.runs.progress import Progress
from repro.runs.signals import Signals
from repro.runs.table import Cell
from repro.runs.workshop import Workshop
from repro.storage import atomic
from repro.storage.journal import locked
from repro.storage.lease import Lease, NoProgress, Superseded
from repro.tracking.mirror import Mirror
from repro.tracking.run_folder import RECORD
from repro.tracking.tracker import NOWHERE, Tracker

if TYPE_CHECKING:
    from repro.runs.run import Run

PLACED = 10.0  # seconds between two looks at whether there is room for an actor
HOMELESS = 60.0  # seconds after which one that no node of the cluster could ever take is given up
TIDY_UP = 15.0  # seconds that a node has to bring a worker to its end
LOST = -signal.SIGKILL  # how a worker ended whose node is gone


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What every worker of a sweep is started with."""

    words: Sequence[str]  # the script and its options, as they are on a node
    environment: Mapping[str, str]
    names_data: bool  # the words name the folder of text


class InHand:
    """A run that a node makes while its folder here grows: the right to write there, and its mirror."""

    def __init__(self, run: "Run", tracker: Tracker, say: Callable[[str], None]) -> None:
        """Raises BlockingIOError where another process makes it, NoProgress, and DiskError."""
        self.run, self._tracker = run, tracker
        self.mirror: Mirror | None = None  # as soon as there is something to show
        with ExitStack() as held:
            self.lease = held.enter_context(Lease(run.folder, run.last_step(), run.is_in_hand, say))
            journal = atomic.Appended(run.folder / "journal.jsonl")
            journal.close()
            if not held.enter_context(locked(journal.path, patience=10.0)):
                raise BlockingIOError(f"{journal.path} has a writer: the same run is training. Wait, or stop it.")
            atomic.sweep(run.folder, alone=True)
            self._held = held.pop_all()

    def write(self, parcel: courier.Parcel) -> None:
        """Have the folder say what the node tells."""
        courier.deliver(self.run.folder, parcel, self.lease.check)
        if self.mirror is None and (self.run.folder / "run.json").exists():
            # what the machine does meanwhile is measured where that is: on the node
            self.mirror = Mirror(self._tracker, self.run.folder, sample=math.inf)

    def close(self, outcome: str) -> None:
        """Let go; the record learns what the mirror calls the run."""
        try:
            if self.mirror is None:
                return
            done = self.run.finished()
            self.mirror.close(("FINISHED" if done.status == "finished" else "FAILED") if done else outcome)
            if done and done.stamp["mlflow_run"] != self.mirror.run_id:
                self.lease.check()
                path = self.run.folder / RECORD
                found = record.load(path)
                replace(found, stamp={**found.stamp, "mlflow_run": self.mirror.run_id}).save(path)
        finally:
            self._held.close()


class RayWorker:
    """A worker on some node, as the dispatcher sees it (`dispatch.py`).

    What it is told waits for a thread of its own: text may have to travel first, and the sweep must not wait for that.
    """

    def __init__(self, cluster: Cluster, sent: Sent, runs: Callable[[int], "Run"], tracker: Tracker, log: Path) -> None:
        self.host, self.log = "a node that is still to come", str(log)
        self._cluster, self._sent, self._runs, self._tracker = cluster, sent, runs, tracker
        self._actor = cluster.actor(Node)
        self._told: queue.SimpleQueue[Message] = queue.SimpleQueue()  # to the dispatcher
        self._orders: queue.SimpleQueue[Message | None] = queue.SimpleQueue()  # to the worker
        self._started, self._gone = threading.Event(), threading.Event()
        self._made: InHand | None = None
        self._keeps = False  # the node keeps its runs itself
        self._code, self._cell = LOST, -1
        threading.Thread(target=self._pass_on, name="orders", daemon=True).start()

    def send(self, message: Message) -> None:
        """Tell the worker."""
        self._orders.put(message)

    def kill(self) -> None:
        """End it at once, with its worker process."""
        self._gone.set()
        self._cluster.kill(self._actor)

    def end(self) -> int:
        """Tell it that nothing more is wanted and wait until it is gone; the exit code, negative for a signal."""
        self._orders.put(None)
        if not self._gone.is_set():
            with suppress(*self._cluster.errors):
                self._cluster.get(self._actor.leave.remote(), timeout=TIDY_UP)
        self.kill()
        return self._code

    def messages(self) -> Iterator[Message]:
        """What it tells, until it ends."""
        try:
            yield from self._refused(self._start())
            while not self._gone.is_set():
                events = self._cluster.get(self._actor.listen.remote())
                if isinstance(events, dict):
                    yield from self._refused(events)
                    return
                for event in events:
                    yield from self._heard(event)
                while not self._told.empty():
                    yield self._told.get()
        except Exception as error:  # the dispatcher hears that this worker is gone, whatever it was
            self._note(f"{type(error).__name__}: {error}\n".encode())
        finally:
            self._gone.set()
            self._let_go("KILLED")

    def _start(self) -> Any:
        """Have the worker process started as soon as a node has room; what the node refused, if it did."""
        facts, cluster = self._placed(), self._cluster
        self.host = facts["host"]
        cluster.refuse(facts)
        self._keeps = "runs" not in facts["sees"]
        more = ["--tracking-uri", NOWHERE] if self._keeps else []
        environment = {**self._sent.environment}
        if not cluster.tokens.keys() - {"runs"} <= {*facts["sees"]}:
            folder = cluster.get(self._actor.text.remote(*cluster.text()))
            if isinstance(folder, dict):
                return folder
            more += ["--cache-dir", f"{folder}/cache"]
            more += ["--data-dir", f"{folder}/data"] if self._sent.names_data else []
            environment["REPRO_DATA"] = f"{folder}/data"
        runs = None if self._keeps else str(cluster.runs)
        log = cluster.get(self._actor.start.remote([*self._sent.words, *more], environment, runs))
        if isinstance(log, dict):
            return log
        if not self._keeps:
            self.log = log
        self._started.set()
        return None

    def _placed(self) -> Any:
        """What the node says of itself, once there is one; TimeoutError where none could ever have room."""
        asked, homeless = self._actor.facts.remote(self._cluster.tokens), 0.0
        while not self._gone.is_set():
            found = self._cluster.wait(asked, PLACED)
            if found is not None:
                return found
            homeless = 0.0 if self._cluster.capacity() else homeless + PLACED
            if homeless >= HOMELESS:
                raise TimeoutError(f"no node of the cluster has room for {self._cluster.needs}")
        raise TimeoutError("it was ended before a node had room for it")

    def _heard(self, event: Any) -> Iterator[Message]:
        if "parcel" in event:
            try:
                if self._made is not None:
                    self._made.write(event["parcel"])
            except (OSError, ValueError, Superseded) as error:
                yield from self._given_up(error)
        elif "gone" in event:
            self._code = event["gone"]
            if self._keeps and self._code:
                self._note(event["log"])
            self._gone.set()
        else:
            if "log" in event:
                self._note(event.pop("log"))
            if "ready" in event:
                event["host"] = self.host
            if {"ended", "failed"} & event.keys():
                self._let_go("FAILED" if "failed" in event else "KILLED")
            yield event

    def _refused(self, answer: Any) -> Iterator[Message]:
        """Nothing, or that the node could not do what it was asked for."""
        if isinstance(answer, dict):
            self._note(f"{answer['refused']}\n".encode())
            yield {"say": f"error: {answer['refused']}"}
            self._gone.set()

    def _given_up(self, error: Exception) -> Iterator[Message]:
        """What the node sends cannot be kept here: the run has failed, and the node makes it in vain."""
        made, self._made = self._made, None
        if made is not None:
            code = code_of(error)
            made.close("FAILED")
            yield {"failed": self._cell, "code": code, "said": f"error: made on {self.host}: {error}"}
        self.kill()

    def _let_go(self, outcome: str) -> None:
        made, self._made = self._made, None
        if made is not None:
            made.close(outcome)

    def _pass_on(self) -> None:
        """Tell the worker what it is to be told, in order."""
        while (message := self._orders.get()) is not None:
            while not self._started.wait(1.0):
                if self._gone.is_set():
                    return
            try:
                if "make" not in message or not self._keeps or self._is_begun(message):
                    self._tell("tell", message)
            except self._cluster.errors:
                return  # who listens hears of it as well

    def _is_begun(self, message: Message) -> bool:
        """Take a run in hand here and have the node know how far it has come; what stands in the way is told."""
        self._cell = message["make"]
        run = self._runs(self._cell)
        try:
            made = InHand(run, self._tracker, lambda said: self._told.put({"say": said}))
        except (BlockingIOError, Superseded, NoProgress) as error:
            self._told.put({"say": f"{run.settings.name} is skipped. {error}"})
            self._told.put({"ended": self._cell, "code": BUSY})
            return False
        except (OSError, ValueError) as error:
            code = code_of(error)
            self._told.put({"failed": self._cell, "code": code, "said": f"error: {error}"})
            return False
        if run.finished():  # by another process, whose lease this one waited for
            made.close("FINISHED")
            self._told.put({"ended": self._cell, "code": 0})
            return False
        self._made = made
        return all(self._tell("take", run.id, parcel) for parcel in courier.begun(run.folder))

    def _tell(self, method: str, *words: Any) -> bool:
        """Call the node; False, and the run has failed, where it refuses."""
        answer = self._cluster.get(getattr(self._actor, method).remote(*words))
        if isinstance(answer, dict):
            self._let_go("FAILED")
            self._told.put({"failed": self._cell, "code": answer["code"], "said": f"error: {answer['refused']}"})
            return False
        return True

    def _note(self, text: bytes) -> None:
        """Keep the end of the node's log beside the runs."""
        with suppress(OSError):
            atomic.write_bytes(Path(self.log), text)


class OnRay(Dispatcher):
    """An executor whose workers are on the nodes of a cluster."""

    def __init__(
        self, workshop: Workshop, cells: Sequence[Cell], tracker: Tracker, signals: Signals, memory: int
    ) -> None:
        """Join the cluster and look at its nodes. Raises ValueError for what cannot be."""
        self._workshop, self._tracker, options = workshop, tracker, workshop.options
        script = Path(sys.modules["__main__"].__file__ or "").absolute()
        data = _data(workshop, cells)
        with ExitStack() as held:
            n = options.processes
            needs = Share(processors=n * options.threads, memory=memory, devices=n)
            self.cluster = held.enter_context(
                Cluster(
                    where=options.on,
                    script=script,
                    runs=options.runs_dir.absolute(),
                    tokens=tokens(options.runs_dir, options.cache_dir, data, held),
                    needs=needs,
                    needs_on_disk=max(cell_bytes(cell, workshop.scale) for cell in cells),
                )
            )
            n_fit = self.cluster.capacity()
            if options.jobs is not None and options.jobs > n_fit:
                raise ValueError(
                    f"--jobs {options.jobs}: the cluster has room for {n_fit} at a time, each {needs}. "
                    f"{self.cluster.resources()} Ask for at most {n_fit}, or leave --jobs out."
                )
            self._left = held.pop_all()
        self._sent = Sent(
            words=[f"{EXPERIMENTS}/{script.name}", *sys.argv[1:], *_places(options)],
            environment={} if not data else {"REPRO_DATA": str(data[0].parent)},
            names_data=options.data_dir is not None,
        )
        self._data = options.data_dir or (data[0].parent if data else None)
        n_jobs = min(options.jobs or n_fit, len(cells))
        self._logs = options.runs_dir.absolute() / LOGS
        super().__init__(
            self._worker, n_jobs, signals, about=f"{several(n_jobs, 'run')} at a time on {self.cluster.about()}."
        )
        self._cells = cells
        if self.cluster.sees_text:
            self.begin()  # else the workers begin when there is a text to send them

    def make(self, work: Sequence[Work], progress: Progress) -> Iterator[Made]:
        """Make the runs in the order given, each as soon as a worker has time."""
        if not self.cluster.sees_text:
            self.cluster.files = luggage.texts(
                self._workshop.texts.values(), self._workshop.options.cache_dir, self._data
            )
        yield from super().make(work, progress)

    def _worker(self, number: int) -> RayWorker:
        log = self._logs / f"ray-{os.getpid()}-{number}.log"
        return RayWorker(self.cluster, self._sent, self._run, self._tracker, log)

    def _run(self, cell: int) -> "Run":
        return self._workshop.run(self._cells[cell])

    def _end_all(self) -> None:
        super()._end_all()
        self._left.close()


def _data(workshop: Workshop, cells: Sequence[Cell]) -> list[Path]:
    """The folders of the text, none where it is generated. Raises ValueError where they do not lie in one."""
    options = workshop.options
    found = [
        task.find(task.at(workshop.scale).corpus, options.data_dir)
        for task in dict.fromkeys(cell.task for cell in cells)
    ]
    folders = [folder.absolute() for folder in dict.fromkeys(found) if folder is not None]
    if options.data_dir is None and len({folder.parent for folder in folders}) > 1:
        raise ValueError(
            f"The texts lie in {' and '.join(map(str, folders))}; expected one folder that holds both, from which they "
            "can be sent to nodes. Put them into one and name it by REPRO_DATA."
        )
    return folders


def _places(options: Options) -> list[str]:
    """The folders of the sweep for a process that runs elsewhere: by their whole paths."""
    words = ["--runs-dir", str(options.runs_dir.absolute()), "--cache-dir", str(options.cache_dir.absolute())]
    words += ["--results-dir", str(options.results_dir.absolute())]
    if options.data_dir is not None:
        words += ["--data-dir", str(options.data_dir.absolute())]
    scheme, found, path = options.tracking_uri.partition("sqlite:///")
    return [
        *words,
        "--tracking-uri",
        f"{found}{Path(path).absolute()}" if found and not scheme else options.tracking_uri,
    ]
