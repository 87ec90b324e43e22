"""Refuse what is not a regular file: reading a pipe or a device may never end."""

from pathlib import Path


def require_file(path: Path, what: str = "a file") -> None:
    """Raise ValueError, without the file's name, if the path is not a regular file; an absent path passes."""
    if not path.is_file() and path.exists():
        got = "a folder" if path.is_dir() else "a pipe" if path.is_fifo() else "a device or a socket"
        raise ValueError(f"expected {what}, got {got}")
