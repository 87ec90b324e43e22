"""Unpacks files from archives: only members that we know, under names that we give.

The hash of an archive, or those of its texts, are checked before anything of it is used. It is read once, as a stream,
and its content never decides where a file is written: a member whose name is on the list is copied, within its limit,
into a file of ours; every other member is skipped.
"""

import gzip
import html
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from repro.corpora.download.sources import Member
from repro.storage import atomic

BLOCK = 1 << 20
AGAIN = "Delete the archive and get it again."


def unpack(archive: Path, wanted: Mapping[str, Member], folder: Path) -> dict[str, dict[str, Any]]:
    """Write each wanted member of a tar or tar.gz into `folder`, under the name that `wanted` maps to it.

    Returns the `bytes`, `sha256` and `n_lines` of each.
    """
    missing = {member.name: (ours, member) for ours, member in wanted.items()}
    done: dict[str, dict[str, Any]] = {}
    try:
        with tarfile.open(archive, "r|*") as tar:
            for info in tar:
                if info.name not in missing:
                    continue
                ours, member = missing.pop(info.name)
                file = tar.extractfile(info) if info.isreg() else None
                if file is None:
                    raise ValueError(f"{archive}: {info.name!r} is no file, expected a regular file. {AGAIN}")
                done[ours] = _written(_contents(archive, file, member), folder / ours)
    except (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError) as error:
        raise ValueError(f"{archive} is not a whole archive ({error}). {AGAIN}") from error
    if missing:
        raise ValueError(
            f"{archive} lacks {', '.join(map(repr, missing))}; expected {', '.join(m.name for m in wanted.values())}. "
            f"{AGAIN}"
        )
    return done


def _contents(archive: Path, file: IO[bytes], member: Member) -> Iterator[bytes]:
    """The text of a wanted member, block by block. Raises ValueError if it is larger than its limit."""
    if member.name.endswith(".sgm"):
        yield "".join(f"{line}\n" for line in read_sgm(file.read(), f"{archive}: {member.name!r}")).encode()
        return
    reader: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=file) if member.name.endswith(".gz") else file
    n_bytes = 0
    while block := _read(reader):
        n_bytes += len(block)
        if n_bytes > member.max_bytes:
            raise ValueError(
                f"{archive}: {member.name!r} has more than {member.max_bytes:,} bytes, the limit of this file. If it "
                "has grown, raise max_bytes in repro/corpora/download/sources.py; else delete the archive and get it "
                "again."
            )
        yield block


def _read(reader: IO[bytes] | gzip.GzipFile) -> bytes:
    """The next block. A bad gzip is raised as zlib.error: as an OSError it would seem to be the output disk's."""
    try:
        return reader.read(BLOCK)
    except gzip.BadGzipFile as error:
        raise zlib.error(str(error)) from error


def _written(blocks: Iterator[bytes], path: Path) -> dict[str, Any]:
    """Write the text of one member; return its bytes, lines and SHA-256."""
    facts: dict[str, Any] = {"bytes": 0, "n_lines": 0}

    def write(file: atomic.Hashed) -> None:
        block = b"\n"
        for block in blocks:
            facts["bytes"] += file.write(block)
            facts["n_lines"] += block.count(b"\n")
        facts["n_lines"] += not block.endswith(b"\n")
        facts["sha256"] = file.sha256.hexdigest()

    atomic.write_bytes(path, write)
    return facts


# sgm -------------------------------------------------------------------------------------------------------

SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)


def read_sgm(content: bytes, where: str) -> list[str]:
    """The sentences of an sgm file in order, one a line.

    The files are SGML only by name: `&` occurs bare and as `&amp;`, tags and attributes in any case and order.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{where}, line {line:,} (byte {error.start:,}) is not UTF-8. {AGAIN}") from None
    lines = [re.sub("[ \t\r\n\f\v]+", " ", segment).strip(" ") for segment in SEGMENT.findall(text)]
    if not lines:
        raise ValueError(f"{where} has no segment; expected sentences, each in <seg id>. {AGAIN}")
    return [html.unescape(line) for line in lines]
