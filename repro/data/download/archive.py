"""Files out of archives, by the names that we know and under the names that we give.

An archive is read as a stream, once, from its first byte to its last, and nothing in it decides where anything is
written: a member whose name is on the list is copied, block by block and within its limit, into a file of ours;
every other member is skipped. What looks wrong is refused, never repaired. Nothing is taken on trust from a
header: not a size (a header of 512 bytes may claim ten gigabytes), not a number of members, not a type.
"""

import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from repro.data.download.sources import Form, Member
from repro.storage import atomic

BLOCK = 1 << 20
RECORD = 512  # of a tar
MAX_MEMBERS = 10_000  # the largest archive of `sources` has a few hundred
MAX_HEADER = 1 << 16  # all headers of one member, with long names and attributes; they are held in memory
MAX_EXPANSION = 100  # times the size of the archive, all members together; text packs to a fifth, a bomb to 1/1000
SMALLEST_BOMB = 64 << 20  # an archive may hold this much however small it is
AGAIN = "Delete the archive and get it again."


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """A file that was written."""

    n_bytes: int
    sha256: str
    n_lines: int
    segments: tuple[tuple[str, str], ...] | None = None  # of an sgm file: (document, segment) of each line


class Readable(Protocol):
    """The part of a file that reads."""

    def read(self, size: int = ..., /) -> bytes:
        """At most `size` bytes; none at the end."""


def unpack(archive: Path, wanted: Mapping[str, Member], folder: Path) -> dict[str, Unpacked]:
    """Write each wanted member of a tar or tar.gz into `folder`, under the name that `wanted` maps to it.

    Two sgm files of one archive are the two sides of a test set: their documents and segments must agree.
    """
    missing = {member.name: (ours, member) for ours, member in wanted.items()}
    done: dict[str, Unpacked] = {}
    with _stream(archive) as stream:
        for info, tar in _members(archive, stream):
            name = info.name.removeprefix("./")  # as `tar -C folder .` writes it
            if all(name != member.name for member in wanted.values()):
                if info.issparse():
                    raise ValueError(f"{archive} holds a sparse file, {info.name!r}; expected none. {AGAIN}")
                _pass_over(tar, info)
                continue
            if name not in missing:
                raise ValueError(f"{archive} holds {name!r} twice; expected it once. {AGAIN}")
            ours, member = missing.pop(name)
            done[ours] = _written(archive, member, _contents(archive, tar, info, member), folder / ours)
    if missing:
        raise ValueError(
            f"{archive} lacks {', '.join(map(repr, missing))}; expected {', '.join(m.name for m in wanted.values())}. "
            f"{AGAIN}"
        )
    _agree(archive, wanted, done)
    return done


# The archive -----------------------------------------------------------------------------------------------


class _Bounded:
    """A file that is read forwards only, and of which no more can be read than it is allowed to give.

    `total` bounds the whole of it. `header` bounds what may be read from one member to the next, because the
    reader of tar headers holds in memory as many bytes as a header claims to have.
    """

    def __init__(self, file: Readable, archive: Path, total: int) -> None:
        self._file, self._archive = file, archive
        self._total = self._left = total
        self._at = 0
        self.header: int | None = MAX_HEADER

    def read(self, size: int = BLOCK, /) -> bytes:
        if self.header is not None and not 0 <= size <= self.header:  # a negative size would read all
            raise ValueError(
                f"{self._archive} has a header of more than {MAX_HEADER:,} bytes, or of a negative size; expected a "
                f"few hundred. {AGAIN}"
            )
        block = self._file.read(size)
        self._at += len(block)
        self._left -= len(block)
        if self._left < 0:
            raise ValueError(
                f"{self._archive} unpacks to more than {self._total:,} bytes, {MAX_EXPANSION} times its own size or "
                f"more; text does not pack so well. {AGAIN}"
            )
        if self.header is not None:
            self.header -= len(block)
        return block

    def tell(self) -> int:
        return self._at

    def seek(self, position: int) -> None:
        """Pass over what lies before `position`."""
        if position < self._at:
            raise tarfile.StreamError(f"a header leads back from byte {self._at:,} to byte {position:,}")
        while self._at < position and self.read(min(RECORD, position - self._at)):
            pass


