"""A node's side: it starts the worker where Ray has room for it, and passes on what the two tell each other.

Where the node sees the driver's folder of runs the worker works there, by leases as ever. Where it does not, the run
lives in a place of the node's own, and what is new in it goes to the driver with the next messages.

This module is what an actor of Ray's is made of. It starts before anything else is known to be there: it imports
neither torch nor Ray, and what goes wrong here comes back as a value.
"""

import functools
import getpass
import hashlib
import importlib.metadata
import os
import platform
import queue
import socket
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from repro.runs.command import code_of
from repro.runs.executors import courier, luggage
from repro.runs.executors.channel import WORKER, Message
from repro.runs.executors.courier import Parcel, Seen
from repro.runs.executors.followed import end_of
from repro.runs.executors.workers import LocalWorker
from repro.storage import atomic

COMPARED = ("torch", "lightning", "numpy", "tokenizers", "sacrebleu")  # what decides numbers, beside Python and Ray
LOOK_EVERY = 2.0  # seconds between two looks at what a run has written
GATHER = 0.2  # seconds in which messages are gathered before they travel: a call takes a millisecond of both sides
WAIT = 5.0  # seconds after which a driver is answered, if with nothing
LOG_END = 20_000  # bytes of the log that travel when a run has failed
TOKEN_BYTES = 4_096
Token = tuple[str, str]  # a path, and the SHA-256 of how the file begins
F = TypeVar("F", bound=Callable[..., Any])


class NodeFacts(TypedDict):
    """What a node says of itself."""

    host: str
    versions: dict[str, str]  # of Python, Ray and the libraries; "none" of what is not installed
    sees: list[str]  # which of the folders it was asked for
    room: int | None  # bytes free where it would keep runs
    place: str  # where that is


class Refused(TypedDict):
    """What could not be done, for the driver's console, and the exit code that stands for it."""

    refused: str
    code: int


def versions() -> dict[str, str]:
    """Of what must be the same on all machines."""

    def version(name: str) -> str:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return "none"

    others = {name: version(name).partition("+")[0] for name in ("ray", *COMPARED)}
    return {"python": platform.python_version(), **others}


def places() -> Path:
    """Where runs and texts are kept on a node that sees no folder of the driver's."""
    return Path(tempfile.gettempdir()) / f"attention-repro-{getpass.getuser()}"


def token(path: Path) -> Token:
    """By which a file is known."""
    with open(path, "rb") as file:
        return str(path), hashlib.sha256(file.read(TOKEN_BYTES)).hexdigest()


def _is_seen(one: Token) -> bool:
    try:
        return token(Path(one[0])) == tuple(one)
    except OSError:
        return False


def node_facts(tokens: Mapping[str, Token]) -> NodeFacts:
    """This node; `tokens` are files by which it knows that it sees a folder of the driver's."""
    own = places()
    return {
        "host": socket.gethostname(),
        "versions": versions(),
        "sees": [name for name, one in tokens.items() if _is_seen(one)],
        "room": atomic.free(own),
        "place": str(own),
    }


def _answered(method: F) -> F:
    """Have what a disk or a bad parcel raises come back as a value: an exception would come as Ray's own."""

    @functools.wraps(method)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except (ValueError, OSError) as error:
            code = code_of(error)
            return Refused(refused=f"{socket.gethostname()}: {error}", code=code)

    return call  # type: ignore[return-value]


