"""Worker processes on this machine: how one is started, and how it ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from repro.runs.executors.channel import WORKER, Channel, Message
from repro.runs.executors.followed import end_of
from repro.storage import atomic

LOGS = ".workers"  # in the folder of runs
TIDY_UP = 10.0  # seconds that a worker has to end by itself once it was told that nothing more is wanted


class LocalWorker:
    """A worker process of this machine. What it prints goes to `log`, which a good end removes."""

    def __init__(self, command: Sequence[str], runs: Path, number: int, environment: dict[str, str]) -> None:
        self.host = socket.gethostname()
        folder = runs / LOGS
        atomic.make_folder(folder)
        self.log = str(folder / f"{self.host}-{os.getpid()}-{number}.log")
        hear, told = os.pipe()  # what it is told
        tell, heard = os.pipe()  # what it tells
        try:
            with atomic.named(Path(self.log)), open(self.log, "ab") as log:
                self._process = subprocess.Popen(
                    command,
                    env=environment | {WORKER: f"{hear},{heard}"},
                    pass_fds=(hear, heard),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
        finally:
            os.close(hear)
            os.close(heard)
        self._channel = Channel(tell, told)
        self.pid = self._process.pid

    def send(self, message: Message) -> None:
        """Tell the worker."""
        self._channel.send(message)

    def messages(self) -> Iterator[Message]:
        """What it tells, until it ends."""
        return self._channel.messages()

    def kill(self) -> None:
        """End it at once; what it has made so far is whole."""
        self._process.kill()

    def end(self) -> int:
        """Wait until it is gone, which it is at once unless it hangs; the exit code, negative for a signal."""
        self._channel.hang_up()
        try:
            code = self._process.wait(TIDY_UP)
            leaves_nothing = code == 0
        except subprocess.TimeoutExpired:  # as on a busy machine: what it had made was told before
            self.kill()
            code = self._process.wait()
            leaves_nothing = not end_of(Path(self.log))
        if leaves_nothing:
            Path(self.log).unlink(missing_ok=True)
        return code


def this_command() -> list[str] | None:
    """The words that start this very process again; None where it was not started from a file."""
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script is None or not Path(script).is_file() or Path(script).name == "__main__.py":
        return None
    return [sys.executable, script, *sys.argv[1:]]


def tail(log: str, lines: int = 12) -> str:
    """The end of a log file; why it cannot be read, if so."""
    try:
        text = Path(log).read_bytes()[-20_000:].decode("utf-8", "replace")
    except OSError as error:
        return f"({error})"
    return "\n".join(f"  | {line}" for line in text.rstrip().split("\n")[-lines:]) if text.strip() else "  (empty)"


def how_it_ended(code: int) -> str:
    """How a process ended, in words."""
    return f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
