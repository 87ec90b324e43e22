"""Cached folders: made once, verified before they are used, made again where they are damaged."""

import errno
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from repro.storage import atomic, signed_json

MANIFEST = "manifest.json"
MAKING = "making"  # suffix of a folder that is not complete yet
AGAIN = "Delete the folder; it is made again."
T = TypeVar("T")


def made_once(folder: Path, make: Callable[[Path], dict[str, Any] | None]) -> dict[str, Any]:
    """Fill `folder` by `make` if it is absent or damaged; return the facts that `make` returned, if any.

    The work is done under a temporary name (`.*.making`), so what an interrupted process leaves is never read; the
    next process that makes the folder removes it. Processes that make the same folder at once need no lock: all
    succeed, and the later ones use what the first one made.
    """
    with suppress(FileNotFoundError, ValueError):
        return verified(folder)
    with _making(folder) as work:
        facts = make(work) or {}
        files = {path.name: _sha256(path) for path in sorted(work.iterdir())}
        signed_json.write(work / MANIFEST, {"facts": facts, "files": files})
        with atomic.named(folder):
            _take_name(work, folder)
    return verified(folder)


def made_new(folder: Path, make: Callable[[Path], T]) -> T:
    """Fill `folder`, which must be absent or empty, by `make`, whole or not at all; return what `make` returned.

    The folder is not verified later: its files may be changed.
    """
    folder = folder.resolve()  # a link means the folder that it leads to
    # the one that the user stands in would be taken away from under the shell
    if folder == Path.cwd() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise ValueError(f"Expected a new or empty folder, got {folder}, which is there. Name another, or delete it.")
    with _making(folder) as work:
        made = make(work)
        with atomic.named(folder):
            work.rename(folder)
    return made


@contextmanager
def _making(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder`; it is removed at the end unless it was renamed."""
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


def verified(folder: Path) -> dict[str, Any]:
    """The facts of a folder that `made_once` made, after comparing each file with its hash."""
    contents = _manifest(folder)
    for name, expected in contents["files"].items():
        found = _sha256(folder / name)
        if found != expected:
            raise ValueError(f"{folder / name} is damaged: expected SHA-256 {expected}, got {found}. {AGAIN}")
    return dict(contents["facts"])


def stated(folder: Path) -> dict[str, Any]:
    """The facts of a folder that `made_once` made; its files are not read."""
    return dict(_manifest(folder)["facts"])


def manifest_hash(folder: Path) -> str:
    """The hash of the manifest of a folder that `made_once` made; its other files are not read."""
    return signed_json.checksum(_manifest(folder))


def _manifest(folder: Path) -> dict[str, Any]:
    return signed_json.read(folder / MANIFEST, "a manifest", None, AGAIN)


def _take_name(work: Path, folder: Path) -> None:
    """Rename `work` to `folder`, unless another process was first; a damaged `folder` is removed."""
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
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
