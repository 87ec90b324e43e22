"""Which files a command changed, file by file: whoever commits shared results reads what became of them."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from repro.results.places import OWN

Contents = Mapping[Path, bytes]  # of each file the digest of what is in it


def contents(folder: Path) -> Contents:
    """Every file under a folder of results, but for one's own records and for what is being written."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith("."))
    return {
        file: hashlib.sha256(file.read_bytes()).digest()
        for file in files
        if file.relative_to(folder).parts[0] != OWN.name
    }


def changed_files(before: Contents, after: Contents) -> Iterator[str]:
    """new: results/x.md; changed: results/y.md; gone: results/z.md."""
    for file in sorted({*before, *after}):
        if before.get(file) != after.get(file):
            yield f"{'new' if file not in before else 'changed' if file in after else 'gone'}: {file}"
