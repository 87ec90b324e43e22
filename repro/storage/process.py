"""Which process this is, and whether another one of this machine has ended. Machines are told apart by their names."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """What identifies this process: by it others on this machine can tell whether it is alive."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "began": _stated(os.getpid())[1]}


def is_dead(process: Mapping[str, Any]) -> bool:
    """Whether it was a process of this machine and has ended; False for other machines."""
    return process.get("host") == socket.gethostname() and has_ended(process["pid"], process.get("began"))


def has_ended(pid: int, began: str | None = None) -> bool:
    """Whether the process `pid` has ended; a new process with the same number differs in when it `began`."""
    try:
        os.kill(pid, 0)  # signal 0 only asks
    except ProcessLookupError:
        return True
    except PermissionError:  # it is another user's
        pass
    state, found = _stated(pid)  # it may be a zombie: ended, but its parent has not noticed
    return state in ("Z", "X") or (began is not None and found is not None and began != found)


def _stated(pid: int) -> tuple[str | None, str | None]:
    """The state of a process, and its start in clock ticks since boot; None where they are unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode("ascii", "replace")
    except OSError:
        return None, None
    state, *rest = text.rpartition(")")[2].split()
    return state, rest[18]
