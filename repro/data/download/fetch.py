"""From an address to plain text: archives are fetched once, verified always, and unpacked into folders of ours.

A transfer goes into a `.part` file, which is kept when it breaks and gone on with the next time; the whole file is
given the archive's name after its hash has been checked. What breaks on the way is tried again; what was refused
(an error page, another length, another host) and who cannot be reached at all is left to the next mirror, and a wrong
hash is never tried again: the file is set aside as `.refused`. Nothing here needs a network when the archives, or
their texts, are there.
"""

import errno
import functools
import glob
import hashlib
import json
import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from repro.data.download.archive import unpack
from repro.data.download.sources import Collection, Source
from repro.data.parallel_text import fingerprint
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, alone, made_once, verified

RECEIVED = "received.json"  # the hashes that nobody published, as first received
BLOCK = 1 << 17
ATTEMPTS = 6  # at one mirror, in a row, none with more progress than this:
PROGRESS = 1 << 20
MAX_REDIRECTS = 5
TELL_SECONDS = 10.0
MAGIC = {".tgz": b"\x1f\x8b", ".gz": b"\x1f\x8b"}


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Time, and how much of it a server gets."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    connect_seconds: float = 5.0  # to each address of a host; without a network all mirrors together take some seconds
    stall_seconds: float = 60.0  # without a byte


CLOCK = Clock()


@dataclass(frozen=True, kw_only=True)
class Text:
    """The two plain files of one source for one pair."""

    source: Path
    target: Path
    facts: dict[str, Any]  # "files": language -> {bytes, sha256, n_lines}; "archive": its SHA-256


# Archives --------------------------------------------------------------------------------------------------


def fetch(
    source: Source,
    folder: Path,
    *,
    offline: bool = False,
    mirror: str | None = None,
    tell: Callable[[str], object] = print,
    clock: Clock = CLOCK,
) -> Path:
    """The archive of `source` in `folder`, verified; it is downloaded where it is absent, unless `offline`.

    `mirror` is the address of a folder with copies under the names of ours; it is asked before those of the source.
    """
    path, copy = folder / source.archive, copies(source, mirror)
    if not path.exists():
        if offline:
            raise FileNotFoundError(f"Offline, and an archive is missing. {_by_hand([source], folder)}")
        if mirror and not copy:
            tell(f"{mirror} is not asked for {source.archive}: it has no published SHA-256, so it must come over TLS.")
        atomic.make_folder(folder)
        with alone(folder / f".{source.archive}.lock", tell):
            if not path.exists():
                _download(source, [*copy, *source.urls], folder, tell, clock)
                path.chmod(0o644)  # a temporary file is private; what is on a shared disk is for all
    _verify(source, path)
    return path


def copies(source: Source, mirror: str | None) -> list[str]:
    """Where a mirror has the archive: under our name. What no published hash vouches for must come over TLS."""
    if mirror is None:
        return []
    try:
        address = urlsplit(mirror)
        is_web = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:  # "http://[::1/", "http://x:port"
        is_web = False
    if not is_web or address.query or address.fragment:
        raise ValueError(
            f"--mirror {mirror[:200]!r} is no address of a folder; expected one like https://example.org/archives."
        )
    is_safe = address.scheme == "https" or source.is_pinned
    return [f"{mirror.rstrip('/')}/{source.archive}"] if is_safe else []


def missing(collection: Collection, archives: Path, texts: Path | None = None) -> list[Source]:
    """The sources of which neither the text nor the archive is there, one for each archive; nothing is read."""
    lacking: dict[str, Source] = {}
    for source in collection.sources:
        has_text = texts is not None and (_text_folder(source, collection.pair, texts) / MANIFEST).is_file()
        if not has_text and not (archives / source.archive).is_file():
            lacking.setdefault(source.archive, source)
    return list(lacking.values())


def instructions(collection: Collection, archives: Path, texts: Path | None = None) -> str:
    """What is to be fetched, how large it is and where it goes; "" where nothing is missing."""
    lacking = missing(collection, archives, texts)
    return _by_hand(lacking, archives) if lacking else ""


