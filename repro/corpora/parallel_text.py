"""Parallel text: two files, where line i of one translates line i of the other.

A file is plain or gzip (its first bytes decide) and strict UTF-8. Only a line feed ends a line, so U+2028,
U+0085 and the form feed stay inside it. Three things are not part of the text: a byte order mark at the start
of the file, one carriage return at the end of a line, and the line feed at the end of the file. A bad line
makes its pair bad: training text drops the pair and counts the reason; held-out text raises ValueError,
because a test set that shrinks silently is another test set.

All that compares text asks here when two lines are the same sentence: which lines are part of a test set, which split a
training pair goes to, what the data card counts as repeated.
"""

import codecs
import functools
import gzip
import hashlib
import io
import re
import stat
import zlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO
from unicodedata import category, normalize

MAX_CHARACTERS = 5_000  # longer lines are no sentences; the bound also keeps memory and BPE time small
MAX_BYTES = 4 * MAX_CHARACTERS  # UTF-8 takes at most four bytes a character
READ_AT_ONCE = 1 << 20
CHUNK = 1 << 18  # lines that one process reads and encodes at once, and may lose when it is killed
GZIP = b"\x1f\x8b"  # the first bytes of a gzip file

QUOTES = {"'": "‘’‚‛′‹›ʼ＇", '"': "“”„‟″«»＂"}
_UNSEEN = {" ": "\u200b\u2060\ufeff", "": "\ufe0e\ufe0f"}  # marks of where a line may break; how an emoji is drawn
_PLAIN = str.maketrans({other: one for one, others in (QUOTES | _UNSEEN).items() for other in others})
_MARKS = ("Mn", "Mc", "Me")  # marks on letters: accents without a letter of their own, and the vowels of Hindi
_WORD = re.compile(r"[^\W_]+")
_LANGUAGE = re.compile(r"[a-z]{2,3}", re.ASCII)  # the first part of a tag; later parts are longer or have capitals


def languages(pair: str) -> tuple[str, str]:
    """Source and target language of a pair as it is written: "en-de". Raises ValueError that says what is expected.

    A single dash separates the two, whatever their names. With more dashes, each part of two or three small letters
    begins a tag, and the parts after it belong to it, as in language tags (BCP 47): "zh-Hans", "pt-BR".
    """
    parts = pair.split("-")
    starts = [0, 1] if len(parts) == 2 else [i for i, part in enumerate(parts) if _LANGUAGE.fullmatch(part)]
    if not all(re.fullmatch(r"\w+", part, re.ASCII) for part in parts) or len(starts) != 2 or starts[0] != 0:
        raise ValueError(
            f"A pair is two languages like 'en-de', got {pair!r}. A tag of several parts begins with two or three "
            "small letters and has others after that: 'en-zh-Hans', 'pt-BR-en'."
        )
    source, target = "-".join(parts[: starts[1]]), "-".join(parts[starts[1] :])
    if source == target:
        raise ValueError(f"A pair is two different languages like 'en-de', got {pair!r}: nothing is to be translated.")
    return source, target


@dataclass(frozen=True)
class Fingerprint:
    """What identifies a text file."""

    sha256: str  # of the text: uncompressed and without the three things above
    n_lines: int
    marks: tuple[int, ...] = field(compare=False)  # where each chunk begins, in bytes of the uncompressed file


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of both sides."""

    source: Path
    target: Path
    marks: tuple[int, int]  # where its first line begins on each side
    first_line: int  # from 0
    n_lines: int
    may_drop: bool  # the training text may lose bad pairs, held-out text may not

    def pairs(self, dropped: Counter[str] | None = None) -> Iterator[tuple[str, str]]:
        """Each clean (source, target) pair in order, as a stream; `dropped` counts the others by reason."""
        dropped = Counter() if dropped is None else dropped
        sides = ("source", self.source), ("target", self.target)
        streams = (_lines(path, mark) for (_, path), mark in zip(sides, self.marks, strict=True))
        lines = islice(zip(*streams, strict=True), self.n_lines)
        for number, raw in enumerate(lines, self.first_line + 1):
            texts = []
            for (side, path), line in zip(sides, raw, strict=True):
                try:
                    texts.append(as_text(line))
                except ValueError as reason:
                    if not self.may_drop:
                        both = f"delete line {number:,} of both {self.source.name} and {self.target.name}"
                        raise ValueError(f"{path}, line {number:,} {reason}. Correct it, or {both}.") from None
                    dropped[f"{side} {reason}"] += 1
                    break
            else:
                yield texts[0], texts[1]


@dataclass(frozen=True)
class Parallel:
    """Two files with the same number of lines: a split, or one of the parts of the training text."""

    source: Path
    target: Path
    may_drop: bool = False
    name: str = ""  # of a part

    def fingerprints(self) -> tuple[Fingerprint, Fingerprint]:
        """Those of source and target. Raises ValueError if the sides differ in length or have no line."""
        with ThreadPoolExecutor(2) as threads:  # hashing lets other threads run
            source, target = threads.map(text_fingerprint, (self.source, self.target))
        if source.n_lines != target.n_lines:
            differ = f"{self.source} has {source.n_lines:,} lines, {self.target} has {target.n_lines:,}"
            raise ValueError(f"{differ}; line i must translate line i. Get both files again, from one source.")
        if not source.n_lines:
            raise ValueError(f"{self.source} and {self.target} hold no line; expected at least one pair.")
        return source, target

    def chunks(self) -> list[Chunk]:
        """The text in runs of at most CHUNK lines."""
        source, target = self.fingerprints()
        marks = zip(source.marks, target.marks, strict=True)
        return [
            Chunk(self.source, self.target, at, first, min(CHUNK, source.n_lines - first), self.may_drop)
            for at, first in zip(marks, range(0, source.n_lines, CHUNK), strict=True)
        ]

    def pairs(self, dropped: Counter[str] | None = None) -> Iterator[tuple[str, str]]:
        """Each clean (source, target) pair in order, as a stream; `dropped` counts the others by reason."""
        for chunk in self.chunks():
            yield from chunk.pairs(dropped)


def text_fingerprint(path: Path) -> Fingerprint:
    """Hash and count a file; it is read once per process unless it changes.

    The hash is the same for plain and gzip, for Windows and Unix line ends. For a plain file with Unix line ends it
    is what `sha256sum` prints.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: expected a file, as it is read more than once, got a pipe or a folder.")
    return _fingerprint(path, status.st_size, status.st_mtime_ns)


