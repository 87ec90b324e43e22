"""What a driver and its workers tell each other: JSON, a line each, through two pipes."""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Self

Message = dict[str, Any]

WORKER = "REPRO_WORKER"  # in the environment of a worker: the numbers of its two files, "3,4"


class Channel:
    """One end: messages come from the file `incoming` and go to the file `outgoing`."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming = os.fdopen(incoming, "rb")
        self._outgoing: int | None = outgoing
        self._one_at_a_time = threading.Lock()

    @classmethod
    def inherited(cls, environment: Mapping[str, str]) -> Self | None:
        """That of a process which was started as a worker; None of any other.

        Raises ValueError where the variable is there and the files are not.
        """
        said = environment.get(WORKER)
        if said is None:
            return None
        try:
            incoming, outgoing = (int(number) for number in said.split(","))
            for number in (incoming, outgoing):
                os.fstat(number)
        except (ValueError, OSError):
            raise ValueError(
                f"{WORKER}={said} is set in the environment, but no sweep started this process as its worker. Remove "
                f"it with: unset {WORKER}"
            ) from None
        for number in (incoming, outgoing):
            os.set_inheritable(number, False)  # a process that this one starts would keep the other end waiting
        return cls(incoming, outgoing)

    def send(self, message: Message) -> None:
        """Tell the other end; where there is none any more nobody is told, and `messages` ends."""
        line = json.dumps(message).encode() + b"\n"
        with self._one_at_a_time, suppress(BrokenPipeError):
            while line and self._outgoing is not None:
                line = line[os.write(self._outgoing, line) :]

    def messages(self) -> Iterator[Message]:
        """What the other end tells, until it is gone; half a line that it left is none."""
        with self._incoming:
            for line in self._incoming:
                if line.endswith(b"\n"):
                    yield json.loads(line)

    def hang_up(self) -> None:
        """Tell nothing more, which the other end hears; what it has to say is still heard."""
        with self._one_at_a_time:
            if self._outgoing is not None:
                os.close(self._outgoing)
            self._outgoing = None