def _by_hand(sources: Sequence[Source], folder: Path) -> str:
    """How to get archives without this program."""
    files = [f"  {line}" for source in sources for line in described(source)]
    return "\n".join([f"Put these files into {folder}, under these names:", *files])


def described(source: Source) -> list[str]:
    """What one must know of an archive: our name for it, size and hash, where it is, what it is, its licence."""
    said = (*source.urls, source.about, f"licence: {source.licence}", source.note)
    return [f"{source.archive}  {_at_most(source)}  {_published(source)}", *(f"  {line}" for line in said if line)]


def _at_most(source: Source) -> str:
    return f"{source.size:,} bytes" if source.size is not None else f"at most {source.max_size:,} bytes"


def _published(source: Source) -> str:
    if source.sha256:
        return f"SHA-256 {source.sha256}"
    if source.md5:
        return f"MD5 {source.md5}"
    return "known by the SHA-256 of its texts" if source.is_pinned else "no published hash"


def _verify(source: Source, path: Path) -> None:
    """Refuse an archive that is not what it should be, and set it aside; each file is read once per process."""
    expected = _expected(source, path.parent)
    status = path.stat()
    if source.size is not None and status.st_size != source.size:
        raise _set_aside(path, f"{source.size:,} bytes", f"{status.st_size:,}")
    for algorithm, digest in expected.items():
        found = _digest(path, algorithm)
        if found != digest:
            raise _set_aside(path, f"{algorithm} {digest}", found)
    if not source.is_pinned:
        _record(path)


def _expected(source: Source, folder: Path) -> dict[str, str]:
    """The hashes that the archive must have: the published ones, else also the one first received.

    One that is known by its texts may have any.
    """
    if source.is_pinned:
        return {"sha256": source.sha256} if source.sha256 else {}
    first = _received(folder).get(source.archive, {}).get("sha256")
    return {name: digest for name, digest in (("md5", source.md5), ("sha256", first)) if digest}


def _set_aside(path: Path, expected: str, found: str) -> ValueError:
    """Take the name from a file that is not what its name says."""
    aside = path.with_name(f"{path.name}.refused")
    with suppress(FileNotFoundError):  # another process did it
        path.replace(aside)
    return ValueError(
        f"{path} is not the published file: expected {expected}, got {found}. It was set aside as {aside.name} and "
        "is not used. Start again to download it, or put the right file there."
    )


def _digest(path: Path, algorithm: str) -> str:
    status = path.stat()
    return _digest_of_file(path, algorithm, status.st_size, status.st_mtime_ns)


