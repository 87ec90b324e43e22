"""Durable writes: a file is absent, the old one or the new one, never half of one.

Everything the suite keeps goes through here. The new bytes are written beside their final name, pushed
to the disk, and only then take the name; the folder is pushed too, so the name itself survives a crash.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

PARTIAL = ".partial"  # what a crash may leave behind; never read, swept by `sweep`


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path in the folder of `path`; on success it takes the name of `path`.

    For writers that want a path of their own (memory maps, safetensors). On an exception the temporary
    file is removed and whatever `path` held before is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        yield partial
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    _sync_folder(path.parent)


def write_bytes(path: Path, write: bytes | Callable[[BinaryIO], object]) -> None:
    """Write `path` whole: its bytes, or a function that writes them into an open file."""
    with replacing(path) as partial, open(partial, "wb") as file:
        if callable(write):
            write(file)
        else:
            file.write(write)
        file.flush()


def write_text(path: Path, text: str) -> None:
    """Write `path` as UTF-8, line ends as they stand in `text`."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write `value` as sorted, indented JSON that ends in a newline; NaN and infinities are refused."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def sweep(folder: Path) -> None:
    """Remove what interrupted writes left in `folder` (which may not exist)."""
    for partial in folder.glob(f".*{PARTIAL}"):
        partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
