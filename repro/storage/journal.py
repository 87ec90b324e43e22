"""The journal of a run: what each logged step measured, one JSON line each.

    {"crc32": "9c1f06d4", "kind": "dev", "step": 200, "nll": 2.1, ...} is the metric dev/nll at step 200

It is the source of these numbers: whatever else shows them is made from it. So each line begins with the CRC-32 of
the rest: a number that was changed on the disk or by hand would still be read, and signed, as a number.
"""

import json
import math
import operator
import re
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from repro.storage import atomic
from repro.storage.lock import lock

FRAME = ("kind", "step", "time", "attempt")  # in every line; the other fields are measured values
CHECKED = re.compile(rb'\{"crc32": "([0-9a-f]{8})", (.*)')
FINAL = "final"  # the kind of the run's last numbers
# kinds that only MLflow has: made from files beside the journal, and from a row's seeds
DERIVED = ("paper", "further", "row_mean")

Line = dict[str, Any]


class Journal:
    """Append-only JSON lines, one for each logged step, with a single writer.

    When `append` returns, the operating system has the line, so it survives the process; after `sync`
    it survives the machine. Opening a journal again cuts off a line that a crash tore and begins the next
    attempt. Steps that training then repeats are in the file twice; `read` gives them once.
    """

    def __init__(
        self, path: Path, *, patience: float = 10.0, attempt: int = 1, check: Callable[[], None] = lambda: None
    ) -> None:
        self._last: dict[str, int]
        self._check = check  # raises if this process must write no more, see `repro/storage/lease.py`
        self._file = atomic.Appended(path)
        try:
            # patience: workers of a killed process hold its lock until they notice
            if not lock(self._file.file, patience):
                raise BlockingIOError(f"{path} has a writer: the same run is training. Wait, or stop it.")
            tail = Tail(path)
            self.attempt, self._n, self._last = attempt, 0, {}
            for line in tail.lines():
                self.attempt = max(self.attempt, line["attempt"] + 1)
                self._note(line["kind"], line["step"])
            self._file.cut(tail.offset)
        except BaseException:
            self._file.close()
            raise

    def append(self, kind: str, step: int, **values: float) -> None:
        """Write one line; `kind` and each name of a value make the metric kind/name."""
        step = operator.index(step)
        line: Line = {"kind": kind, "step": step, "time": round(time.time(), 3), "attempt": self.attempt}
        # NaN and infinities are no JSON: they stand there as text that float() reads
        line |= {
            name: number if math.isfinite(number := float(value)) else str(number) for name, value in values.items()
        }
        self._check()
        self._file.append(encoded(line))
        self._note(kind, step)

    def _note(self, kind: str, step: int) -> None:
        """Remember the last step of each kind: an earlier step is one that training repeats."""
        if step > self._last.get(kind, -math.inf):
            self._last[kind], self._n = step, self._n + 1

    def __contains__(self, line: tuple[str, int]) -> bool:
        """Whether lines of this kind have reached this step, in any attempt."""
        kind, step = line
        return step <= self._last.get(kind, -math.inf)

    def __len__(self) -> int:
        """The number of lines; those of a repeated step count once."""
        return self._n

    def sync(self) -> None:
        """Push what was appended to the disk: before checkpoints, after validations and at the end."""
        self._check()
        self._file.push()

    def close(self) -> None:
        """Push to the disk and close; a second call does nothing."""
        if self._file.file >= 0:
            self._file.push()
            self._file.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_all(path: Path) -> list[Line]:
    """All lines of a journal: a step repeated after a crash has one for each attempt."""
    return list(Tail(path).lines())


def read(path: Path) -> list[Line]:
    """The lines of a journal, each (kind, step) once, as the last attempt wrote it.

    The attempt decides, not the position: a process that slept while it was replaced may write after its successor.
    """
    lines = read_all(path)
    ordered = sorted(lines, key=lambda line: line["attempt"])
    return list({(line["kind"], line["step"]): line for line in ordered}.values())


def encoded(line: Line) -> bytes:
    """A line as it stands in the file."""
    rest = json.dumps(line, allow_nan=False).encode()[1:]
    return b'{"crc32": "%08x", %b\n' % (zlib.crc32(rest), rest)


class Tail:
    """Follows a journal: gives the complete lines added since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self._n = 0

    def lines(self) -> Iterator[Line]:
        """The new lines, one at a time: a long journal takes no memory.

        A last line without its line feed is torn, or still being written: it does not count.
        """
        with suppress(FileNotFoundError), open(self.path, "rb") as file:
            file.seek(self.offset)
            for text in file:
                if not text.endswith(b"\n"):
                    return
                checked = CHECKED.fullmatch(text[:-1])
                if checked is None or zlib.crc32(checked[2]) != int(checked[1], 16):
                    raise ValueError(
                        f"{self.path}, line {self._n + 1}: expected an object of numbers and its checksum, got "
                        f"{text[:80]!r}. Another program or a bad disk changed the file. Take it from a copy, or "
                        "remove that line: the same command then goes on, and the curves have a gap."
                    )
                line = json.loads(b"{" + checked[2])
                self.offset += len(text)
                self._n += 1
                yield {name: value if name in FRAME else float(value) for name, value in line.items()}
