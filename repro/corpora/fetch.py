"""From an address to plain text: archives are fetched once, verified at every use, and unpacked into our folders.

A download goes into a `.part` file, which gets its name when it is complete and its hash is right. A broken transfer is
tried again, from where it stopped if a hash can tell whether the parts fit. If an address does not have the archive, or
cannot be reached, the next one is tried. No network is needed if the archives, or their texts, are there.

An archive is read once, as a stream, and its content never decides where a file is written: a member whose name is
known is copied into a file of ours, all others are skipped.
"""

import functools
import gzip
import hashlib
import html
import re
import shutil
import tarfile
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import requests
import urllib3

from repro.corpora.parallel_text import text_fingerprint
from repro.corpora.sources import Collection, Source
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, made_once, verified
from repro.storage.lock import alone

AGAIN = "Delete the archive and get it again."
SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)
BLOCK = 1 << 17
ATTEMPTS = 6  # at one address, in a row, each with no more progress in bytes than:
PROGRESS = 1 << 20
TIMEOUT = (5.0, 60.0)  # seconds to connect, and in which nothing comes
TELL_SECONDS = 10.0
BUSY = (408, 425, 429)  # answers that ask to try again later, as those from 500 on do
Announce = Callable[[str], object]

# Archives --------------------------------------------------------------------------------------------------


def fetch(source: Source, folder: Path, *, offline: bool = False, tell: Announce = print) -> Path:
    """The archive of `source` in `folder`, verified; it is downloaded if absent, unless `offline`."""
    path = folder / source.archive
    if path.exists():
        if wrong := _wrong_hash(path, source):
            raise ValueError(f"{path} is not the published file: {wrong}. {AGAIN}")
        return path
    if offline:
        raise FileNotFoundError(f"Offline, and an archive is missing. {by_hand([source], folder)}")
    with alone(path.with_name(f".{path.name}.lock"), tell):
        if not path.exists():
            _download(source, path, tell)
    return path


def missing(collection: Collection, archives: Path, texts: Path) -> list[Source]:
    """The sources of which neither text nor archive is there, one for each archive; no file is read."""
    lacking: dict[str, Source] = {}
    for source in collection.sources:
        made = _text_folder(source, collection.pair, texts) / MANIFEST
        if not made.is_file() and not (archives / source.archive).is_file():
            lacking.setdefault(source.archive, source)
    return list(lacking.values())


def by_hand(sources: Iterable[Source], folder: Path) -> str:
    """How to get archives without this program."""
    files = [f"  {line}" for source in sources for line in described(source)]
    return "\n".join([f"Put these files into {folder}, under these names:", *files])


def described(source: Source) -> list[str]:
    """What one must know of an archive: our name for it, size and hash, where it is, what it is, its licence."""
    identity = f"MD5 {source.md5}" if source.md5 else "known by the SHA-256 of its texts"
    identity = f"SHA-256 {source.sha256}" if source.sha256 else identity
    said = (*source.urls, source.about, f"licence: {source.licence}")
    return [f"{source.archive}  {_at_most(source)}  {identity}", *(f"  {line}" for line in said if line)]


def _at_most(source: Source) -> str:
    return f"{source.size:,} bytes" if source.size is not None else f"at most {source.max_size:,} bytes"


def _wrong_hash(path: Path, source: Source) -> str:
    """What is wrong with the hash of an archive; "" if it is the published one, or none is published."""
    algorithm, expected = ("sha256", source.sha256) if source.sha256 else ("md5", source.md5)
    if expected is None:
        return ""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, functools.partial(hashlib.new, algorithm, usedforsecurity=False))
    found = digest.hexdigest()
    return "" if found == expected else f"expected {algorithm} {expected}, got {found}"


# Downloads -------------------------------------------------------------------------------------------------


class Refused(Exception):
    """This address does not have the archive; the message says why."""


class Broken(Refused):
    """The transfer broke; another try may succeed."""


def _download(source: Source, archive: Path, tell: Announce) -> None:
    """Download the archive from the first address that gives it. Raises ConnectionError if none does."""
    failures = []
    path = archive.with_name(f"{archive.name}.part")
    with closing(atomic.Appended(path)) as part:
        part.cut(path.stat().st_size)
        for url in source.urls:
            try:
                _receive(source, url, part, tell)
            except Refused as failure:
                failures.append(f"{url}: {failure}")
                tell(failures[-1])
            else:
                path.replace(archive)
                return
    if not (source.sha256 or source.md5) or not path.stat().st_size:  # it could not be resumed
        path.unlink()
    hint = "Without a network, get the file elsewhere and add --offline."
    said = [f"No address gave {source.archive}:", *(f"  {line}" for line in failures), hint]
    raise ConnectionError("\n".join([*said, by_hand([source], archive.parent)]))


def _receive(source: Source, url: str, part: atomic.Appended, tell: Announce) -> None:
    """Receive the whole archive from one address; try again while attempts make progress."""
    failed = 0
    while True:
        if not (source.sha256 or source.md5) or part.end > source.size_at_most:
            part.cut(0)
        before = part.end
        try:
            if part.end != source.size:
                _attempt(source, url, part, tell, is_known=bool(failed))
            part.push()
            if wrong := _wrong_hash(part.path, source):
                part.cut(0)
                raise Broken(f"the parts do not fit together ({wrong})") if before else Refused(wrong)
            return
        except Broken as broken:
            failed = 1 if part.end - before > PROGRESS else failed + 1
            if failed == ATTEMPTS:
                raise
            tell(f"{url}: {broken}; again in {2**failed} seconds.")
            time.sleep(2**failed)


