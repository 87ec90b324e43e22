"""Which process this is, and whether another one is dead: said only where it can be told from here."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """This process, as others on this machine can tell whether it lives."""
    return {
        "host": socket.gethostname(),
        "boot": _read("/proc/sys/kernel/random/boot_id"),
        "processes": _namespace(),
        "pid": os.getpid(),
        "began": _stated(os.getpid())[1],
    }


def numbering(process: Mapping[str, Any]) -> str | None:
    """In which numbering of processes one has its number, as a part of a file's name; None where that is not known.

    The name of a machine is not enough: containers share it with their host and two machines may be called
    "localhost". So it has when the machine was started, and whose numbers they are there.
    """
    host, boot, processes = process.get("host"), process.get("boot"), process.get("processes")
    return f"{host}.{boot[:8]}+{processes:x}" if host and boot and processes else None


def is_dead(process: Mapping[str, Any]) -> bool:
    """Whether it was a process of this machine that is there no more; False where that cannot be told."""
    theirs = numbering(process)
    return theirs is not None and theirs == numbering(this_process()) and has_ended(process["pid"], process["began"])


def has_ended(pid: int, began: str | None = None) -> bool:
    """Whether a process with a number of ours has ended; another that has its number now began at another time."""
    try:
        os.kill(pid, 0)  # which only asks
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:  # it is another user's
        pass
    state, found = _stated(pid)  # it may also have ended with nobody to take note of it
    return state in ("Z", "X") or (began is not None and found is not None and began != found)


def _read(path: str) -> str | None:
    try:
        return Path(path).read_bytes().decode("ascii", "replace").strip()
    except OSError:
        return None


def _namespace() -> int | None:
    """Which numbering of processes this one is in: a container has its own."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return None


def _stated(pid: int) -> tuple[str | None, str | None]:
    """The state of a process, and when it began, in ticks since the machine did; None where that cannot be told."""
    text = _read(f"/proc/{pid}/stat")
    if not text:
        return None, None
    state, *rest = text.rpartition(")")[2].split()
    return state, rest[18]
