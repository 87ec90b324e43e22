"""What was found whole on this machine since it was started, so that each of many processes need not read it all again.

A file counts as found while its size, its inode and its times are what they were (that of its last change in any way
among them, which nobody can set back), the same SHA-256 is expected of it, and the machine has not been started again.
Another machine reads for itself. A note can only spare reading: where anything differs, the file is read and decides.

Not seen: bytes that rot below the file system after they were read, which changes no time, until the machine is started
again; and a change within the very tick of the file system's clock in which a file was found whole.
"""

import json
import socket
from contextlib import suppress
from pathlib import Path

from repro.storage import atomic

BOOT = Path("/proc/sys/kernel/random/boot_id")  # another one each time the machine is started


class Register:
    """The notes of this machine about files below a folder: a line each, in a file that is its own lock.

    Read it, look files up, note others and save, all of it under the lock. Where a machine does not say when it was
    started, nothing is known and nothing noted.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / f".verified.{socket.gethostname()}.lock"
        self._boot = BOOT.read_bytes().decode().strip() if BOOT.exists() else None
        self._lines: set[str] = set()
        self._new: list[str] = []

    def read(self) -> None:
        """Learn what processes of this machine have noted."""
        with suppress(OSError):
            self._lines = {*self.path.read_bytes().decode(errors="replace").split("\n")}

    def line(self, path: Path, sha256: str) -> str:
        """What is noted of a file in the state that it has now: to be asked for before the file is read."""
        status = path.stat()
        state = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        return json.dumps([self._boot, path.relative_to(self.path.parent).as_posix(), *state, sha256])

    def has(self, line: str) -> bool:
        """Whether the file was found whole, and nothing has changed since."""
        return self._boot is not None and line in self._lines

    def note(self, line: str) -> None:
        """The file was found whole in that state."""
        self._new.append(line)

    def save(self) -> None:
        """Write down what is new. A disk that refuses costs time later, and nothing else."""
        new, self._new = self._new, []
        if not new or self._boot is None:
            return
        with suppress(OSError):
            notes = atomic.Appended(self.path)
            try:
                before = self.path.read_bytes()
                is_of_now = before.startswith(f'["{self._boot}"'.encode())
                notes.cut(before.rfind(b"\n") + 1 if is_of_now else 0)  # a torn line, or what was before the start
                notes.append("".join(f"{line}\n" for line in new).encode())
            finally:
                notes.close()
        self._lines.update(new)
