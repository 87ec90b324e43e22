"""What stands in the place of a file and is none: reading a pipe or a device may never end."""

from pathlib import Path


def require_file(path: Path, what: str = "a file") -> None:
    """Raise ValueError, without the name of the file, where something else has its name; what is absent passes."""
    if not path.is_file() and path.exists():
        got = "a folder" if path.is_dir() else "a pipe" if path.is_fifo() else "a device or a socket"
        raise ValueError(f"expected {what}, got {got}")
