"""What the command lines of the suite share: how options are read, how a command is written down, how it ends."""

import argparse
import difflib
import importlib.metadata
import itertools
import os
import re
import shlex
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from repro.render import console
from repro.results.places import EXPERIMENTS, PACKAGE
from repro.runs import streams
from repro.storage.atomic import DiskError

DISTRIBUTION = "attention-repro"  # what pip knows this package by
ALIKE = 0.75  # of two words: base and bse are, h=1 and h=5, here and nowhere are not
FAILED, BAD_INPUT, DISK = 1, 2, 74  # exit codes: a service's, of what cannot be understood, a disk's; runs: `sweep.py`

GONE_FOLDER = "the working directory is gone; expected one that is there. Type cd and a folder, then the same command."


class Parser(argparse.ArgumentParser):
    """argparse's, with options by their whole names only: an abbreviation would mean another one some day."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what nobody knows here, where the options of a command that has several commands are known."""
        words = sys.argv[1:] if args is None else args
        self._refuse_twice(words)
        found, unknown = super().parse_known_args(words, namespace)
        # of a command whose options may stand between its files, options are read first, and then the rest
        options_alone = any(action.nargs == argparse.SUPPRESS for action in self._get_positional_actions())
        if unknown and not options_alone:
            self.error(
                unknown_option(unknown, self._option_string_actions) or f"this command takes no {shlex.join(unknown)}"
            )
        return found, unknown

    def _refuse_twice(self, words: Sequence[str]) -> None:
        """Of an option of any number of values that is there twice argparse would drop the first ones without a word.

        Of one that has one value the last counts, as everywhere: a script's own may be followed by a caller's.
        """
        there = Counter(word.partition("=")[0] for word in itertools.takewhile("--".__ne__, words))
        for name, action in self._option_string_actions.items():
            if there[name] > 1 and action.nargs in ("+", "*"):
                self.error(f"{name} is there {there[name]} times, expected once, with all its values")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Of what is none of the choices say which is meant, beside naming them all."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            near = guess(str(value), known).removesuffix(".")
            raise argparse.ArgumentError(action, f"expected one of {', '.join(known)}, got {value!r}{near}")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, and end with 2."""
        ends = "" if "--help" in message else f"{' ' if message.endswith('?') else '; '}--help says what is expected"
        self.exit(BAD_INPUT, f"error: {message}{ends}\n")


def folder_named(typed: str) -> Path:
    """The folder of an option. Raises ArgumentTypeError for no name, as an unset variable of a shell leaves."""
    if not typed.strip():
        raise argparse.ArgumentTypeError(f"expected a folder, got {typed!r}; . is the one that you are in")
    return Path(typed)


def release() -> str:
    """The version of this package as it was installed; code that runs where it lies has none."""
    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def unknown_option(words: Iterable[str], known: Iterable[str]) -> str | None:
    """What to say of the first word that looks like an option and is none; None if there is no such word."""
    options = sorted(known)
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name != "--" and name not in options:
            near = [option for option in options if option.startswith(name)]
            meant = f"; did you mean {' or '.join(near)}?" if near else guess(name, options)
            return f"{name} is not an option{meant} --help lists all."
    return None


def guess(word: str, known: Iterable[str]) -> str:
    """How a sentence ends that says of a word that it is none of those that are known: with the one that is meant."""
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
    """How the user calls the interpreter that runs this: by its name where the shell finds this one, or by its path."""
    found = shutil.which("python")
    if found is not None and os.path.dirname(found) == os.path.dirname(sys.executable):  # links of others lead here too
        return "python"
    near = os.path.relpath(sys.executable)
    return shlex.quote(sys.executable if near.startswith("..") else near)


def ours(*words: str) -> str:
    """How the user types one of our commands: `python -m repro ui`, or `repro ui` where that is what was typed."""
    called = Path(sys.argv[0]).stem == "repro" or _is_at_hand()
    return " ".join(["repro" if called else f"{python()} -m repro", *map(shlex.quote, words)])


def hinted(error: Exception) -> str:
    """What an error says, with our commands as the user types them: lower floors do not know how that is."""
    return re.sub(r"(?<![\w/])python -m repro\b", lambda _: ours(), str(error))


def _is_at_hand() -> bool:
    """Whether `repro` of an installed package is where the shell looks: files that `repro run` starts are not told."""
    found = shutil.which("repro")
    beside = found is not None and os.path.dirname(found) == os.path.dirname(sys.executable)
    return beside and (PACKAGE / EXPERIMENTS).is_dir()


def experiment_command(name: str, start: str = "") -> str:
    """How the user starts the experiment file of that name, with an interpreter or with what else `start`s it."""
    of_file = script(name)
    return ours("run", name) if not start and of_file.startswith("-m ") else f"{start or python()} {of_file}"


def script(name: str) -> str:
    """What is typed behind the interpreter for that file: the one that runs, wherever it is, or ours."""
    running = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
    installed = PACKAGE / EXPERIMENTS  # where there is no clone, whatever calls this
    if running.stem == name and running.parent != installed:
        return shlex.quote(os.path.relpath(running))
    if installed.is_dir():
        return f"-m repro run {name}"
    return shlex.quote(os.path.relpath(PACKAGE.parent / EXPERIMENTS / f"{name}.py"))


# How it ends -----------------------------------------------------------------------------------------------


def code_of(error: Exception) -> int:
    """The exit code where this error has been told: of a disk, of a service, or of what cannot be understood."""
    if isinstance(error, DiskError):
        return DISK
    return FAILED if isinstance(error, ConnectionError) else BAD_INPUT


def ended(command: Callable[[], int | None]) -> int:
    """Run a command to its end; the exit code, that of SIGPIPE where nobody reads on and it ends for that."""
    console.open_streams()
    streams.end_at_full_disk()
    if not _is_somewhere():
        print(f"error: {GONE_FOLDER}", file=sys.stderr)
        return BAD_INPUT
    try:
        try:
            return command() or 0
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # what is left in the buffer would complain at the very end
    except BrokenPipeError:
        streams.lead_nowhere(1)
        return 128 + signal.SIGPIPE
    except DiskError as error:
        print(f"error: {error}", file=sys.stderr)
        return DISK
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 128 + signal.SIGINT


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Ctrl-C is answered at the end of the block: an import of compiled code loses it, or leaves half a module."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if received:
        raise KeyboardInterrupt


def _is_somewhere() -> bool:
    """Whether the working directory is there."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True
