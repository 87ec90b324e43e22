"""One archive over the network: into a `.part` file, gone on with after a break, and given its name whole.

What breaks on the way is tried again. What was refused (an error page, another length, another host) and who cannot be
reached at all is left to the next mirror. A wrong hash is never tried again: the file is set aside as `.refused`.
"""

import errno
import functools
import glob
import hashlib
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urljoin, urlsplit

from repro.data.download.sources import Source
from repro.storage import atomic

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


def at_most(source: Source) -> str:
    """The size of an archive, or its bound, in words."""
    return f"{source.size:,} bytes" if source.size is not None else f"at most {source.max_size:,} bytes"


def require_room(folder: Path, n_bytes: int, what: str) -> None:
    """Refuse what the disk has no room for, before it is begun."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise atomic.DiskError(
            errno.ENOSPC,
            f"{folder} has {free:,} bytes free, {what} needs {n_bytes:,}. Make room and start again; what was "
            "received is kept.",
        )


def digest_of(path: Path, algorithm: str) -> str:
    """The hash of a file as it is now, which is read once per process."""
    status = path.stat()
    return _digest_of_file(path, algorithm, status.st_size, status.st_mtime_ns)


@functools.cache
def _digest_of_file(path: Path, algorithm: str, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


class RefusedTransfer(Exception):
    """This mirror does not have the archive; the words say why."""


class BrokenTransfer(Exception):
    """The transfer broke; it may succeed when it is tried again."""


class Unreachable(Exception):
    """No connection could be made: to ask again at once would only take time."""


class WrongHash(Exception):
    """Something came whole, and it is not the archive."""


class Transfer:
    """A downloader for pooch that goes on where it stopped.

    It writes into a file of its own, so no two processes ever write into one. What earlier ones left (`.part`) is
    copied into it, if there is a hash to tell whether the parts belong together.
    """

    def __init__(
        self, source: Source, folder: Path, known: dict[str, str], tell: Callable[[str], object], clock: Clock
    ) -> None:
        self._source, self._folder, self._known, self._tell, self._clock = source, folder, known, tell, clock
        self._file: IO[bytes] | None = None
        self._is_patched = False  # whether the file is made of parts of several transfers
        self._has_answered = False  # the mirror that is asked
        self._etag: str | None = None
        self._told = -math.inf

    def __enter__(self) -> "Transfer":
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
                    if (found := digest_of(part, algorithm)) != digest
                ]
                part.replace(self._aside if wrong else output_file)
            except FileNotFoundError:  # where there are no locks, another process took it for one that was left
                continue
            if not wrong:
                return
            if is_again or not self._is_patched:
                raise WrongHash(f"{'; '.join(wrong)}; set aside as {self._aside.name} and not used")
            self._tell(f"{self._source.archive}: the parts do not fit together; from the start.")
        raise BrokenTransfer("another process took the file away")

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
            except BrokenTransfer as broken:
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
        if start and not (self._known or self._etag):  # nothing could tell whether the parts fit
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
                    raise BrokenTransfer("the server has less than was received already")
                total, start = self._announced(response, start)
                require_room(self._folder, (total or 0) - start, self._source.archive)
                done = start
                while block := response.raw.read1(BLOCK, decode_content=False):  # whatever has come by now
                    if done == 0:
                        self._require_archive(block)
                    done += len(block)
                    if done > (self._source.max_size if total is None else total):
                        self._restart()
                        raise RefusedTransfer(f"more than the {at_most(self._source)} that were expected")
                    self._write(block)
                    self._progress(done, total)
        except (requests.RequestException, urllib3.exceptions.HTTPError, UnicodeError) as error:
            raise self._failure(error) from None
        if total is not None and done < total:
            raise BrokenTransfer(f"the connection ended after {done:,} of {total:,} bytes")
        if not done:
            raise RefusedTransfer("an empty file")

    def _failure(self, error: Exception) -> Exception:
        """What went wrong; not in the error's own words, which may hold the address of a proxy with its password."""
        import requests
        import urllib3

        kind = type(error).__name__
        reason = getattr(error.args[0] if error.args else None, "reason", None)  # of requests' ConnectionError
        if isinstance(error, (requests.exceptions.InvalidURL, urllib3.exceptions.LocationValueError, UnicodeError)):
            return RefusedTransfer(f"the address, or that of a proxy, is none ({kind})")
        was_refused = isinstance(reason, urllib3.exceptions.NewConnectionError)
        is_unreachable = was_refused or isinstance(
            error, (requests.ConnectTimeout, requests.exceptions.ProxyError, requests.exceptions.SSLError)
        )
        if is_unreachable and not self._has_answered:  # one that answered before may do it again
            return Unreachable(f"no connection could be made ({type(reason or error).__name__})")
        if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError)):
            return BrokenTransfer("nothing came for too long")
        return BrokenTransfer(f"the connection failed or broke ({kind})")

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
        raise RefusedTransfer(f"more than {MAX_REDIRECTS} redirections")

    def _next_hop(self, url: str, location: str) -> str:
        try:
            here, there = urlsplit(url), urlsplit(urljoin(url, location))
            host, _ = there.hostname or "", there.port
        except ValueError:  # "http://[::1/", "http://x:99999/"
            raise RefusedTransfer(f"redirected to {location[:200]!r}, which is no address") from None
        is_named = any(
            host == one or (one.startswith(".") and host.endswith(one))
            for one in (here.hostname, *self._source.hosts)
            if one
        )
        is_known = self._source.is_pinned and there.scheme == "https" and host
        if not is_known and (not is_named or there.scheme not in ("https", here.scheme)):
            raise RefusedTransfer(
                f"redirected to {there.scheme}://{host}, expected {here.scheme}://{here.hostname}"
                f"{''.join(f' or {one}' for one in self._source.hosts)}"
            )
        return there.geturl()

    def _check_status(self, status: int) -> None:
        if status in (200, 206) or (status == 416 and self._size()):
            return
        if status in (408, 425, 429) or status >= 500:
            raise BrokenTransfer(f"the server answered {status}")
        raise RefusedTransfer(f"the server answered {status}")

    def _announced(self, response: Any, start: int) -> tuple[int | None, int]:
        """(bytes of the whole archive if the server says, byte at which the answer begins)."""
        if "html" in response.headers.get("Content-Type", "").lower():
            raise RefusedTransfer("a web page instead of an archive")
        length = response.headers.get("Content-Length", "")
        n_bytes = int(length) if length.isdecimal() else None
        etag = response.headers.get("ETag", "")
        if response.status_code == 206:
            first, _, whole = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
            total = int(whole) if whole.isdecimal() else None
            is_same = not self._etag or not etag or etag == self._etag
            if not first.startswith(f"{start}-") or not is_same:
                self._restart()
                raise BrokenTransfer("the server went on with something else")
            self._is_patched = True
        else:
            total = n_bytes
            if start:
                start = self._restart()  # the server knows no ranges, or its file has changed
        self._etag = etag if etag and not etag.startswith("W/") else None
        expected = self._source.size
        if total is not None and (total != expected if expected is not None else total > self._source.max_size):
            raise RefusedTransfer(f"{total:,} bytes, expected {at_most(self._source)}")
        return total if total is not None else expected, start

    def _require_archive(self, head: bytes) -> None:
        """Refuse at its first bytes what is no archive."""
        if head.lstrip()[:1] == b"<":
            raise RefusedTransfer("a web page instead of an archive")
        magic = MAGIC.get(Path(self._source.archive).suffix, b"")
        if not head.startswith(magic):
            raise RefusedTransfer(f"it begins with {head[:4].hex(' ')}, expected {magic.hex(' ')}")

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
