"""What the command lines of the suite share: how options are read, how a command is written down, how it ends."""

import argparse
import difflib
import importlib.metadata
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from repro.render import console
from repro.results.places import EXPERIMENTS, PACKAGE, experiment_files
from repro.runs import streams
from repro.storage.atomic import DiskError

DISTRIBUTION = "attention-repro"  # what pip knows this package by
ALIKE = 0.75  # of two words: base and bse are alike; h=1 and h=5, here and nowhere are not
FAILED, BAD_INPUT, DISK = 1, 2, 74  # exit codes: failed service, bad input, disk; of runs: `executor.py`


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
    """How the user types one of our commands: `python -m repro ui`, or `repro ui` where that is what was typed.

    An installed package is called `repro` where the shell finds it: what `repro run` starts does not see that name.
    """
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
    console.open_streams()
    streams.end_at_full_disk()
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
