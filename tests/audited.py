"""Run a Python program and tell what it did that it may not: for `test_security.py`.

    python tests/audited.py FOLDER[:FOLDER...] program.py [argument ...]

It may write below the folders, connect to this machine, and start the programs named here, without a shell. Anything
else is one line on the standard error that begins with VIOLATION. What the interpreter does not see (a library's own
system calls) is not seen here.
"""

import ipaddress
import os
import runpy
import sys
from pathlib import Path
from typing import Any

PROGRAMS = {  # that may be started, and why
    "git": "the commit of a record",
    "uname": "platform.processor() of the standard library",
    "fc-list": "matplotlib, which torchmetrics imports, looks for fonts, once in a home",
}
FILES = {  # that may be written anywhere, and why
    "/dev/null": "holds nothing",
    "/proc/self/clear_refs": "a switch of the kernel: the highest use of memory is counted anew",
}
WRITING = {  # event -> which of its arguments are paths that it changes
    "os.mkdir": (0,), "os.rename": (0, 1), "os.remove": (0,), "os.rmdir": (0,), "os.link": (1,), "os.symlink": (1,),
    "os.truncate": (0,), "os.chmod": (0,), "os.chown": (0,), "os.utime": (0,), "os.setxattr": (0,),
    "shutil.move": (1,), "shutil.copyfile": (1,), "shutil.rmtree": (0,), "sqlite3.connect": (0,),
}  # fmt: skip
STARTING = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile")


class Watch:
    """Says of each event of the interpreter what is wrong about it, if anything."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = [folder.resolve() for folder in folders]

    def wrong(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        if event == "open":
            path, _, flags = arguments
            is_write = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            return self._outside(path) if is_write else None
        if event == "os.mkdir" and os.path.isdir(arguments[0]):
            return None  # it will be told that the folder is there
        if event in WRITING:
            found = (self._outside(arguments[i]) for i in WRITING[event])
            return next((one for one in found if one), None)
        if event in ("socket.getaddrinfo", "socket.gethostbyname"):
            return _off_loopback((arguments[0] or "",))
        if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"):
            return _off_loopback(arguments[1])
        if event in STARTING:
            return _program(arguments[0], arguments[1])
        if event in ("os.system", "pickle.find_class"):
            return f"{arguments}"
        return None

    def _outside(self, path: Any) -> str | None:
        if isinstance(path, int) or path in (None, ":memory:"):
            return None
        if "mode=memory" in os.fsdecode(path).partition("?")[2].split("&"):  # SQLite's, under a name
            return None
        place = Path(os.path.abspath(os.fsdecode(path).removeprefix("file:").partition("?")[0]))
        # the folder is followed, the name is not: a link is what is made or removed, not what it leads to
        there = place.parent.resolve() / place.name
        inside = any(there.is_relative_to(folder) for folder in self.folders)
        return None if inside or str(place) in FILES else str(place)


def _off_loopback(address: Any) -> str | None:
    if not isinstance(address, tuple):
        return None  # a socket of this machine, by its path
    host = address[0].decode() if isinstance(address[0], bytes) else str(address[0])
    try:
        is_here = host in ("localhost", "") or ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        is_here = False
    return None if is_here else host


def _program(path: Any, arguments: Any) -> str | None:
    name = os.path.basename(os.fsdecode(path))
    is_ours = name in PROGRAMS or os.path.realpath(os.fsdecode(path)) == os.path.realpath(sys.executable)
    return None if is_ours and not isinstance(arguments, str | bytes) else f"{name} {arguments}"


def main() -> None:
    """Run the program."""
    watch = Watch([Path(folder) for folder in sys.argv[1].split(os.pathsep)])
    busy = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal busy
        if busy:  # what the check itself does
            return
        busy = True
        try:
            if said := watch.wrong(event, arguments):
                print(f"VIOLATION {event}: {said}", file=sys.stderr, flush=True)
        finally:
            busy = False

    sys.addaudithook(hook)
    del sys.argv[:2]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