def _attempt(source: Source, url: str, part: atomic.Appended, tell: Announce, *, is_known: bool) -> None:
    """Make one request for what is lacking, and write what comes; `is_known`: this address has answered before.

    Messages name the kind of an error alone: its text may hold a proxy's address and password.
    """
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={part.end}-"} if part.end else {})
    try:
        answer = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
    except (requests.RequestException, ValueError) as error:  # the second: it leads to what is no address
        kind = Broken if is_known else Refused
        raise kind(f"no connection could be made ({type(error).__name__})") from None
    with answer:
        status, length = answer.status_code, answer.headers.get("Content-Length", "")
        if status == 416 and part.end:  # it may be complete: the hash decides
            return
        if status not in (200, 206):
            raise (Broken if status in BUSY or status >= 500 else Refused)(f"the server answered {status}")
        if "html" in answer.headers.get("Content-Type", "").lower():  # as a hotel's login has
            raise Refused("a web page instead of an archive")
        if status == 200:  # all of it, whatever was asked for
            part.cut(0)
        if source.size is not None and length.isdecimal() and part.end + int(length) != source.size:
            raise Refused(f"{part.end + int(length):,} bytes, expected {_at_most(source)}")
        told = time.monotonic()
        try:
            while block := answer.raw.read1(BLOCK, decode_content=False):  # returns what has come so far
                part.append(block)
                if part.end > source.size_at_most:
                    part.cut(0)
                    raise Refused(f"it sends more than expected: {_at_most(source)}")
                if time.monotonic() - told >= TELL_SECONDS:
                    told = time.monotonic()
                    tell(f"{source.archive}: {part.end:,} of {_at_most(source)}")
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:  # it also has less than it stated
            raise Broken(f"the connection broke ({type(error).__name__})") from None
    if source.size is not None and part.end < source.size:
        raise Broken(f"the connection ended after {part.end:,} of {source.size:,} bytes")


# Texts -----------------------------------------------------------------------------------------------------


def text(
    source: Source, pair: str, archives: Path, texts: Path, *, offline: bool = False, tell: Announce = print
) -> tuple[Path, Path]:
    """The plain text of `source` for `pair`, two files in a folder of `texts`; the archive is needed only to make them.

    The facts kept of that folder are `files` (by language `n_lines` and `sha256` of the text) and the name of the
    `archive`.
    """
    folder = _text_folder(source, pair, texts)
    try:
        verified(folder)
    except (FileNotFoundError, ValueError) as reason:
        if isinstance(reason, ValueError):
            tell(f"{reason} It is made again now.")
        archive = fetch(source, archives, offline=offline, tell=tell)
        tell(f"Unpacking {source.name} ({pair}) from {archive}.")
        made_once(folder, lambda empty: _unpacked(source, pair, archive, empty))
    one, other = (folder / f"{source.name}.{side.language}" for side in source.members[pair])
    return one, other


def _text_folder(source: Source, pair: str, texts: Path) -> Path:
    return texts / f"{source.name}-{pair}"


def _unpacked(source: Source, pair: str, archive: Path, folder: Path) -> dict[str, Any]:
    """Fill `folder` from the archive and return its facts. Raises ValueError if the text is not the published one."""
    paths = {side: folder / f"{source.name}.{side.language}" for side in source.members[pair]}
    unpack(archive, {side.name: path for side, path in paths.items()})
    found = {side: text_fingerprint(path) for side, path in paths.items()}
    one, other = (of.n_lines for of in found.values())
    expected = source.n_pairs.get(pair, one)
    if not one == other == expected:
        raise ValueError(
            f"{archive}: the sides have {one:,} and {other:,} lines, expected {expected:,} of each. {AGAIN}"
        )
    for side, of in found.items():
        if side.sha256 not in (None, of.sha256):
            wrong = f"expected SHA-256 {side.sha256}, got {of.sha256}. {AGAIN}"
            raise ValueError(f"{archive}: {side.name!r} is not the published text: {wrong}")
    files = {side.language: {"n_lines": of.n_lines, "sha256": of.sha256} for side, of in found.items()}
    return {"files": files, "archive": archive.name}


def unpack(archive: Path, wanted: Mapping[str, Path]) -> None:
    """Write the text of each wanted member of a tar or tar.gz, by its name there, to its path."""
    lacking = dict(wanted)
    try:
        with tarfile.open(archive, "r|*") as tar:
            for info in tar:
                if info.name in lacking and info.isreg() and (file := tar.extractfile(info)):
                    atomic.write_bytes(lacking.pop(info.name), functools.partial(_copy, file, info.name))
    except (EOFError, zlib.error, tarfile.TarError) as error:
        raise ValueError(f"{archive} is not a whole archive ({error}). {AGAIN}") from error
    if lacking:
        raise ValueError(f"{archive} lacks {', '.join(map(repr, lacking))}; expected regular files. {AGAIN}")


def _copy(file: IO[bytes], name: str, into: Any) -> None:
    if name.endswith(".sgm"):
        into.write("".join(f"{line}\n" for line in read_sgm(file.read())).encode())
    else:
        shutil.copyfileobj(gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file, into)


def read_sgm(content: bytes) -> list[str]:
    """The sentences of an sgm file in order, one a line.

    The files are SGML only by name: `&` occurs bare and as `&amp;`, tags and attributes in any case and order.
    """
    segments = SEGMENT.findall(content.decode())
    return [html.unescape(re.sub("[ \t\r\n\f\v]+", " ", segment).strip(" ")) for segment in segments]