@contextmanager
def _stream(archive: Path) -> Iterator[_Bounded]:
    """The bytes of a tar, unpacked if it is gzip'd; all faults of reading become one kind."""
    with open(archive, "rb") as file:
        total = max(SMALLEST_BOMB, MAX_EXPANSION * archive.stat().st_size)
        is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
        stream = _Bounded(gzip.GzipFile(fileobj=file) if is_gzip else file, archive, total)
        try:
            yield stream
        except (EOFError, gzip.BadGzipFile, zlib.error, tarfile.TarError) as error:
            raise ValueError(f"{archive} is not a whole archive ({error}). {AGAIN}") from error


def _members(archive: Path, stream: _Bounded) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]:
    """Every member in order. At the end the rest of the stream is read, so that a gzip's checksum is seen."""
    with tarfile.TarFile(fileobj=cast(BinaryIO, stream)) as tar:
        for number in range(MAX_MEMBERS + 1):
            stream.header = MAX_HEADER
            info = tar.next()
            stream.header = None
            if info is None:
                break
            if number == MAX_MEMBERS:
                raise ValueError(f"{archive} has more than {MAX_MEMBERS:,} members; expected a few hundred. {AGAIN}")
            if info.size < 0:
                raise ValueError(f"{archive} has a member of {info.size} bytes, {info.name!r}. {AGAIN}")
            yield info, tar
        while stream.read(BLOCK):
            pass