@functools.cache
def _fingerprint(path: Path, size: int, mtime_ns: int) -> Fingerprint:
    digest, n_lines, is_ended, held, marks = hashlib.sha256(), 0, True, b"", []
    with _opened(path) as file:
        marks.append(place := file.tell())
        while block := held + file.read(READ_AT_ONCE):
            if block == held:  # the last byte of the file is a carriage return
                break
            cut = len(block) - block.endswith(b"\r")  # its line feed may open the next block
            held, raw = block[cut:], block[:cut]
            ends = raw.count(b"\n")
            if closing := range((-n_lines - 1) % CHUNK, ends, CHUNK):  # line feeds that end a chunk
                feeds = [feed.end() for feed in re.finditer(b"\n", raw)]
                marks += [place + feeds[i] for i in closing]
            place += len(raw)
            n_lines += ends
            text = raw.replace(b"\r\n", b"\n")
            digest.update(text)
            is_ended = text.endswith(b"\n") if text else is_ended
    if held or not is_ended:
        digest.update(b"\n")
        n_lines += 1
    return Fingerprint(digest.hexdigest(), n_lines, tuple(marks[: -(-n_lines // CHUNK)]))


def read_lines(path: Path) -> Iterator[str]:
    """The lines of one text; a line of nothing but white space (any of Unicode's) comes as "".

    Raises ValueError that names the line that is no text.
    """
    for number, line in enumerate(_lines(path, 0), 1):
        if len(line) <= MAX_BYTES and not line.decode(errors="replace").strip():
            yield ""
            continue
        try:
            yield as_text(line)
        except ValueError as reason:
            raise ValueError(f"{path}, line {number:,} {reason}. Correct it.") from None


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The uncompressed bytes of `path`, after a byte order mark if there is one."""
    with open(path, "rb") as file:
        is_gzip = file.peek(2)[:2] == GZIP
        reader = io.BufferedReader(gzip.GzipFile(fileobj=file), READ_AT_ONCE) if is_gzip else file
        try:
            if reader.peek(3)[:3] == codecs.BOM_UTF8:
                reader.read(3)
            if reader.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                raise ValueError(f"{path} is UTF-16: expected UTF-8. Convert it: iconv -f UTF-16 -t UTF-8.")
            yield reader
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is not a whole gzip file ({error}). Get it again.") from error


def _lines(path: Path, mark: int) -> Iterator[bytes]:
    """Every line from `mark` on, without its end; one over MAX_BYTES is cut, but stays too long."""
    with _opened(path) as file:
        if mark:
            file.seek(mark)
        while line := file.readline(MAX_BYTES + 3):  # 3: room for "\r\n" and one byte too many
            if len(line) == MAX_BYTES + 3 and not line.endswith(b"\n"):
                while (rest := file.readline(READ_AT_ONCE)) and not rest.endswith(b"\n"):
                    pass
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def as_text(line: bytes) -> str:
    """The line as text. Raises ValueError that says what is wrong with it."""
    too_long = f"is longer than {MAX_CHARACTERS:,} characters"
    if len(line) > MAX_BYTES:
        raise ValueError(too_long)
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    if len(text) > MAX_CHARACTERS:
        raise ValueError(too_long)
    if "\0" in text:
        raise ValueError("holds a NUL character")
    if not text.strip():
        raise ValueError("is empty")
    return text


# The same sentence ----------------------------------------------------------------------------------------


def same_spelling(line: str) -> str:
    """The line in one standard spelling: Unicode's NFC, plain quotes, one blank between words.

    Two lines are the same sentence if their standard spellings are equal.
    """
    if not line.isascii():
        line = normalize("NFC", line).translate(_PLAIN)
    return " ".join(line.split())


def normalised(line: str) -> str:
    """The words of the line in lower case with blanks between them: only letters and digits, with their marks."""
    line = same_spelling(line).casefold()
    if line.isascii():
        return " ".join(_WORD.findall(line))
    return " ".join("".join(one if one.isalnum() or category(one) in _MARKS else " " for one in line).split())
