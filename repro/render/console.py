"""Standard output and error that take any text, and show it as plain text.

A name may hold characters that a terminal obeys (ESC begins its commands), a console may know only ASCII, and both
streams may be closed. `open_streams` is called once, when a command begins; from then on printing is safe.
"""

import io
import os
import sys
from typing import Any

from repro.render.text import shown


def open_streams() -> None:
    """Make standard output and error take any text, wherever they lead."""
    os.environ.setdefault("PYTHON_COLORS", "0")  # the colours of Python 3.13's own messages would be shown as text
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed when Python started: else the next file that is opened gets its number
            stream = io.TextIOWrapper(io.BufferedWriter(io.FileIO(os.devnull, "w")), "utf-8")
        if not isinstance(stream, Shown):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, Shown(stream))


class Shown:
    """A stream that writes control characters by their names (`escape.shown`); otherwise the stream `beneath`."""

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
    """The stream itself, for code that writes commands for the terminal, such as a progress bar."""
    return stream.beneath if isinstance(stream, Shown) else stream
