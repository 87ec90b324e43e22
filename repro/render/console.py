"""Where a person reads: standard output and error that take any text, and show it as text.

A name may hold what a terminal obeys (ESC begins its commands), a console may know ASCII alone, and whoever started us
may have closed both. `open_streams` is called once, where a command begins; from then on all that is printed is safe.
"""

import codecs
import io
import os
import sys
from typing import Any

from repro.render.escape import shown, spelt

ERRORS = "repro.spelt"  # the name of what Python asks about letters that an encoding lacks


def open_streams() -> None:
    """Have standard output and error take all that is printed, wherever they lead."""
    _open_what_is_closed()
    os.environ.setdefault("PYTHON_COLORS", "0")  # the colours of Python 3.13's own messages would be shown as text
    codecs.register_error(ERRORS, _spell)
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # it was closed when Python started
            stream = io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "w", closefd=False)), "utf-8")
        if not isinstance(stream, Shown):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=ERRORS)
            setattr(sys, name, Shown(stream))


class Shown:
    """A stream that writes what a terminal would obey as what it is called; in all else the stream `beneath`."""

    def __init__(self, beneath: Any) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        """Write `text` as text."""
        self.beneath.write(shown(text))
        return len(text)

    def writelines(self, texts: Any) -> None:
        """Write each of `texts`."""
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.beneath, name)


def beneath(stream: Any) -> Any:
    """The stream itself, for who has commands for the terminal to write, such as a moving bar."""
    return stream.beneath if isinstance(stream, Shown) else stream


def _open_what_is_closed() -> None:
    """Let 0, 1 and 2 lead nowhere rather than be free: the next file opened would get the number, and be printed to."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(spelt, error.object[error.start : error.end])), error.end
