"""Cached folders: made once, verified before they are used, made again where they are damaged."""

import errno
import functools
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from repro.storage import atomic
from repro.storage.lock import WORK, locked

MANIFEST = "manifest.json"
MAKING = "making"  # ends the name of a folder that is not whole yet
T = TypeVar("T")


def made_once(folder: Path, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Have `folder` as `make` fills it, and return the facts that `make` returned.

    It is made where it is absent or damaged and used as it is elsewhere. The work is done under a name of its
    own, so what an interrupted process leaves (`.*.making`) is never read, and the next process that makes the
    folder sweeps it; and processes that make the same folder at once all succeed without a lock, the later ones
    using what the first one made.
    """
    with suppress(FileNotFoundError, ValueError):
        return verified(folder)
    with _making(folder) as work:
        facts = make(work)
        files = {path.name: _sha256(path) for path in sorted(work.iterdir())}
        contents = {"facts": facts, "files": files}
        atomic.write_json(work / MANIFEST, contents | {"sha256": _sha256_of_json(contents)})
        with atomic.named(folder):
            _take_name(work, folder)
    return verified(folder)


def made_new(folder: Path, make: Callable[[Path], T]) -> T:
    """Have `folder`, which must be absent or empty, as `make` fills it, or not at all; returns what `make` returned.

    It is not looked after later: what is in it may be changed.
    """
    folder = folder.resolve()  # a link gives its place
    if folder == Path.cwd():
        raise ValueError(f"Expected a folder of its own, got the one that you are in, {folder}. Name a new one.")
    _refuse_full(folder)
    with _making(folder) as work:
        made = make(work)
        _refuse_full(folder)  # another process may have been faster
        with atomic.named(folder):
            work.rename(folder)
    return made


@contextmanager
def _making(folder: Path) -> Iterator[Path]:
    """A folder to work in, beside `folder`; at the end it is gone, unless it took the name."""
    atomic.make_folder(folder.parent)
    for left in atomic.left_beside(folder, MAKING):
        shutil.rmtree(left, ignore_errors=True)
    work = atomic.beside(folder, MAKING)
    with atomic.named(work):
        work.mkdir()
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _refuse_full(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"Expected a new or empty folder, got {folder}, which is there. Name another, or delete it.")


def verified(folder: Path) -> dict[str, Any]:
    """The facts of a folder that `made_once` made, after each file is found to be what was written."""
    contents = _manifest(folder)
    for name, expected in contents["files"].items():
        found = _sha256(folder / name)
        if found != expected:
            raise ValueError(
                f"{folder / name} is damaged: expected SHA-256 {expected}, got {found}. "
                "Delete the folder; it is made again."
            )
    facts: dict[str, Any] = contents["facts"]
    return facts


def stated(folder: Path) -> tuple[dict[str, Any], str]:
    """The facts of a folder that `made_once` made, and the hash of its manifest; its other files stay unread."""
    contents = _manifest(folder)
    return contents["facts"], _sha256_of_json(contents)


def is_made(folder: Path) -> bool:
    """Whether a manifest of `made_once` stands there: a file of that name may be anybody's."""
    try:
        contents = json.loads((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(contents, dict) and contents.keys() >= {"files", "facts", "sha256"}


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        contents: dict[str, Any] = json.loads(path.read_bytes())
        if contents.pop("sha256") != _sha256_of_json(contents):
            raise ValueError("altered")
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is not what was written. Delete the folder; it is made again.") from None
    return contents


@contextmanager
def alone(lock: Path, tell: Callable[[str], object]) -> Iterator[None]:
    """Do work that another process may be doing, and else would be done twice: wait for that one, if not for ever."""
    atomic.make_folder(lock.parent)
    with atomic.named(lock):
        lock.touch()
    with locked(lock, WORK, lambda: tell(f"Another process holds {lock}; waiting for it.")) as mine:
        if not mine:
            tell(f"{lock} was held for {WORK / 60:.0f} minutes: going on without it.")
        yield


def _take_name(work: Path, folder: Path) -> None:
    """Rename `work` to `folder`, unless another process was first; a damaged folder makes way."""
    while True:
        try:
            work.rename(folder)
            return
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        with suppress(FileNotFoundError, ValueError):
            verified(folder)
            return
        aside = work.with_suffix(".damaged")
        with suppress(FileNotFoundError):  # another process was faster
            folder.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def _sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, computed once per process while it stays the same."""
    status = path.stat()
    return _sha256_of_file(path, status.st_size, status.st_mtime_ns)


@functools.cache
def _sha256_of_file(path: Path, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_json(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
