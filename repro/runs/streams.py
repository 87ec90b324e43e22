"""Standard output and error when their reader stops (`| head`), or their disk is full (`> log`)."""

import errno
import io
import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from repro.render import console
from repro.storage.atomic import DiskError, named

GONE = (errno.EPIPE, errno.EIO)  # errors of a write whose reader has ended or whose terminal was closed


def lead_nowhere(number: int) -> None:
    """Discard what is still written to this stream."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


class _Stream(io.FileIO):
    """A stream that ends the command where its disk refuses, by a DiskError that names it.

    One that is `lasting` discards everything once its reader has gone, and drops what its disk does not take.
    """

    def __init__(self, number: int, lasting: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self.lasting, self.has_lost = lasting, False

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        try:
            with named(Path("/dev", "stdout")):
                while rest:
                    if (written := super().write(rest)) is None:  # another process made it non-blocking
                        select.select([], [self], [])
                    else:
                        rest = rest[written:]
        except OSError as error:
            if error.errno in GONE if self.lasting else isinstance(error, DiskError):
                lead_nowhere(self.fileno())  # what is left in the buffer would fail once more
            if not self.lasting:
                raise
            if not self.has_lost and self.fileno() == 1:
                said = f"The output cannot be written ({os.strerror(error.errno or 0)}): it has gaps from here on"
                said = "Nobody reads the output any more" if error.errno in GONE else said
                with suppress(OSError):  # the other stream may have gone the same way
                    os.write(2, f"{said}; the runs continue and write their records.\n".encode())
            self.has_lost = True
        return memoryview(data).nbytes


def end_at_full_disk() -> None:
    """From now on, a disk without room for standard output raises a DiskError that names the stream."""
    _write_through(1, lasting=False)


def outlive_reader() -> None:
    """From now on, standard output and error drop what nobody reads and what no disk has room for: hours of training
    must not end because a pager was closed or a log has filled its disk.
    """
    for number in (1, 2):
        _write_through(number, lasting=True)


def _write_through(number: int, *, lasting: bool) -> None:
    """Replace a standard stream, unless there is none or the program replaced it itself."""
    name = {1: "stdout", 2: "stderr"}[number]
    now = getattr(sys, name)
    old = console.beneath(now)
    buffer = getattr(old, "buffer", None)
    if old is None or not (isinstance(getattr(buffer, "raw", buffer), _Stream) or old is getattr(sys, f"__{name}__")):
        return
    with suppress(OSError):
        old.flush()
    raw = _Stream(number, lasting)
    new = io.TextIOWrapper(
        raw if isinstance(buffer, io.RawIOBase) else io.BufferedWriter(raw),  # as -u has it
        encoding=old.encoding,
        errors=old.errors,
        line_buffering=old.line_buffering,
        write_through=old.write_through,
    )
    setattr(sys, name, console.Shown(new) if isinstance(now, console.Shown) else new)
