"""What the command lines of the suite share: how options are read, how a command is written down, how it ends."""

import argparse
import difflib
import errno
import importlib.metadata
import io
import os
import select
import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from repro.render import console
from repro.results.places import EXPERIMENTS, PACKAGE
from repro.storage.atomic import DiskError, named

DISTRIBUTION = "attention-repro"  # what pip knows this package by
BAD_INPUT, DISK = 2, 74  # exit codes: of what cannot be understood, and of a disk; `sweep.py` has those of runs

GONE = (errno.EPIPE, errno.EIO)  # what writing says where the reader has ended, or its terminal was closed
GONE_FOLDER = "the working directory is gone; expected one that is there. Type cd and a folder, then the same command."

Renamed = Mapping[str, tuple[str, Mapping[str, str]]]


class Parser(argparse.ArgumentParser):
    """argparse's, with options by their whole names only: an abbreviation would mean another one some day.

    `renamed` has the names of before, each with that of today and with the values that are spelled otherwise now.
    """

    def __init__(self, *, renamed: Renamed | None = None, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)
        self._renamed = renamed or {}

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what nobody knows here, where the options of a command that has several commands are known."""
        words = modern(sys.argv[1:] if args is None else args, self._renamed)
        found, unknown = super().parse_known_args(words, namespace)
        # of a command whose options may stand between its files, options are read first, and then the rest
        options_alone = any(action.nargs == argparse.SUPPRESS for action in self._get_positional_actions())
        if unknown and not options_alone:
            self.error(
                unknown_option(unknown, self._option_string_actions) or f"this command takes no {shlex.join(unknown)}"
            )
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, and end with 2."""
        self.exit(
            BAD_INPUT, f"error: {message}" + ("\n" if "--help" in message else "; --help says what is expected\n")
        )


def release() -> str:
    """The version of this package as it was installed; code that runs where it lies has none."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def modern(words: Sequence[str], renamed: Renamed) -> list[str]:
    """The words of a command line with the names of today; each that was replaced is said on stderr."""
    found, left = [], list(words)
    while left and left[0] != "--":
        name, joined, value = left.pop(0).partition("=")
        if name not in renamed:
            found.append(name + joined + value)
            continue
        new, values = renamed[name]
        before = [value] if joined else [left.pop(0)] if left else []
        today = [values.get(one, one) for one in before]
        print(f"{' '.join([name, *before])} is now {' '.join([new, *today])}", file=sys.stderr)
        found += [new, *today]
    return found + left


def unknown_option(words: Iterable[str], known: Iterable[str]) -> str | None:
    """What to say of the first word that looks like an option and is none; None if there is no such word."""
    options = sorted(known)
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name != "--" and name not in options:
            near = [option for option in options if option.startswith(name)]
            near = near or difflib.get_close_matches(name, options, n=1)
            guess = f"; did you mean {' or '.join(near)}?" if near else "."
            return f"{name} is not an option{guess} --help lists all."
    return None


def command_line(options: Mapping[str, Any]) -> str:
    """Options as they are typed into a shell; a switch is its name, a list has a word for each value."""
    words: list[str] = []
    for name, value in options.items():
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words += map(str, value if isinstance(value, list | tuple) else [value])
    return shlex.join(words)


def python() -> str:
    """How the user calls the interpreter that runs this."""
    interpreter = os.path.relpath(sys.executable)
    return "python" if interpreter.startswith("..") else shlex.quote(interpreter)


def ours(*words: str) -> str:
    """How the user types one of our commands: `python -m repro ui`, or `repro ui` where that is what was typed."""
    called = Path(sys.argv[0]).stem == "repro"
    return " ".join(["repro" if called else f"{python()} -m repro", *map(shlex.quote, words)])


def script(name: str) -> str:
    """How the user calls the experiment file of that name: the one that runs, wherever it is, or ours."""
    running = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
    installed = PACKAGE / EXPERIMENTS  # where there is no clone, whatever calls this
    if running.stem == name and running.parent != installed:
        return shlex.quote(os.path.relpath(running))
    return f"-m repro run {name}" if installed.is_dir() else f"experiments/{name}.py"


# A reader that has had enough: `| head`; a disk that has: `> log` ------------------------------------------------


def code_of(error: Exception) -> int:
    """The exit code where this error has been told: that of a disk, or that of what cannot be understood."""
    return DISK if isinstance(error, DiskError) else BAD_INPUT


def ended(command: Callable[[], int | None]) -> int:
    """Run a command to its end; the exit code, that of SIGPIPE where nobody reads on and it ends for that."""
    console.open_streams()
    _have_written(1, _Named)
    try:
        try:
            os.getcwd()
        except FileNotFoundError:
            print(f"error: {GONE_FOLDER}", file=sys.stderr)
            return BAD_INPUT
        try:
            return command() or 0
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # what is left in the buffer would complain at the very end
    except BrokenPipeError:
        _lead_nowhere(1)
        return 128 + signal.SIGPIPE
    except DiskError as error:
        print(f"error: {error}", file=sys.stderr)
        return DISK
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 128 + signal.SIGINT


def outlive_reader() -> None:
    """From now on standard output and error take what nobody reads, and what no disk has room for: hours of training
    must not end with a pager or a log.
    """
    for number in (1, 2):
        _have_written(number, _Outliving)


def _have_written(number: int, kind: "type[_Named | _Outliving]") -> None:
    """Have a standard stream written by `kind`; not where there is none, or it was put elsewhere."""
    name = {1: "stdout", 2: "stderr"}[number]
    now = getattr(sys, name)
    old = console.beneath(now)
    buffer = getattr(old, "buffer", None)
    is_ours = isinstance(getattr(buffer, "raw", buffer), _Named | _Outliving)
    if old is None or not (is_ours or old is getattr(sys, f"__{name}__")):
        return
    with suppress(OSError):
        old.flush()
    raw = kind(number, "w", closefd=False)
    new = io.TextIOWrapper(
        raw if isinstance(buffer, io.RawIOBase) else io.BufferedWriter(raw),  # as -u has it
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )
    setattr(sys, name, console.Shown(new) if isinstance(now, console.Shown) else new)


class _Named(io.FileIO):
    """A stream that ends the command where its disk refuses, and says so of itself."""

    def write(self, data: Any) -> int:
        try:
            with named(Path("/dev", "stdout")):
                return _all_written(super().write, data, self)
        except DiskError:
            _lead_nowhere(self.fileno())  # what is left in the buffer would complain once more
            raise


class _Outliving(io.FileIO):
    """A stream that leads nowhere once its reader has gone, and leaves out what its disk does not take."""

    has_lost = False

    def write(self, data: Any) -> int:
        try:
            return _all_written(super().write, data, self)
        except OSError as error:
            if error.errno in GONE:
                _lead_nowhere(self.fileno())
                said = "Nobody reads the output any more"
            else:
                said = f"The output cannot be written ({os.strerror(error.errno or 0)}): it has gaps from here on"
            if not self.has_lost and self.fileno() == 1:
                with suppress(OSError):  # the other stream may have gone the same way
                    os.write(2, f"{said}; the runs continue and write their records.\n".encode())
            self.has_lost = True
            return memoryview(data).nbytes


def _all_written(write: Callable[[Any], int | None], data: Any, stream: io.FileIO) -> int:
    """The number of bytes, once all are written; also where others made the stream one that does not wait."""
    rest = memoryview(data).cast("B")
    while rest:
        if (written := write(rest)) is None:
            select.select([], [stream], [])
        else:
            rest = rest[written:]
    return memoryview(data).nbytes


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