def _pass_over(tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
    """Read an unwanted member to its end, so that only headers are left for the next step."""
    if info.isreg() and (file := tar.extractfile(info)):
        with file:
            while file.read(BLOCK):
                pass


def _contents(archive: Path, tar: tarfile.TarFile, info: tarfile.TarInfo, member: Member) -> Iterator[bytes]:
    """The text of a wanted member, block by block; one byte over its limit is refused."""
    kind = next((word for is_it, word in _KINDS if is_it(info)), "a regular file")
    if not info.isreg() or info.issparse():
        raise ValueError(f"{archive}: {member.name!r} is {kind}; expected a regular file. {AGAIN}")
    too_long = ValueError(
        f"{archive}: {member.name!r} has more than {member.max_bytes:,} bytes, the limit of this file. If it has "
        "grown, raise max_bytes in repro/data/download/sources.py; else delete the archive and get it again."
    )
    if member.form is not Form.GZIP and info.size > member.max_bytes:
        raise too_long
    file = tar.extractfile(info)
    assert file is not None  # it is regular
    with file:
        reader: Readable = gzip.GzipFile(fileobj=file) if member.form is Form.GZIP else file
        n_bytes = 0
        try:
            while block := reader.read(BLOCK):
                n_bytes += len(block)
                if n_bytes > member.max_bytes:
                    raise too_long
                yield block
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{archive}: {member.name!r} is not a whole gzip file ({error}). {AGAIN}") from error


_KINDS = (
    (tarfile.TarInfo.issym, "a symbolic link"),
    (tarfile.TarInfo.islnk, "a hard link"),
    (tarfile.TarInfo.isdir, "a folder"),
    (tarfile.TarInfo.isfifo, "a pipe"),
    (tarfile.TarInfo.isdev, "a device"),
    (tarfile.TarInfo.issparse, "a sparse file"),
    (lambda info: not info.isreg(), "of unknown type"),
)


def _written(archive: Path, member: Member, blocks: Iterator[bytes], path: Path) -> Unpacked:
    """Write the text of one member and say what was written."""
    segments = None
    if member.form is Form.SGM:
        lines, segments = read_sgm(b"".join(blocks), f"{archive}: {member.name!r}")
        blocks = (f"{line}\n".encode() for line in lines)
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
    return Unpacked(n_bytes=n_bytes, sha256=digest.hexdigest(), n_lines=n_lines + (last != b"\n"), segments=segments)


# sgm -------------------------------------------------------------------------------------------------------

REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
CHARACTERS = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
MAX_PENDING = 100_000  # characters between two tags; a sentence has a few hundred


class _Segments(HTMLParser):
    """The sentences of an sgm file, each with its document and its number; what stands outside them is no text.

    The files are SGML in name: `&` occurs bare and as `&amp;`, tags and attributes in any case and order. An HTML
    parser takes them as they are. It is shown no reference of the file (`&` is fed as `&amp;`), so none is ever
    expanded but the five of XML and those by number, once, by `_character`: there are no entities to make a bomb of.
    """

    def __init__(self, where: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.segments: list[tuple[str, str]] = []
        self._where, self._document = where, ""
        self._pieces: list[str] = []
        self._number: str | None = None  # of the open segment

    def read(self, text: str) -> None:
        """The whole file, a line at a time, so that no unfinished tag makes the parser begin again at the start."""
        for line in text.replace("&", "&amp;").split("\n"):
            self.feed(line + "\n")
            if len(self.rawdata) > MAX_PENDING:
                raise self._refused(f"has more than {MAX_PENDING:,} characters without a tag")
        self.close()
        if self._number is not None:
            raise self._refused("ends within a segment")
        if not self.lines:
            raise self._refused("has no segment")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: (value or "").strip() for name, value in attrs}
        if self._number is not None:
            raise self._refused(f"has <{tag}> within segment {self._number}")
        if tag == "doc":
            self._document = attributes.get("docid", "")
        elif tag == "seg":
            self._number, self._pieces = attributes.get("id", ""), []

    def handle_endtag(self, tag: str) -> None:
        if tag == "seg":
            if self._number is None:
                raise self._refused("ends a segment that did not begin")
            text = re.sub("[ \t\r\n\f\v]+", " ", "".join(self._pieces)).strip(" ")
            self.lines.append(REFERENCE.sub(_character, text))
            self.segments.append((self._document, self._number))
            self._number = None
        elif self._number is not None:
            raise self._refused(f"has </{tag}> within segment {self._number}")

    def handle_data(self, data: str) -> None:
        if self._number is not None:
            self._pieces.append(data)

    def handle_comment(self, data: str) -> None:
        if self._number is not None:
            raise self._refused(f"has a comment within segment {self._number}")
        if data.lower().startswith("entity"):  # the parser takes <!ENTITY> for a comment that is badly written
            raise self._refused("declares entities")

    def handle_decl(self, decl: str) -> None:
        if self._number is not None or "[" in decl or "entity" in decl.lower():
            raise self._refused("declares entities")

    def unknown_decl(self, data: str) -> None:
        raise self._refused("has a marked section")

    def handle_pi(self, data: str) -> None:
        if self._number is not None:
            raise self._refused(f"has an instruction within segment {self._number}")

    def _refused(self, what: str) -> ValueError:
        return ValueError(
            f"{self._where} {what}, near line {self.getpos()[0]:,}; expected plain sentences, each in <seg id>, "
            f"in <doc docid>. {AGAIN}"
        )


def _character(reference: re.Match[str]) -> str:
    """What a reference stands for; one that stands for no character stays as it is."""
    name, decimal, hexadecimal = reference.groups()
    if name:
        return CHARACTERS[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    is_character = 0x20 <= code < 0xD800 or 0xE000 <= code <= 0x10FFFF
    return chr(code) if is_character else reference[0]


def read_sgm(content: bytes, where: str) -> tuple[list[str], tuple[tuple[str, str], ...]]:
    """The sentences of an sgm file in order, one a line, and the (document, segment) of each."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{where}, line {line:,} (byte {error.start:,}) is not UTF-8. {AGAIN}") from None
    parser = _Segments(where)
    parser.read(text)
    return parser.lines, tuple(parser.segments)


def _agree(archive: Path, wanted: Mapping[str, Member], done: Mapping[str, Unpacked]) -> None:
    """Refuse sgm files whose documents and segments are not the same, naming the first that differs."""
    sides = [(wanted[ours].name, unpacked.segments) for ours, unpacked in done.items() if unpacked.segments]
    for (name, segments), (other, others) in pairwise(sides):
        for line, (one, two) in enumerate(zip(segments, others, strict=False), 1):
            if one != two:
                raise ValueError(
                    f"{archive}: sentence {line:,} is document {one[0]!r}, segment {one[1]!r} in {name!r}, but "
                    f"document {two[0]!r}, segment {two[1]!r} in {other!r}; line i must translate line i. {AGAIN}"
                )
        if len(segments) != len(others):
            raise ValueError(
                f"{archive}: {name!r} has {len(segments):,} sentences, {other!r} has {len(others):,}; line i must "
                f"translate line i. {AGAIN}"
            )
