"""What the command lines of the suite share: how options are read, how a command is written down, how it ends."""

import argparse
import difflib
import errno
import importlib.metadata
import io
import os
import re
import select
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from repro.render import terminal
from repro.results.places import EXPERIMENTS, PACKAGE, experiment_files
from repro.storage.atomic import DiskError, named

DISTRIBUTION = "attention-repro"  # what pip knows this package by
ALIKE = 0.75  # of two words: base and bse are alike; h=1 and h=5, here and nowhere are not
FAILED, BAD_INPUT, DISK = 1, 2, 74  # exit codes: failed service, bad input, disk; of runs: `pool.py`
GONE = (errno.EPIPE, errno.EIO)  # errors of a write whose reader has ended or whose terminal was closed
STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1") if hasattr(signal, name))
PARENT = "REPRO_PARENT"  # in the environment of a process that ends with another one: the number of that
ECHO = 5.0  # seconds in which PyTorch's launcher passes on to its processes what the terminal has sent them already


class Parser(argparse.ArgumentParser):
    """argparse's parser, with options by full name only: an abbreviation might mean another option some day."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, and end with 2."""
        if unknown := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            message += guess(unknown[1], self._option_string_actions).rstrip(".")
        self.exit(BAD_INPUT, f"error: {message}; --help says what is expected\n")


def folder_named(typed: str) -> Path:
    """The folder of an option. Raises ArgumentTypeError for an empty name, as of an unset variable in a shell."""
    if not typed.strip():
        raise argparse.ArgumentTypeError(f"expected the name of a folder, got {typed!r}; a dot is the current one")
    return Path(typed)


def release() -> str:
    """The version of this package as it was installed; code that runs from a checkout has none."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def guess(word: str, known: Iterable[str]) -> str:
    """The end of a sentence on an unknown word: it asks whether a similar known word is meant, or is a full stop."""
    spelt = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(word.casefold(), spelt, n=1, cutoff=ALIKE)
    return f"; did you mean {spelt[near[0]]}?" if near else "."


def command_line(options: Mapping[str, Any]) -> str:
    """Options as they are typed into a shell; a switch is its name, a list has a word for each value."""
    words: list[str] = []
    for name, value in options.items():
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words += map(str, value if isinstance(value, list | tuple) else [value])
    return shlex.join(words)


def python() -> str:
    """How the user calls this interpreter: by name where the shell finds it under that name, else by its path."""
    found = shutil.which("python")
    if found is not None and os.path.dirname(found) == os.path.dirname(sys.executable):  # links of others lead here too
        return "python"
    near = os.path.relpath(sys.executable)
    return shlex.quote(sys.executable if near.startswith("..") else near)


def ours(*words: str) -> str:
    """How the user types one of our commands: `python -m repro ui`, or `repro ui` where the shell finds that name."""
    found, called = shutil.which("repro"), Path(sys.argv[0]).stem == "repro"
    is_at_hand = found is not None and os.path.dirname(found) == os.path.dirname(sys.executable)
    called = called or (is_at_hand and (PACKAGE / EXPERIMENTS).is_dir())
    return " ".join(["repro" if called else f"{python()} -m repro", *map(shlex.quote, words)])


def hinted(error: Exception) -> str:
    """The text of an error, with our commands as the user types them, which lower folders do not know."""
    return re.sub(r"(?<![\w/])python -m repro\b", lambda _: ours(), str(error))


def experiments() -> dict[str, Path]:
    """The experiment files that came with this code, by name."""
    return {file.stem: file for file in sorted(experiment_files().glob("*.py"))}


def unknown_experiment(name: str) -> str | None:
    """The message for a name that no experiment has; None for one that is there."""
    files = experiments()
    if name in files:
        return None
    return f"{name} is not an experiment{guess(name, files)} There are {', '.join(files) or 'none'}."


def experiment_command(name: str) -> str:
    """How the user starts the experiment file of that name."""
    running = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
    installed = PACKAGE / EXPERIMENTS  # where there is no clone, whatever calls this
    file = PACKAGE.parent / EXPERIMENTS / f"{name}.py"
    if running.stem == name and running.parent != installed:
        file = running
    elif installed.is_dir():
        return ours("run", name)
    return f"{python()} {shlex.quote(os.path.relpath(file))}"


# How it ends -----------------------------------------------------------------------------------------------


def code_of(error: Exception) -> int:
    """The exit code for this error: of a disk, of a service, or of what cannot be understood."""
    if isinstance(error, DiskError):
        return DISK
    return FAILED if isinstance(error, ConnectionError) else BAD_INPUT


def ended(command: Callable[[], int | None]) -> int:
    """Run a command to its end and return its exit code; that of SIGPIPE if its reader has gone."""
    terminal.open_streams()
    for name in ("stdout", "stderr"):
        _write_through(name)
    try:
        try:
            return command() or 0
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # what is left in the buffer would fail at the very end
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except DiskError as error:
        print(f"error: {error}", file=sys.stderr)
        return DISK
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 128 + signal.SIGINT


# Its output ----------------------------------------------------------------------------------------


class _Stream(io.FileIO):
    """Standard output or error: its disk's refusal is a DiskError. If `lasting`, it drops what nobody takes."""

    lasting = has_lost = False

    def write(self, data: Any) -> int:
        try:
            with named(Path("/dev", "stdout")):
                while (written := super().write(data)) is None:  # another process made it non-blocking
                    select.select([], [self], [])
            return written
        except OSError as error:
            if not self.lasting or error.errno in GONE:
                nowhere = os.open(os.devnull, os.O_WRONLY)  # what is left in the buffer would fail once more
                os.dup2(nowhere, self.fileno())
                os.close(nowhere)
            if not self.lasting:
                raise
            if not self.has_lost and self.fileno() == 1:
                said = f"The output cannot be written ({os.strerror(error.errno or 0)}): it has gaps from here on"
                said = "Nobody reads the output any more" if error.errno in GONE else said
                with suppress(OSError):  # the other stream may have gone the same way
                    os.write(2, f"{said}; the runs continue and write their records.\n".encode())
            self.has_lost = True
            return memoryview(data).nbytes


