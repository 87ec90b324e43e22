"""Files out of archives, by the names that we know and under the names that we give.

An archive is known by its hash, or by those of its texts, before anything of it is used; it is read as a stream, once,
and nothing in it decides where anything is written: a member whose name is on the list is copied, within its limit,
into a file of ours; every other member is skipped.
"""

import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from repro.corpora.download.sources import Form, Member
from repro.storage import atomic

BLOCK = 1 << 20
AGAIN = "Delete the archive and get it again."


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """A file that was written."""

    n_bytes: int
    sha256: str
    n_lines: int


def unpack(archive: Path, wanted: Mapping[str, Member], folder: Path) -> dict[str, Unpacked]:
    """Write each wanted member of a tar or tar.gz into `folder`, under the name that `wanted` maps to it."""
    missing = {member.name: (ours, member) for ours, member in wanted.items()}
    done: dict[str, Unpacked] = {}
    try:
        with tarfile.open(archive, "r|*") as tar:
            for info in tar:
                name = info.name.removeprefix("./")  # as `tar -C folder .` writes it
                if name not in missing:
                    continue
                ours, member = missing.pop(name)
                file = tar.extractfile(info) if info.isreg() else None
                if file is None:
                    raise ValueError(f"{archive}: {name!r} is no file, expected a regular file. {AGAIN}")
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
    """The text of a wanted member, block by block; one byte over its limit is refused."""
    if member.form is Form.SGM:
        yield "".join(f"{line}\n" for line in read_sgm(file.read(), f"{archive}: {member.name!r}")).encode()
        return
    reader: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=file) if member.form is Form.GZIP else file
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
    """The next block. What is no gzip is the archive's fault and not the disk's, which is written to meanwhile."""
    try:
        return reader.read(BLOCK)
    except gzip.BadGzipFile as error:
        raise zlib.error(str(error)) from error


def _written(blocks: Iterator[bytes], path: Path) -> Unpacked:
    """Write the text of one member and say what was written."""
    digest, n_bytes, n_lines, last = hashlib.sha256(), 0, 0, b"\n"

    def write(file: atomic.Hashed) -> None:
        nonlocal n_bytes, n_lines, last
        for block in blocks:
            file.write(block)
            digest.update(block)
            n_bytes += len(block)
            n_lines += block.count(b"\n")
            last = block[-1:]

    atomic.write_bytes(path, write)
    return Unpacked(n_bytes=n_bytes, sha256=digest.hexdigest(), n_lines=n_lines + (last != b"\n"))


# sgm -------------------------------------------------------------------------------------------------------

SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)
REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def read_sgm(content: bytes, where: str) -> list[str]:
    """The sentences of an sgm file in order, one a line.

    The files are SGML in name: `&` occurs bare and as `&amp;`, tags and attributes in any case and order.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{where}, line {line:,} (byte {error.start:,}) is not UTF-8. {AGAIN}") from None
    lines = [re.sub("[ \t\r\n\f\v]+", " ", segment).strip(" ") for segment in SEGMENT.findall(text)]
    if not lines:
        raise ValueError(f"{where} has no segment; expected sentences, each in <seg id>. {AGAIN}")
    return [REFERENCE.sub(_character, line) for line in lines]


def _character(reference: re.Match[str]) -> str:
    """What a reference stands for; one that stands for no character stays as it is."""
    name, decimal, hexadecimal = reference.groups()
    if name:
        return CHARACTERS[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    is_character = 0x20 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF
    return chr(code) if is_character else reference[0]
