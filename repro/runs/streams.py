"""Standard output and error of training when their reader stops (`| head`), or their disk is full (`> log`)."""

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any

from repro.render import console

GONE = (errno.EPIPE, errno.EIO)  # errors of a write whose reader has ended or whose terminal was closed


def lead_nowhere(number: int) -> None:
    """Discard what is still written to this stream."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


class _Outliving(io.FileIO):
    """A stream that discards everything once its reader has gone, and drops what its disk does not take."""

    has_lost = False

    def write(self, data: Any) -> int:
        try:
            # None: another process made it one that does not wait
            return super().write(data) or memoryview(data).nbytes
        except OSError as error:
            if error.errno in GONE:
                lead_nowhere(self.fileno())
                said = "Nobody reads the output any more"
            else:
                said = f"The output cannot be written ({os.strerror(error.errno or 0)}): it has gaps from here on"
            if not self.has_lost and self.fileno() == 1:
                with suppress(OSError):  # the other stream may have gone the same way
                    os.write(2, f"{said}; the runs continue and write their records.\n".encode())
            self.has_lost = True
            return memoryview(data).nbytes


def outlive_reader() -> None:
    """From now on, standard output and error drop what nobody reads and what no disk has room for: hours of training
    must not end because a pager was closed or a log has filled its disk.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        now = getattr(sys, name)
        old = console.beneath(now)
        if old is None or old is not getattr(sys, f"__{name}__"):
            continue  # there is none, or the program replaced it itself
        with suppress(OSError):
            old.flush()
        raw = _Outliving(number, "w", closefd=False)
        new = io.TextIOWrapper(
            raw if isinstance(getattr(old, "buffer", None), io.RawIOBase) else io.BufferedWriter(raw),  # as -u has it
            encoding=old.encoding,
            errors=old.errors,
            line_buffering=old.line_buffering,
            write_through=old.write_through,
        )
        setattr(sys, name, console.Shown(new) if isinstance(now, console.Shown) else new)