class Node:
    """One worker on this node, and the way to it. Each method is called from the driver."""

    def __init__(self) -> None:
        self._worker: LocalWorker | None = None
        self._place: Path | None = None  # of runs that the driver does not see
        self._run: Path | None = None  # the one in the making
        self._seen, self._looked = Seen(), 0.0
        self._told: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._held: deque[Message] = deque()
        self._has_ended = False

    facts = staticmethod(node_facts)

    @_answered
    def text(self, files: Mapping[str, luggage.Described], references: Mapping[str, Sequence[Any]]) -> str:
        """Have a text here, which came with the engine's objects; the folder that holds it."""
        import ray

        folder = places() / "text" / luggage.key(files)
        _own(places())

        def blocks(name: str) -> Iterator[bytes]:
            for reference in references[name]:
                yield ray.get(reference)

        luggage.unload(folder, files, {name: blocks(name) for name in files})
        return str(folder)

    @_answered
    def start(self, words: Sequence[str], environment: Mapping[str, str], runs: str | None) -> str:
        """Start the worker: Python with these words, and this folder of runs or one of the node's. Gives its log."""
        if runs is None:
            _own(places())
            _sweep(places())
            self._place = atomic.beside(places() / "runs", "place")
            runs = str(self._place)
            words = [*words, "--runs-dir", runs]
        inherited = {name: value for name, value in os.environ.items() if name != WORKER}
        path = os.pathsep.join([os.getcwd(), *filter(None, [inherited.get("PYTHONPATH")])])
        self._worker = LocalWorker(
            [sys.executable, *words], Path(runs), os.getpid(), inherited | {"PYTHONPATH": path} | {**environment}
        )
        threading.Thread(target=self._hear, args=(self._worker,), daemon=True).start()
        return self._worker.log

    @_answered
    def take(self, run: str, parcel: Parcel) -> None:
        """What was made of a run elsewhere, on which the worker is to go on; the first parcel begins it anew."""
        assert self._place is not None
        courier.refuse_name(f"{run}.run")
        courier.deliver(self._place / run, parcel)

    @_answered
    def tell(self, message: Message) -> None:
        """Pass a message on to the worker."""
        if "make" in message and self._place is not None:
            folder = self._place / message["run"]
            atomic.make_folder(folder)
            self._seen, self._run = courier.all_seen(folder), folder
        if self._worker is not None:
            self._worker.send(message)

    @_answered
    def listen(self) -> list[Any]:
        """What is new, in order: messages of the worker, parcels of its run, and at last its exit code.

        A run that has ended or failed is told of when all that it left has been.
        """
        self._gather()
        final = any({"ended", "failed"} & message.keys() for message in self._held)
        due = time.monotonic() - self._looked >= LOOK_EVERY
        if self._run is not None and (final or due or self._has_ended):
            self._looked = time.monotonic()
            parcel, self._seen = courier.news(self._run, self._seen)
            if not courier.is_empty(parcel):
                return [{"parcel": parcel}]
        if final and self._place is not None:
            if self._run is not None:
                luggage.clear(self._run)
            self._run = None
        told: list[Any] = [self._with_log(message) for message in self._held]
        self._held.clear()
        if self._has_ended and self._worker is not None:
            worker, self._worker = self._worker, None
            end = end_of(Path(worker.log), LOG_END)  # a good end removes it
            told.append({"gone": worker.end(), "log": end})
        return told

    def _gather(self) -> None:
        if self._held or self._has_ended:
            return
        deadline = time.monotonic() + (LOOK_EVERY if self._run is not None else WAIT)
        try:
            while True:
                message = self._told.get(timeout=max(0.0, deadline - time.monotonic()))
                if message is None:
                    self._has_ended = True
                    return
                self._held.append(message)
                deadline = min(deadline, time.monotonic() + GATHER)
                if {"ended", "failed", "ready"} & message.keys():
                    return
        except queue.Empty:
            pass

    def _with_log(self, message: Message) -> Message:
        if "failed" in message and self._worker is not None:
            return {**message, "log": end_of(Path(self._worker.log), LOG_END)}
        return message

    def _hear(self, worker: LocalWorker) -> None:
        for message in worker.messages():
            self._told.put(message)
        self._told.put(None)

    def leave(self) -> None:
        """Nothing more is wanted: the worker ends, and its place goes."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.send({"stop": True})
            worker.end()
        if self._place is not None:
            luggage.clear(self._place)


def _own(folder: Path) -> None:
    """Refuse a folder of this name that another user has made: what lies in it would be run on."""
    atomic.make_folder(folder)
    os.chmod(folder, 0o700)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise ValueError(f"{folder} belongs to another user of this node. Set TMPDIR to a folder of your own there.")


def _sweep(folder: Path) -> None:
    """Remove the places of actors that were killed."""
    for left in folder.glob(".runs.*.place"):
        if atomic.is_abandoned(left):
            luggage.clear(left)