def outlive_reader() -> None:
    """From now on the output drops what nobody reads or no disk takes: hours of training must not end by that."""
    _Stream.lasting = True


def _write_through(name: str) -> None:
    """Let a standard stream write through a `_Stream`, unless there is none or the program replaced it itself."""
    now = getattr(sys, name)
    old = terminal.beneath(now)
    if old is None or old is not getattr(sys, f"__{name}__"):
        return
    new = io.TextIOWrapper(
        io.BufferedWriter(_Stream(old.fileno(), "w", closefd=False)),
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=old.line_buffering or old.write_through,  # as -u has it
    )
    setattr(sys, name, terminal.Shown(new))


# Signals -------------------------------------------------------------------------------------------


class Signals:
    """Ctrl-C, SIGTERM and what schedulers send before the end: before training they end the process, as in any command.

    In training the first is answered at once and only sets a flag: the run stops at its next optimizer step, with a
    checkpoint. A second ends the process. The exit code is 128 plus the signal's number: 130, 143, 129, 138.
    """

    def __init__(self) -> None:
        """Raises ValueError outside the main thread: other threads get no signals."""
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("only the main thread gets signals. Start the experiment's file as a process of its own.")
        self.received, self.since = 0, 0.0
        self.training = False
        self.at_once = b"Stopped before training."  # what is said while nothing trains
        self.children: set[int] = set()  # processes that end when this one is ended at once
        # a launcher, a sweep or a task of Ray: if it is lost, nothing else can end this process
        parent = os.environ.pop(PARENT, None)
        self._parent = int(parent) if parent else os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
        self._before = {number: signal.getsignal(number) for number in STOPPING}
        for number, handler in self._before.items():
            if handler is not signal.SIG_IGN:  # nohup: whoever started us wants it ignored
                signal.signal(number, self._handle)

    def leave(self) -> None:
        """Restore what signals did before, for programs that go on after the run."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received and "TORCHELASTIC_RUN_ID" in os.environ and now - self.since < ECHO:
            return
        if self.received:
            # not by an exception, which other code may catch or delay: files on the disk are whole at any time
            _answer(b"Stopped at once; the same command goes on from the last checkpoint.")
            for child in list(self.children):
                with suppress(OSError):
                    os.kill(child, signal.SIGKILL)
            os._exit(128 + number)
        self.received, self.since = number, now
        if not self.training:
            _answer(self.at_once)
            sys.exit(128 + number)
        _answer(b"Stopping after this step, with a checkpoint. A second signal stops at once.")

    def should_stop(self) -> bool:
        """Whether a signal asked for it, or the process with which this one ends is gone."""
        return bool(self.received) or self._parent not in (None, os.getppid())


def _answer(words: bytes) -> None:
    """Say it on the terminal now, not through Python's streams, which may be in the middle of a line."""
    if os.environ.get("RANK", "0") == "0":  # of several processes the first speaks
        # progress lines go up by their own number of lines before they are drawn again
        below = b"\n\n" if os.isatty(2) else b"\n"
        with suppress(OSError):  # nobody is there to read it
            os.write(2, b"\n" + words + below)
