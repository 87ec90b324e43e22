"""What a run's folder on one machine tells the same folder on another: what is new in it, a parcel at a time.

A node that sees no folder of the driver's keeps its run in a place of its own. What the run writes there travels as
plain values: lines of its journals as they come, each file when it is whole, the names of checkpoints that are gone,
and the record last. A lost node costs what no parcel has brought: at most what came after the newest checkpoint.

Neither side trusts the other's disk: each piece has the SHA-256 of its bytes, and a name is one of a pattern, never a
path. What one machine alone needs stays there: who makes the run (`attempts/`), and files that are not whole.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from repro.storage import atomic
from repro.tracking.run_folder import RECORD

CHECKPOINTS = "checkpoints"
NAME = re.compile(rf"(?:{CHECKPOINTS}/)?[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+")  # no hidden one, no way up
LONGEST = 120  # characters of a name
GROWS = ".jsonl"  # files that only grow, line by line
MOST = 1 << 26  # bytes of a parcel, after which the rest waits for the next one


class Piece(TypedDict):
    """A file, or what was added to one."""

    name: str
    at: int | None  # byte of the file at which the data begins, of one that grows; None: the whole file
    data: bytes
    sha256: str  # of the data


class Parcel(TypedDict):
    """What has changed since the last one."""

    pieces: list[Piece]  # in the order in which they are to be written
    gone: list[str]  # checkpoints that are there no more


@dataclass(frozen=True)
class Seen:
    """What a parcel has taken so far: how far files that grow have been read, and how the others looked."""

    read: Mapping[str, int] = field(default_factory=dict)
    looked: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)


def is_empty(parcel: Parcel) -> bool:
    """Whether nothing has changed."""
    return not parcel["pieces"] and not parcel["gone"]


def news(folder: Path, seen: Seen, most: int = MOST) -> tuple[Parcel, Seen]:
    """What is new in the folder of a run since it was `seen`, and what is seen now.

    The pieces stand in the order in which they are safe to write. Journals are read after everything else, so that the
    lines of all steps before a checkpoint travel with it or earlier. Of files that take more than `most` bytes together
    the next parcel tells; until then nothing is gone, and there is no record.
    """
    read, looked = dict(seen.read), dict(seen.looked)
    names, room, left = set(_names(folder)), most, False
    whole: list[Piece] = []
    for name in sorted((one for one in names if not one.endswith(GROWS)), key=lambda one: (one == RECORD, one)):
        try:
            state = _state(folder / name)
            if looked.get(name) == state or (left and name == RECORD):
                continue
            if whole and state[0] > room:
                left = True
                continue
            data = (folder / name).read_bytes()
        except FileNotFoundError:
            continue  # a checkpoint that was dropped meanwhile
        looked[name], room = state, room - len(data)
        whole.append(_piece(name, None, data))
    grown = []
    for name in sorted(one for one in names if one.endswith(GROWS)):
        begin = read.get(name, 0)
        if data := _lines(folder / name, begin):
            grown.append(_piece(name, begin, data))
            read[name] = begin + len(data)
    gone = [] if left else sorted(looked.keys() - names)
    return {"pieces": [*grown, *whole], "gone": gone}, Seen(
        read, {name: state for name, state in looked.items() if name not in gone}
    )


def all_seen(folder: Path) -> Seen:
    """The folder as it stands, as if parcels had told all of it."""
    names = list(_names(folder))
    return Seen(
        {name: _size(folder / name) for name in names if name.endswith(GROWS)},
        {name: _state(folder / name) for name in names if not name.endswith(GROWS)},
    )


def begun(folder: Path, most: int = MOST) -> Iterator[Parcel]:
    """All that a run has left so far, for the machine that goes on with it; a torn line of a journal is cut off.

    One parcel after the other, so that no more than one has to be in memory. Nobody else may write there meanwhile.
    """
    for name in _names(folder):
        if name.endswith(GROWS) and (whole := len(_lines(folder / name, 0))) != _size(folder / name):
            _append(folder / name, whole, b"")
    seen = Seen()
    while True:
        parcel, seen = news(folder, seen, most)
        if is_empty(parcel):
            return
        yield parcel


def deliver(folder: Path, parcel: Parcel, check: Callable[[], None] = lambda: None) -> None:
    """Have the folder say what the parcel tells; `check` is called before each write and raises where none is allowed.

    Raises ValueError for a parcel with a name that is none, with other bytes than were sent, or that leaves a gap in a
    journal, before anything is written; DiskError where the disk refuses.
    """
    for name in (*(piece["name"] for piece in parcel["pieces"]), *parcel["gone"]):
        refuse_name(name)
    for piece in parcel["pieces"]:
        path, at = folder / piece["name"], piece["at"]
        if hashlib.sha256(piece["data"]).hexdigest() != piece["sha256"]:
            raise ValueError(f"{path} was damaged in transit: expected SHA-256 {piece['sha256']}. Run it again.")
        if at is not None and (there := _size(path)) != at:
            raise ValueError(
                f"{path}: expected {at:,} bytes, to which more is to be added, found {there:,}. Something else writes "
                "there: stop it, and the same command resumes."
            )
    for piece in parcel["pieces"]:
        check()
        if piece["at"] is None:
            atomic.write_bytes(folder / piece["name"], piece["data"])
        else:
            _append(folder / piece["name"], piece["at"], piece["data"])
    for name in parcel["gone"]:
        check()
        (folder / name).unlink(missing_ok=True)


def refuse_name(name: str) -> None:
    """Raise ValueError for what is no name of a file of a run."""
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        raise ValueError(
            f"{name[:80]!r} is not a file of a run; expected a name such as run.json or checkpoints/step-1.safetensors."
        )


def _names(folder: Path) -> Iterator[str]:
    """The files that travel."""
    for place in (folder, folder / CHECKPOINTS):
        if place.is_dir():
            for entry in os.scandir(place):
                name = Path(entry.path).relative_to(folder).as_posix()
                if NAME.fullmatch(name) and entry.is_file(follow_symlinks=False):
                    yield name


def _piece(name: str, at: int | None, data: bytes) -> Piece:
    return {"name": name, "at": at, "data": data, "sha256": hashlib.sha256(data).hexdigest()}


def _lines(path: Path, begin: int) -> bytes:
    """The whole lines of a file from this byte on."""
    with open(path, "rb") as file:
        file.seek(begin)
        data = file.read()
    return data[: data.rfind(b"\n") + 1]


def _append(path: Path, end: int, data: bytes) -> None:
    file = atomic.Appended(path)
    try:
        file.cut(end)
        file.append(data)
        file.push()
    finally:
        file.close()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _state(path: Path) -> tuple[int, int, int]:
    """By which a file is known to be another one: each is written under a new name and then takes its own."""
    about = path.stat()
    return about.st_size, about.st_mtime_ns, about.st_ino
