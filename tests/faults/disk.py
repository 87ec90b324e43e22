"""What is on the disk if the process dies, or the machine, at any system call; and disks that refuse.

`Disk` records the calls that change a folder. From the record it says what the folder would hold had the process been
killed before, halfway through or after each call, and what it might hold had the power failed there: contents that
were never pushed are then absent, half there or zeros; names never pushed have changed up to some point, in order.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

CALLS = ("open", "write", "fsync", "ftruncate", "close", "replace", "rename", "unlink", "mkdir", "rmdir")
Files = dict[str, bytes]  # path below the folder -> content
FOLDER = -1  # stands where a file has the number of its content


class Change(NamedTuple):
    """A name that comes (`new` alone), goes (`old` alone) or becomes another."""

    old: str | None
    new: str | None
    content: int = FOLDER

    @property
    def folder(self) -> str:
        return os.path.dirname(self.new or self.old or "")

    def applied(self, names: dict[str, int]) -> dict[str, int]:
        if self.old is None:
            return names | {str(self.new): self.content}
        moved = {name: inode for name, inode in names.items() if name == self.old or name.startswith(f"{self.old}/")}
        names = {name: inode for name, inode in names.items() if name not in moved}
        if self.new is None:
            return names
        return names | {self.new + name.removeprefix(self.old): inode for name, inode in moved.items()}


@dataclass(frozen=True)
class Moment:
    """The folder between two calls: as the system shows it, and what of it is on the disk for certain."""

    names: dict[str, int] = field(default_factory=dict)
    pushed_names: dict[str, int] = field(default_factory=dict)
    pending: tuple[Change, ...] = ()
    seen: dict[int, bytes] = field(default_factory=dict)
    pushed: dict[int, bytes] = field(default_factory=dict)

    def changed(self, change: Change) -> "Moment":
        return replace(self, names=change.applied(self.names), pending=(*self.pending, change))

    def pushed_folder(self, folder: str) -> "Moment":
        names = self.pushed_names
        for change in self.pending:
            if change.folder == folder:
                names = change.applied(names)
        return replace(self, pushed_names=names, pending=tuple(one for one in self.pending if one.folder != folder))

    def content(self, inode: int, seen: bytes) -> "Moment":
        return replace(self, seen=self.seen | {inode: seen})

    def killed(self) -> Files:
        """What a kill of the process leaves."""
        return {name: self.seen[inode] for name, inode in self.names.items() if inode != FOLDER}

    def power_lost(self) -> Iterator[Files]:
        """What a loss of power may leave."""
        names = self.pushed_names
        for change in (None, *self.pending):
            names = change.applied(names) if change else names
            there = {
                name: inode
                for name, inode in names.items()
                if inode != FOLDER and all(str(up) in names for up in list(Path(name).parents)[:-1])
            }
            ways = {name: _ways(self.pushed.get(inode, b""), self.seen[inode]) for name, inode in there.items()}
            for way in range(4):
                yield {name: contents[way] for name, contents in ways.items()}


def _ways(pushed: bytes, seen: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """What the disk may hold of a file: what was pushed, half of what is new, zeros in its place, all of it."""
    return pushed, seen[: (len(pushed) + len(seen)) // 2], pushed + bytes(max(0, len(seen) - len(pushed))), seen


class Disk:
    """The calls that change `folder`, and what each left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[str] = []
        self.moments: list[tuple[str, Moment]] = []
        self._open: dict[int, tuple[str, int]] = {}  # handle -> name, content
        paths = sorted(folder.rglob("*"))
        contents = {i: path.read_bytes() for i, path in enumerate(paths) if path.is_file()}
        names = {self._name(path): i if i in contents else FOLDER for i, path in enumerate(paths)}
        self._next = len(paths)
        self._keep("at the start", Moment(names, names, (), contents, contents))

    @property
    def now(self) -> Moment:
        return self.moments[-1][1]

    def _keep(self, when: str, moment: Moment) -> None:
        self.moments.append((when, moment))

    def _name(self, path: Any) -> str:
        return os.path.relpath(os.fspath(path), self.folder)

    @contextmanager
    def watching(self, refused: int = -1, error: int = 0) -> Iterator["Disk"]:
        """Record what is done meanwhile; at the end the record and the folder must agree. A call of the record (from
        0) may be refused, with an error.
        """
        with ExitStack() as stack:
            for call in CALLS:
                watched = partial(self._watched, call, getattr(os, call), refused, error)
                stack.enter_context(mock.patch.object(os, call, watched))
            yield self
        found = {self._name(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        assert self.now.killed() == found, "something was written in another way than by the calls that are watched"

    def _watched(self, call: str, really: Callable[..., Any], refused: int, error: int, *of: Any, **named: Any) -> Any:
        target, before, n = of[0], self.now, len(self.calls) + 1
        if not (target in self._open if isinstance(target, int) else not self._name(target).startswith("..")):
            return really(*of, **named)
        self.calls.append(call)
        refusal = OSError(error, os.strerror(error), str(target)) if n == refused + 1 else None
        if refusal and call != "close":  # a file is closed even where closing fails
            raise refusal
        if call == "write":
            inode, data = self._open[target][1], bytes(of[1])
            half = before.content(inode, before.seen[inode] + data[: len(data) // 2])
            self._keep(f"halfway through call {n}, write", half)
        elif call == "fsync" and stat.S_ISDIR(os.fstat(target).st_mode):
            before = before.pushed_folder(self._open[target][0].removeprefix("."))
        result = really(*of, **named)
        self._keep(f"after call {n}, {call}", self._after(call, before, result, of))
        if refusal:
            raise refusal
        return result

    def _after(self, call: str, before: Moment, result: Any, arguments: tuple[Any, ...]) -> Moment:
        target = arguments[0]
        name, inode = self._open[target] if isinstance(target, int) else (self._name(target), FOLDER)
        match call:
            case "open":
                known = name in before.names or name == "."
                inode = before.names.get(name, FOLDER) if known else self._next
                self._open[result] = name, inode
                if not known:
                    self._next += 1
                    return before.content(inode, b"").changed(Change(None, name, inode))
            case "write":
                return before.content(inode, before.seen[inode] + bytes(arguments[1])[:result])
            case "ftruncate":
                return before.content(inode, before.seen[inode][: arguments[1]])
            case "fsync" if inode != FOLDER:
                return replace(before, pushed=before.pushed | {inode: before.seen[inode]})
            case "close":
                del self._open[target]
            case "replace" | "rename":
                return before.changed(Change(name, self._name(arguments[1])))
            case "unlink" | "rmdir":
                return before.changed(Change(name, None))
            case "mkdir":
                return before.changed(Change(None, name))
        return before

    def left(self) -> Iterator[tuple[str, Files]]:
        """What a kill or a loss of power may leave at each point; each different content of the folder once."""
        known: set[tuple[tuple[str, bytes], ...]] = set()
        for when, moment in self.moments:
            for way, files in enumerate((moment.killed(), *moment.power_lost())):
                if (key := tuple(sorted(files.items()))) not in known:
                    known.add(key)
                    yield f"power lost {when}, way {way}" if way else f"killed {when}", files


def prepack(files: Files, folder: Path) -> Path:
    """Make `folder` hold `files` and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@contextmanager
def refusing(folder: Path, k: int, error: int) -> Iterator[list[str]]:
    """The k-th call that changes `folder` fails (k from 0); gives the calls."""
    with Disk(folder).watching(k, error) as disk:
        yield disk.calls


def fill(disk: Path, spare: int = 0) -> None:
    """Leave no more than `spare` bytes free, by a file called filling."""
    (disk / "filling").write_bytes(bytes(shutil.disk_usage(disk).free - spare))


@contextmanager
def tmpfs(folder: Path, size: int, *, read_only: bool = False) -> Iterator[Path]:
    """A small disk of its own at `folder`; skips the test where none can be mounted."""
    if os.geteuid():
        pytest.skip("needs a disk of its own, which only root may mount")
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={size}{',ro' if read_only else ''}"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"needs a disk of its own: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
