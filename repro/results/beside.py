"""Files beside a record: they go where it goes, and none stays beside the record of another run."""

from collections.abc import Callable
from pathlib import Path

from repro.storage import atomic
from repro.storage.packed_json import read_packed


def is_packed_of(file: Path, form: int, run: str) -> bool:
    """Whether a packed file of this format is there, whole, and of this run; what is damaged is of none."""
    try:
        return file.exists() and bool(read_packed(file, form)["run"] == run)
    except (ValueError, KeyError):
        return False


def copy_beside(
    file_of: Callable[[Path], Path], is_of: Callable[[Path, str], bool], source: Path, target: Path, run: str
) -> None:
    """Have beside the record at `target` what stands beside that at `source`; what is of another run goes.

    `file_of` gives the file beside a record, and `is_of` whether that is there, whole, and of a run: what is damaged is
    not copied, and what `target` has of its own stays where `source` has nothing.
    """
    if is_of(source, run):
        atomic.write_bytes(file_of(target), file_of(source).read_bytes())
    elif not is_of(target, run):
        file_of(target).unlink(missing_ok=True)
