"""What the processes that share each update of a run tell each other: plain values, through a store that all reach.

A word waits for as long as it takes to be asked for, while each process says every few seconds that it is there: so
hours of decoding are waited for, and a lost node is not.
"""

import json
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from torch.distributed import Store  # type: ignore[attr-defined]

from repro.training.peer import Peer

PATIENCE = timedelta(seconds=120)  # how long one process waits for the others before it gives up: all have equal work
EVERY = 2.0  # seconds between two signs of life
LOOK = 0.05  # seconds between two looks for a word
REASON = 2.0  # seconds in which one that failed says why, when the others notice
AGAIN = "Type the same command on all nodes: it goes on from the last checkpoint."

T = TypeVar("T")


class OthersGone(RuntimeError):
    """Another process of this run has ended or is not heard of: this one cannot go on without it."""


class Talk:
    """One process among those that talk."""

    def __init__(self, peer: Peer, store: Store) -> None:
        self.peer = peer
        self._store = store
        self._told_before = 0  # words
        self._closing = threading.Event()
        threading.Thread(target=self._beat, name="signs of life", daemon=True).start()

    def told(self, word: Any, should_stop: Callable[[], bool] = lambda: False) -> Any:
        """The word of the first process, in each of them. Others wait for it, until they should stop.

        Raises OthersGone, and InterruptedError where this process should stop.
        """
        key, self._told_before = f"word {self._told_before}", self._told_before + 1
        if self.peer.is_first:
            self._ask(lambda: self._store.set(key, json.dumps(word)))
            return word
        self._wait(key, of=0, should_stop=should_stop)
        return json.loads(self._ask(lambda: self._store.get(key)))

    def fail(self, says: str) -> None:
        """Tell the others that this process ends before its time, and why."""
        who = f"{str(self.peer).capitalize()} ({socket.gethostname()})"
        self._ask(lambda: self._store.set("failed", json.dumps({"who": who, "says": says})))
        if self.peer.is_first and not self.peer.met_already:
            time.sleep(REASON)  # what was said is gone with this process

    def raise_failed(self) -> None:
        """Raise OthersGone, with its reason, where another has failed."""
        if self._ask(lambda: self._store.check(["failed"])):
            failed = json.loads(self._ask(lambda: self._store.get("failed")))
            raise OthersGone(f"{failed['who']} has ended: {failed['says']}")

    def close(self, error: BaseException | None = None) -> None:
        """Say that this process ends, and why; the first waits until all need nothing more. Never raises."""
        try:
            if error is not None and not isinstance(error, OthersGone):
                self.fail(str(error) if isinstance(error, Exception) else "it was stopped")
            self._ask(lambda: self._store.set(f"done {self.peer.number}", "1"))
            if error is None and self.peer.is_first:
                for number in range(self.peer.processes):
                    self._wait(f"done {number}", of=number)
        except OthersGone:
            pass  # nobody is there to hear it
        self._closing.set()

    def _wait(self, key: str, *, of: int, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Return when process `of` has left something under `key`; raise where it is not heard of for long."""
        sign, heard, since = f"beat {of}", None, time.monotonic()
        while not self._ask(lambda: self._store.check([key])):
            self.raise_failed()
            now = self._ask(lambda: self._store.check([sign]) and self._store.get(sign))
            if now != heard:
                heard, since = now, time.monotonic()
            elif time.monotonic() - since > PATIENCE.total_seconds():
                raise OthersGone(f"Process {of} was not heard of for {PATIENCE.total_seconds():.0f} s. {AGAIN}")
            if should_stop():
                raise InterruptedError
            time.sleep(LOOK)

    def _beat(self) -> None:
        n = 0
        try:
            while not self._closing.wait(EVERY if n else 0):
                n += 1
                self._store.set(f"beat {self.peer.number}", str(n))
        except RuntimeError:
            pass  # whoever waits for a word finds out

    def _ask(self, what: Callable[[], T]) -> T:
        try:
            return what()
        except RuntimeError as error:
            where = f"({self.peer.address}, port {self.peer.port})"
            raise OthersGone(
                f"{str(self.peer).capitalize()} no longer reaches node 0 {where}: {first_line(error)}. {AGAIN}"
            ) from error


def first_line(error: Exception) -> str:
    """What an error says, without where in the library it came from."""
    return str(error).partition("\n")[0]