@functools.cache
def _digest_of_file(path: Path, algorithm: str, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _received(folder: Path) -> dict[str, dict[str, Any]]:
    """What was written down of the archives without a published SHA-256."""
    path = folder / RECEIVED
    try:
        received = json.loads(path.read_bytes())
        if not isinstance(received, dict) or not all(isinstance(entry, dict) for entry in received.values()):
            raise ValueError("no table")
    except FileNotFoundError:
        return {}
    except ValueError:
        raise ValueError(
            f"{path} is not what was written. Delete it; the archives beside it are then taken as they are."
        ) from None
    return received


def _record(path: Path) -> None:
    """Write down the hash of an archive for which none was known."""
    entry = {"sha256": _digest(path, "sha256"), "bytes": path.stat().st_size}
    with alone(path.parent / f".{RECEIVED}.lock", lambda _: None):
        received = _received(path.parent)
        if path.name not in received:
            atomic.write_json(path.parent / RECEIVED, received | {path.name: entry})


# Texts -----------------------------------------------------------------------------------------------------

WINDOW = 100  # lines over which the lengths of the sides are compared


def text(
    source: Source,
    pair: str,
    archives: Path,
    texts: Path,
    *,
    offline: bool = False,
    mirror: str | None = None,
    tell: Callable[[str], object] = print,
    clock: Clock = CLOCK,
) -> Text:
    """The plain text of `source` for `pair`, in a folder of `texts`; an archive is needed only to make it."""
    if pair not in source.members:
        raise ValueError(f"Source {source.name!r} has no pair {pair!r}; expected one of {', '.join(source.members)}.")
    folder = _text_folder(source, pair, texts)
    try:
        facts = verified(folder)
    except (FileNotFoundError, ValueError) as reason:
        if not isinstance(reason, FileNotFoundError):
            tell(f"{reason} It is made again now.")
        archive = fetch(source, archives, offline=offline, mirror=mirror, tell=tell, clock=clock)
        tell(f"Unpacking {source.name} ({pair}) from {archive}.")
        facts = made_once(folder, lambda empty: _unpacked(source, pair, archive, empty))
    if source.sha256 not in (None, facts["archive"]):
        raise ValueError(
            f"{folder} was made of another archive: expected SHA-256 {source.sha256}, got {facts['archive']}. Delete "
            "the folder; it is made again."
        )
    one, other = source.members[pair]
    return Text(
        source=folder / f"{source.name}.{one.language}", target=folder / f"{source.name}.{other.language}", facts=facts
    )


def _text_folder(source: Source, pair: str, texts: Path) -> Path:
    return texts / f"{source.name}-{pair}"


def _unpacked(source: Source, pair: str, archive: Path, folder: Path) -> dict[str, Any]:
    """Fill `folder` from the archive and say what is in it; the sides must have the published number of lines."""
    _require_room(folder, source.text_bytes(pair), f"the text of {source.name}, by an estimate,")
    sides = source.members[pair]
    members = {f"{source.name}.{member.language}": member for member in (*sides, *source.extras)}
    done = unpack(archive, members, folder)
    files = {
        member.language: {"bytes": done[name].n_bytes, "sha256": done[name].sha256, "n_lines": done[name].n_lines}
        for name, member in members.items()
    }
    counts = [files[side.language]["n_lines"] for side in sides]
    expected = source.n_pairs.get(pair)
    if counts[0] != counts[1] or expected not in (None, counts[0]):
        place = parting(*(folder / f"{source.name}.{side.language}" for side in sides))
        raise ValueError(
            f"{archive}: {sides[0].name!r} has {counts[0]:,} lines, {sides[1].name!r} has {counts[1]:,}; expected "
            + (f"{expected:,} of each. " if expected is not None else "as many of each. ")
            + (f"From about line {place:,} on the lengths of their lines no longer go together. " if place else "")
            + "Delete the archive and get it again."
        )
    for name, member in members.items():
        if member.sha256 not in (None, found := fingerprint(folder / name).sha256):
            raise ValueError(
                f"{archive}: {member.name!r} is not the published text: expected SHA-256 {member.sha256}, got {found}. "
                "Delete the archive and get it again."
            )
    return {"files": files, "archive": _digest(archive, "sha256")}


def parting(one: Path, other: Path) -> int | None:
    """The line from which on two sides no longer translate each other, judged by the lengths of their lines.

    Long sentences have long translations. Over each window of lines that is a correlation; where a line is lost,
    all windows after it have none. The place is where the sum of the correlations rises most above its mean course.
    """
    together = []
    with open(one, "rb") as file, open(other, "rb") as translation:
        while len(pairs := list(zip(islice(file, WINDOW), islice(translation, WINDOW), strict=False))) == WINDOW:
            lengths = [[math.log1p(len(line)) for line in side] for side in zip(*pairs, strict=True)]
            try:
                together.append(statistics.correlation(*lengths))
            except statistics.StatisticsError:  # all lines are equally long
                together.append(0.0)
    if len(together) < 2:
        return None
    mean = statistics.fmean(together)
    above = list(accumulate(value - mean for value in together[:-1]))
    n_before = max(range(len(above)), key=above.__getitem__) + 1
    falls_by = statistics.fmean(together[:n_before]) - statistics.fmean(together[n_before:])
    return n_before * WINDOW + 1 if falls_by > 0.3 else None


def _require_room(folder: Path, n_bytes: int, what: str) -> None:
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise atomic.DiskError(
            errno.ENOSPC,
            f"{folder} has {free:,} bytes free, {what} needs {n_bytes:,}. Make room and start again; what was "
            "received is kept.",
        )


# Transfer --------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """This mirror does not have the archive; the words say why."""


class _Broken(Exception):
    """The transfer broke; it may succeed when it is tried again."""


class _Unreachable(Exception):
    """No connection could be made: to ask again at once would only take time."""


class _WrongHash(Exception):
    """Something came whole, and it is not the archive."""


def _download(source: Source, urls: Sequence[str], folder: Path, tell: Callable[[str], object], clock: Clock) -> None:
    """Have the archive from the first mirror that gives it; one error says what each mirror did."""
    import pooch  # here, not above: with requests it takes a tenth of a second, which --help need not wait

    pooch.get_logger().setLevel("WARNING")
    known = _expected(source, folder)
    known_hash = next((f"{algorithm}:{digest}" for algorithm, digest in known.items()), None)
    failures: dict[str, Exception] = {}
    with _Transfer(source, folder, known, tell, clock) as transfer:
        for url in urls:
            try:
                pooch.retrieve(url, known_hash, fname=source.archive, path=folder, downloader=transfer)
                return
            except (_Refused, _Broken, _Unreachable, _WrongHash) as failure:
                if (folder / source.archive).exists():  # another process was faster, where there are no locks
                    return
                failures[url] = failure
                tell(f"{url}: {failure}")
    said = [f"No mirror gave {source.archive}:", *(f"  {url}: {failure}" for url, failure in failures.items())]
    if all(isinstance(failure, _Unreachable) for failure in failures.values()):
        said.append(
            "None could be reached: is there a network, or does it need a proxy (https_proxy)? Start again when there "
            "is one, name a folder of copies with --mirror URL, or get the file elsewhere and add --offline."
        )
    kind = ValueError if any(isinstance(failure, _WrongHash) for failure in failures.values()) else ConnectionError
    raise kind("\n".join([*said, _by_hand([source], folder)]))


class _Transfer:
    """A downloader for pooch that goes on where it stopped.

    It writes into a file of its own, so no two processes ever write into one. What earlier ones left (`.part`) is
    copied into it, if there is a hash to tell whether the pieces belong together.
    """

    def __init__(
        self, source: Source, folder: Path, known: dict[str, str], tell: Callable[[str], object], clock: Clock
    ) -> None:
        self._source, self._folder, self._known, self._tell, self._clock = source, folder, known, tell, clock
        self._file: IO[bytes] | None = None
        self._is_patched = False  # whether the file is made of pieces of several transfers
        self._has_answered = False  # the mirror that is asked
        self._etag: str | None = None
        self._told = -math.inf

    def __enter__(self) -> "_Transfer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            part = Path(self._file.name)
            self._file.close()
            self._file = None
            if not (self._known and _size_of(part)):  # without a hash nobody could go on with it
                part.unlink(missing_ok=True)

    def __call__(self, url: str, output_file: str, _: object, check_only: bool = False) -> None:
        """Fill `output_file` from `url`; called by pooch, which checks the hash again and gives the name."""
        self._etag, self._has_answered = None, False  # another mirror marks the same file otherwise
        for is_again in (False, True):
            if self._file is None or not self._known:
                self._open(goes_on=bool(self._known) and not is_again)
            self._receive_all(url)
            part = self._closed()
            try:
                wrong = [
                    f"expected {algorithm} {digest}, got {found}"
                    for algorithm, digest in self._known.items()
                    if (found := _digest(part, algorithm)) != digest
                ]
                part.replace(self._aside if wrong else output_file)
            except FileNotFoundError:  # where there are no locks, another process took it for one that was left
                continue
            if not wrong:
                return
            if is_again or not self._is_patched:
                raise _WrongHash(f"{'; '.join(wrong)}; set aside as {self._aside.name} and not used")
            self._tell(f"{self._source.archive}: the pieces do not fit together; from the start.")
        raise _Broken("another process took the file away")

    @property
    def _aside(self) -> Path:
        return self._folder / f"{self._source.archive}.refused"

    # 1. attempts

    def _receive_all(self, url: str) -> None:
        """Receive the archive whole, in as many attempts as make progress."""
        failed = 0
        while True:
            before = self._size()
            try:
                self._receive(url)
                return
            except _Broken as broken:
                failed = 1 if self._size() - before > PROGRESS else failed + 1
                if failed == ATTEMPTS:
                    raise
                seconds = min(2.0**failed, 60.0)
                self._tell(f"{url}: {broken}; again in {seconds:.0f} seconds.")
                self._clock.sleep(seconds)

    # 2. one attempt

    def _receive(self, url: str) -> None:
        """One request for what is lacking."""
        import requests
        import urllib3

        expected = self._source.size
        start = self._size()
        if expected is not None and start >= expected:
            if start == expected:
                return
            start = self._restart()
        if start and not (self._known or self._etag):  # nothing could tell whether the pieces fit
            start = self._restart()
        headers = {"Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
            if self._etag:
                headers["If-Range"] = self._etag
        try:
            with requests.Session() as session, self._answer(session, url, headers) as response:
                self._has_answered = True
                if response.status_code == 416:  # there is nothing after `start`
                    if response.headers.get("Content-Range") == f"bytes */{start}":
                        return
                    self._restart()
                    raise _Broken("the server has less than was received already")
                total, start = self._announced(response, start)
                _require_room(self._folder, (total or 0) - start, self._source.archive)
                done = start
                while block := response.raw.read1(BLOCK, decode_content=False):  # whatever has come by now
                    if done == 0:
                        self._require_archive(block)
                    done += len(block)
                    if done > (self._source.max_size if total is None else total):
                        self._restart()
                        raise _Refused(f"more than the {_at_most(self._source)} that were expected")
                    self._write(block)
                    self._progress(done, total)
        except (requests.RequestException, urllib3.exceptions.HTTPError, UnicodeError) as error:
            raise self._failure(error) from None
        if total is not None and done < total:
            raise _Broken(f"the connection ended after {done:,} of {total:,} bytes")
        if not done:
            raise _Refused("an empty file")

    def _failure(self, error: Exception) -> Exception:
        """What went wrong; not in the error's own words, which may hold the address of a proxy with its password."""
        import requests
        import urllib3

        kind = type(error).__name__
        reason = getattr(error.args[0] if error.args else None, "reason", None)  # of requests' ConnectionError
        if isinstance(error, (requests.exceptions.InvalidURL, urllib3.exceptions.LocationValueError, UnicodeError)):
            return _Refused(f"the address, or that of a proxy, is none ({kind})")
        was_refused = isinstance(reason, urllib3.exceptions.NewConnectionError)
        is_unreachable = was_refused or isinstance(
            error, (requests.ConnectTimeout, requests.exceptions.ProxyError, requests.exceptions.SSLError)
        )
        if is_unreachable and not self._has_answered:  # one that answered before may do it again
            return _Unreachable(f"no connection could be made ({type(reason or error).__name__})")
        if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError)):
            return _Broken("nothing came for too long")
        return _Broken(f"the connection failed or broke ({kind})")

    @contextmanager
    def _answer(self, session: Any, url: str, headers: dict[str, str]) -> Iterator[Any]:
        """The response to a request, redirected at most to hosts that the manifest names, or over TLS to any host
        where a SHA-256 tells what comes from there."""
        seconds = (self._clock.connect_seconds, self._clock.stall_seconds)
        session.get_redirect_target = lambda _: None  # else requests looks at it too, and breaks where it is no address
        for _ in range(MAX_REDIRECTS + 1):
            with session.get(url, headers=headers, stream=True, timeout=seconds, allow_redirects=False) as response:
                if response.status_code not in (301, 302, 303, 307, 308):
                    self._check_status(response.status_code)
                    yield response
                    return
                url = self._next_hop(url, response.headers.get("Location", ""))
        raise _Refused(f"more than {MAX_REDIRECTS} redirections")

    def _next_hop(self, url: str, location: str) -> str:
        try:
            here, there = urlsplit(url), urlsplit(urljoin(url, location))
            host, _ = there.hostname or "", there.port
        except ValueError:  # "http://[::1/", "http://x:99999/"
            raise _Refused(f"redirected to {location[:200]!r}, which is no address") from None
        is_named = any(
            host == one or (one.startswith(".") and host.endswith(one))
            for one in (here.hostname, *self._source.hosts)
            if one
        )
        is_known = self._source.is_pinned and there.scheme == "https" and host
        if not is_known and (not is_named or there.scheme not in ("https", here.scheme)):
            raise _Refused(
                f"redirected to {there.scheme}://{host}, expected {here.scheme}://{here.hostname}"
                f"{''.join(f' or {one}' for one in self._source.hosts)}"
            )
        return there.geturl()

    def _check_status(self, status: int) -> None:
        if status in (200, 206) or (status == 416 and self._size()):
            return
        if status in (408, 425, 429) or status >= 500:
            raise _Broken(f"the server answered {status}")
        raise _Refused(f"the server answered {status}")

    def _announced(self, response: Any, start: int) -> tuple[int | None, int]:
        """(bytes of the whole archive if the server says, byte at which the answer begins)."""
        if "html" in response.headers.get("Content-Type", "").lower():
            raise _Refused("a web page instead of an archive")
        length = response.headers.get("Content-Length", "")
        n_bytes = int(length) if length.isdecimal() else None
        etag = response.headers.get("ETag", "")
        if response.status_code == 206:
            first, _, whole = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
            total = int(whole) if whole.isdecimal() else None
            is_same = not self._etag or not etag or etag == self._etag
            if not first.startswith(f"{start}-") or not is_same:
                self._restart()
                raise _Broken("the server went on with something else")
            self._is_patched = True
        else:
            total = n_bytes
            if start:
                start = self._restart()  # the server knows no ranges, or its file has changed
        self._etag = etag if etag and not etag.startswith("W/") else None
        expected = self._source.size
        if total is not None and (total != expected if expected is not None else total > self._source.max_size):
            raise _Refused(f"{total:,} bytes, expected {_at_most(self._source)}")
        return total if total is not None else expected, start

    def _require_archive(self, head: bytes) -> None:
        """Refuse at its first bytes what is no archive."""
        if head.lstrip()[:1] == b"<":
            raise _Refused("a web page instead of an archive")
        magic = MAGIC.get(Path(self._source.archive).suffix, b"")
        if not head.startswith(magic):
            raise _Refused(f"it begins with {head[:4].hex(' ')}, expected {magic.hex(' ')}")

    def _progress(self, done: int, total: int | None) -> None:
        now = self._clock.now()
        if now - self._told >= TELL_SECONDS:
            self._told = now
            share = f" of {total:,} bytes ({done / total:.0%})" if total else " bytes"
            self._tell(f"{self._source.archive}: {done:,}{share}")

    # 3. the part

    def _open(self, *, goes_on: bool) -> None:
        """A new file of our own, which goes on with the longest part that was left."""
        self.__exit__()
        prefix = f"{self._source.archive}."
        left = sorted(self._folder.glob(f"{glob.escape(prefix)}*.part"), key=_size_of) if goes_on else []
        with atomic.named(self._folder / self._source.archive):
            self._file = tempfile.NamedTemporaryFile(  # noqa: SIM115  it is to stay when the transfer breaks
                dir=self._folder, prefix=prefix, suffix=".part", delete=False
            )
        self._etag, self._is_patched = None, False
        for part in reversed(left):
            with suppress(FileNotFoundError):
                if not self._is_patched and _size_of(part):
                    with open(part, "rb") as file:
                        shutil.copyfileobj(file, self._file, BLOCK)
                    self._is_patched = True
                part.unlink()

    def _closed(self) -> Path:
        """The part, on the disk."""
        assert self._file is not None
        with atomic.named(self._folder / self._source.archive):
            self._file.flush()
            os.fsync(self._file.fileno())
        self._file.close()
        part, self._file = Path(self._file.name), None
        return part

    def _size(self) -> int:
        assert self._file is not None
        self._file.flush()
        return os.fstat(self._file.fileno()).st_size

    def _restart(self) -> int:
        assert self._file is not None
        self._file.seek(0)
        self._file.truncate()
        self._etag, self._is_patched = None, False
        return 0

    def _write(self, block: bytes) -> None:
        assert self._file is not None
        with atomic.named(self._folder / self._source.archive, len(block)):
            self._file.write(block)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
