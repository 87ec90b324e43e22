"""Durable writes: after a crash a file is absent, the old one or the new one, never half of one.

Everything the suite keeps goes through here. The new bytes are written beside their final name, pushed to the disk, and
only then renamed; the folder is pushed too, so the name itself survives a crash. A file that only grows (`Appended`)
grows by whole pieces. If the disk refuses a write, `DiskError` is raised.
"""

import errno
import fnmatch
import glob
import hashlib
import io
import json
import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PARTIAL = "partial"  # what a crash may leave behind; never read, swept by `sweep`
PROBE = 4_096  # bytes that a folder must take before work begins
ADVICE = (
    "Free space or inodes there (df, df -i), raise your limit (quota, ulimit), get the right to write there, or name "
    "another folder. Then the same command goes on."
)
OTHERWISE = (FileNotFoundError, FileExistsError, BlockingIOError, ConnectionError)  # not the disk's refusal


class DiskError(OSError):
    """The disk refused a write. Files that were whole before still are."""

    def __str__(self) -> str:
        return str(self.strerror)


@contextmanager
def named(path: Path, needed: int | None = None) -> Iterator[None]:
    """Turn an error of the disk into a `DiskError` that names the file, the free space and what to do."""
    try:
        yield
    except (DiskError, *OTHERWISE):
        raise
    except OSError as error:
        room = [f"{needed:,} bytes needed"] if needed is not None else []
        room += [f"{found:,} free"] if (found := free(path)) is not None else []
        about = f" ({', '.join(room)})" if room else ""
        why = os.strerror(error.errno or errno.EIO)
        raise DiskError(error.errno, f"{path} cannot be written to: {why}{about}. {ADVICE}") from error


def free(path: Path) -> int | None:
    """Free bytes on the disk of `path`, which need not exist yet; None if unknown."""
    for folder in (path, *path.absolute().parents):
        with suppress(OSError):
            return shutil.disk_usage(folder).free
    return None


class Hashed(io.RawIOBase):
    """A new file open for writing, with the running SHA-256 of all that was written into it."""

    def __init__(self, path: Path) -> None:
        self.sha256 = hashlib.sha256()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def writable(self) -> bool:
        """Always true: the file is open for writing only."""
        return True

    def write(self, data: Any) -> int:
        """Write all of `data`, however many calls the system takes for it."""
        rest = memoryview(data).cast("B")
        while rest:
            n = os.write(self._file, rest)
            self.sha256.update(rest[:n])
            rest = rest[n:]
        return memoryview(data).nbytes

    def push(self) -> None:
        """Wait until everything is on the disk."""
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if not self.closed:
            super().close()
            os.close(self._file)


def write_bytes(path: Path, write: bytes | Callable[[Hashed], object], needed: int | None = None) -> None:
    """Write `path` whole: the bytes, or what a function writes into the open file (`needed` bytes, if known)."""
    with named(path, needed if callable(write) else len(write)):
        make_folder(path.parent)
        partial = beside(path, PARTIAL)
        try:
            with Hashed(partial) as file:
                if callable(write):
                    write(file)
                else:
                    file.write(write)
                file.push()
            os.replace(partial, path)
        except BaseException:
            with suppress(OSError):  # the error that is under way says more
                os.unlink(partial)
            raise
        _push_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` as UTF-8, with its line ends unchanged."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write `value` as sorted, indented JSON that ends in a newline; NaN and infinities are refused."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


class Appended:
    """A file that only grows, by pieces that are whole or absent.

    When `append` returns, the operating system has the piece, so it survives the process; after `push` it survives
    the machine. Bytes after `end` are a piece that a crash tore: `cut` them off before the first `append`.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.end = path, 0
        with named(path):
            make_folder(path.parent)
            self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            _push_folder(path.parent)

    def cut(self, end: int) -> None:
        """Drop all bytes after `end`."""
        with named(self.path):
            os.ftruncate(self.file, end)
        self.end = end

    def append(self, piece: bytes) -> None:
        """Write one piece."""
        rest = memoryview(piece)
        with named(self.path, len(piece)):
            try:
                while rest:
                    rest = rest[os.write(self.file, rest) :]
            except OSError:
                os.ftruncate(self.file, self.end)  # whole or absent, on a full disk too
                raise
        self.end += len(piece)

    def push(self) -> None:
        """Wait until everything is on the disk."""
        with named(self.path):
            os.fsync(self.file)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self.file >= 0:
            file, self.file = self.file, -1
            with named(self.path):
                os.close(file)


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, so that the new names survive a crash."""
    with named(folder):
        if not folder.is_dir():
            make_folder(folder.parent)
            with suppress(FileExistsError):  # another process was faster
                os.mkdir(folder)
            if not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
            _push_folder(folder.parent)


def check_folder(folder: Path) -> None:
    """Write a probe file into `folder`, so that a bad disk is refused now and not after hours of training."""
    with named(folder):
        make_folder(folder)
        probe = beside(folder / "probe", PARTIAL)
        try:
            with Hashed(probe) as file:
                file.write(bytes(PROBE))
                file.push()
        finally:
            with suppress(OSError):  # never made, or swept later
                os.unlink(probe)


def beside(path: Path, kind: str) -> Path:
    """A hidden name in the folder of `path` that no other machine, process, thread or call uses."""
    writer = f"{socket.gethostname()}.{os.getpid()}"
    return path.with_name(f".{path.name}.{writer}.{secrets.token_hex(4)}.{kind}")


def left_beside(path: Path, kind: str) -> list[Path]:
    """The files and folders named by `beside` whose processes have ended."""
    found = path.parent.glob(f".{glob.escape(path.name)}.*.{kind}")
    return [left for left in found if is_abandoned(left)]


def is_abandoned(left: Path) -> bool:
    """Whether a name that `beside` gave belongs to a process of this machine that has ended."""
    writer, *rest = left.name.rsplit(".", 3)
    if len(rest) != 3 or not rest[0].isdecimal():
        return False
    return writer.endswith(f".{socket.gethostname()}") and has_ended(int(rest[0]))


def sweep(folder: Path, *, alone: bool) -> None:
    """Remove what interrupted writes left in `folder` and below: all of it if nobody else writes there (`alone`).

    Otherwise files of living processes stay, and those of other machines, whose processes cannot be asked.
    """
    for place, _, names in os.walk(folder):  # rglob fails if a folder disappears meanwhile
        for name in fnmatch.filter(names, f".*.{PARTIAL}"):
            partial = Path(place, name)
            if alone or is_abandoned(partial):
                with named(partial):
                    partial.unlink(missing_ok=True)


def _push_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Whose files these are: machines are told apart by their names ---------------------------------------------


def this_process() -> dict[str, Any]:
    """What identifies this process: by it others on this machine can tell whether it is alive."""
    return {"host": socket.gethostname(), "pid": os.getpid()}


def is_dead(process: Mapping[str, Any]) -> bool:
    """Whether it was a process of this machine and has ended; False for other machines."""
    return process.get("host") == socket.gethostname() and has_ended(process["pid"])


def has_ended(pid: int) -> bool:
    """Whether no process has this number; one that was given it since counts as alive, which costs a wait only."""
    try:
        os.kill(pid, 0)  # signal 0 only asks
    except ProcessLookupError:
        return True
    except PermissionError:  # it is another user's
        pass
    with suppress(OSError):  # a system that does not tell, or not of others
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state in (b"Z", b"X")  # ended, but nobody has asked how: in a container perhaps nobody ever does
    return False
