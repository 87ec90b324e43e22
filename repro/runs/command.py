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
ALIKE = 0.75  # of two words: base and bse are alike; h=1 and h=5, here and nowhere are not
FAILED, BAD_INPUT, DISK = 1, 2, 74  # exit codes: failed service, bad input, disk; of runs: `executor.py`


class Parser(argparse.ArgumentParser):
    """argparse's parser, with options by full name only: an abbreviation might mean another option some day."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse unknown options here, where the options of the sub-command are known."""
        words = sys.argv[1:] if args is None else args
        self._refuse_twice(words)
        found, unknown = super().parse_known_args(words, namespace)
        # where options may stand between files, options are read first, and then the rest
        options_alone = any(action.nargs == argparse.SUPPRESS for action in self._get_positional_actions())
        if unknown and not options_alone:
            self.error(
                unknown_option(unknown, self._option_string_actions) or f"this command takes no {shlex.join(unknown)}"
            )
        return found, unknown

    def _refuse_twice(self, words: Sequence[str]) -> None:
        """Refuse an option with many values that is there twice: argparse would silently drop the first values.

        Of an option with one value the last counts, as everywhere: a caller's may follow a script's own.
        """
        there = Counter(word.partition("=")[0] for word in itertools.takewhile("--".__ne__, words))
        for name, action in self._option_string_actions.items():
            if there[name] > 1 and action.nargs in ("+", "*"):
                self.error(f"{name} was given {there[name]} times; give it once, followed by all its values")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """For a value that is none of the choices, name them all and the one that is probably meant."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            near = guess(str(value), known).removesuffix(".")
            raise argparse.ArgumentError(action, f"expected one of {', '.join(known)}, got {value!r}{near}")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, and end with 2."""
        ends = "" if "--help" in message else f"{' ' if message.endswith('?') else '; '}--help says what is expected"
        self.exit(BAD_INPUT, f"error: {message}{ends}\n")


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


def unknown_option(words: Iterable[str], known: Iterable[str]) -> str | None:
    """The message for the first word that looks like an option and is none; None if there is no such word."""
    options = sorted(known)
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name != "--" and name not in options:
            near = [option for option in options if option.startswith(name)]
            meant = f"; did you mean {' or '.join(near)}?" if near else guess(name, options)
            return f"{name} is not an option{meant} --help lists all."
    return None


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
    """How the user types one of our commands: `python -m repro ui`, or `repro ui` where that is what was typed."""
    called = Path(sys.argv[0]).stem == "repro" or _is_at_hand()
    return " ".join(["repro" if called else f"{python()} -m repro", *map(shlex.quote, words)])


def hinted(error: Exception) -> str:
    """The text of an error, with our commands as the user types them, which lower folders do not know."""
    return re.sub(r"(?<![\w/])python -m repro\b", lambda _: ours(), str(error))


def _is_at_hand() -> bool:
    """Whether the shell finds `repro` of an installed package: files that `repro run` starts do not see its name."""
    found = shutil.which("repro")
    beside = found is not None and os.path.dirname(found) == os.path.dirname(sys.executable)
    return beside and (PACKAGE / EXPERIMENTS).is_dir()


def experiment_command(name: str, start: str = "") -> str:
    """How the user starts the experiment file of that name, with an interpreter, or with the words of `start`."""
    of_file = script(name)
    return ours("run", name) if not start and of_file.startswith("-m ") else f"{start or python()} {of_file}"


def script(name: str) -> str:
    """What is typed after the interpreter for that file: the file that runs, wherever it is, or ours."""
    running = Path(getattr(sys.modules["__main__"], "__file__", None) or "")
    installed = PACKAGE / EXPERIMENTS  # where there is no clone, whatever calls this
    if running.stem == name and running.parent != installed:
        return shlex.quote(os.path.relpath(running))
    if installed.is_dir():
        return f"-m repro run {name}"
    return shlex.quote(os.path.relpath(PACKAGE.parent / EXPERIMENTS / f"{name}.py"))


# How it ends -----------------------------------------------------------------------------------------------


def code_of(error: Exception) -> int:
    """The exit code for this error: of a disk, of a service, or of what cannot be understood."""
    if isinstance(error, DiskError):
        return DISK
    return FAILED if isinstance(error, ConnectionError) else BAD_INPUT


def ended(command: Callable[[], int | None]) -> int:
    """Run a command to its end and return its exit code; that of SIGPIPE if its reader has gone."""
    console.open_streams()
    streams.end_at_full_disk()
    try:
        Path.cwd()
    except FileNotFoundError:
        print("error: the working directory was deleted. Type cd and a folder, then the same command.", file=sys.stderr)
        return BAD_INPUT
    try:
        try:
            return command() or 0
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # what is left in the buffer would fail at the very end
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
    """Delay Ctrl-C to the end of the block: an import of compiled code would lose it, or leave half a module."""
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
