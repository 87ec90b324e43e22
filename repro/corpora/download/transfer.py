"""Downloads one archive into a `.part` file, which gets its name when it is complete and its hash is right.

A broken transfer is tried again, from where it stopped if a hash can tell whether the parts fit. If an address refuses
(an error page, another length, another host) or cannot be reached, the next one is tried. A file with a wrong hash is
never tried again: it is set aside as `.refused`. A server that sends nothing for a minute counts as broken.
"""

import errno
import functools
import hashlib
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from repro.corpora.download.sources import Source
from repro.storage import atomic
from repro.storage.lock import WORK, locked

if TYPE_CHECKING:
    import requests

BLOCK = 1 << 17
ATTEMPTS = 6  # at one address, in a row, each with no more progress in bytes than:
PROGRESS = 1 << 20
MAX_REDIRECTS = 5
TELL_SECONDS = 10.0
MAGIC = {".tgz": b"\x1f\x8b", ".gz": b"\x1f\x8b"}
Announce = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class Clock:
    """How much time a server and another process get."""

    sleep: Callable[[float], object] = time.sleep
    connect_seconds: float = 5.0  # to each address of a host; without a network all mirrors together take some seconds
    stall_seconds: float = 60.0  # in which nothing comes, before the connection counts as broken
    wait_seconds: float = WORK  # for another process that is receiving the archive


CLOCK = Clock()


def at_most(source: Source) -> str:
    """The size of an archive, or its bound, in words."""
    return f"{source.size:,} bytes" if source.size is not None else f"at most {source.max_size:,} bytes"


def require_room(folder: Path, n_bytes: int, what: str) -> None:
    """Raise `DiskError` before the work begins if the disk has too little room for it."""
    free = shutil.disk_usage(folder).free
    if n_bytes > free:
        raise atomic.DiskError(
            errno.ENOSPC,
            f"{folder} has {free:,} bytes free, {what} needs {n_bytes:,}. Make room and start again; what was "
            "received is kept.",
        )


def digest_of(path: Path, algorithm: str) -> str:
    """The hash of a file, computed once per process unless the file changes."""
    status = path.stat()
    return _digest_of_file(path, algorithm, status.st_size, status.st_mtime_ns)


@functools.cache
def _digest_of_file(path: Path, algorithm: str, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


class RefusedTransfer(Exception):
    """This address does not have the archive; the message says why."""


class BrokenTransfer(Exception):
    """The transfer broke; another try may succeed."""


class Unreachable(Exception):
    """No connection could be made: trying again at once would only take time."""


class WrongHash(Exception):
    """A complete file came, and it is not the archive."""


FAILURES = (RefusedTransfer, BrokenTransfer, Unreachable, WrongHash)


def download(
    source: Source, urls: Sequence[str], folder: Path, known: Mapping[str, str], tell: Announce, clock: Clock = CLOCK
) -> dict[str, Exception]:
    """Download the archive from the first address that gives it. Returns {}, or if all fail the error of each.

    `known` has the hashes that the archive must have, by algorithm.
    """
    failures: dict[str, Exception] = {}
    path = folder / f"{source.archive}.part"
    try:
        for url in urls:
            try:
                with closing(atomic.Appended(path)) as part:
                    _Transfer(source, url, part, known, tell, clock).receive()
                return {}
            except FAILURES as failure:
                failures[url] = failure
                tell(f"{url}: {failure}")
    finally:
        if path.exists() and not (known and path.stat().st_size):  # without a hash it could not be resumed
            path.unlink()
    return failures


@contextmanager
def received_by_one(source: Source, folder: Path, tell: Announce, clock: Clock = CLOCK) -> Iterator[None]:
    """Be the only process that receives the archive. TimeoutError if another one takes too long."""
    lock = folder / f".{source.archive}.lock"
    atomic.Appended(lock).close()
    with locked(
        lock, clock.wait_seconds, lambda: tell(f"Another process downloads {source.archive}; waiting for it.")
    ) as mine:
        if not mine:
            raise TimeoutError(
                f"Another process downloads {source.archive} and has held {lock} for {clock.wait_seconds:g} seconds. "
                "Wait until it is done, or end it. Then type the same command again."
            )
        yield


class _Transfer:
    """The transfer of one archive from one address into its `.part` file."""

    def __init__(
        self, source: Source, url: str, part: atomic.Appended, known: Mapping[str, str], tell: Announce, clock: Clock
    ) -> None:
        self._source, self._url, self._part, self._known = source, url, part, known
        self._tell, self._clock, self._told = tell, clock, -math.inf
        part.cut(part.path.stat().st_size if known else 0)
        self._is_patched = part.end > 0  # whether it was received in several pieces
        self._has_answered = False

    def receive(self) -> None:
        """Receive the whole archive, check its hashes and give it its name."""
        part, folder, name = self._part.path, self._part.path.parent, self._source.archive
        while True:
            self._receive_all()
            self._part.push()
            wrong = [
                f"expected {algorithm} {digest}, got {found}"
                for algorithm, digest in self._known.items()
                if (found := digest_of(part, algorithm)) != digest
            ]
            if not wrong:
                part.replace(folder / name)
                return
            if not self._is_patched:
                part.replace(folder / f"{name}.refused")
                raise WrongHash(f"{'; '.join(wrong)}; set aside as {name}.refused and not used")
            self._tell(f"{name}: the parts do not fit together; from the start.")
            self._restart()

    def _receive_all(self) -> None:
        """Receive what is lacking; try again while attempts make progress, `ATTEMPTS` times in a row if they do not."""
        failed = 0
        while True:
            before = self._part.end
            try:
                self._attempt()
                return
            except BrokenTransfer as broken:
                failed = 1 if self._part.end - before > PROGRESS else failed + 1
                if failed == ATTEMPTS:
                    raise
                seconds = min(2.0**failed, 60.0)
                self._tell(f"{self._url}: {broken}; again in {seconds:.0f} seconds.")
                self._clock.sleep(seconds)

    def _attempt(self) -> None:
        """Make one request for what is lacking, and write what comes."""
        size = self._source.size
        if not self._known or (size is not None and self._part.end > size):
            self._restart()
        if self._part.end == size:
            return
        import requests  # here, not above: it takes a tenth of a second, which --help should not cost
        import urllib3

        headers = {"Accept-Encoding": "identity"}
        if self._part.end:
            headers["Range"] = f"bytes={self._part.end}-"
        try:
            with requests.Session() as session, closing(self._answer(session, headers)) as answer:
                self._has_answered = True
                if answer.status_code == 416 and self._part.end:  # it may be complete: the hash decides
                    return
                total = self._begun(answer.status_code, answer.headers)
                while self._part.end != total:  # what the server sends after that does not matter
                    block = answer.raw.read1(BLOCK, decode_content=False)  # returns what has come so far
                    if not block:
                        break
                    self._take(block, total)
        except (requests.RequestException, urllib3.exceptions.HTTPError, UnicodeError) as error:
            raise _failure(error, self._has_answered) from None
        if total is not None and self._part.end < total:
            raise BrokenTransfer(f"the connection ended after {self._part.end:,} of {total:,} bytes")
        if not self._part.end:
            raise RefusedTransfer("an empty file")

    def _answer(self, session: "requests.Session", headers: Mapping[str, str]) -> "requests.Response":
        """The answer with its body unread; redirections are followed where `next_hop` allows."""
        # else requests reads the address of a redirection as well, and fails if it is not valid
        vars(session)["get_redirect_target"] = lambda _: None
        seconds = (self._clock.connect_seconds, self._clock.stall_seconds)
        url = self._url
        for _ in range(MAX_REDIRECTS + 1):
            answer = session.get(url, headers=headers, stream=True, timeout=seconds, allow_redirects=False)
            if answer.status_code not in (301, 302, 303, 307, 308):
                return answer
            answer.close()
            url = next_hop(self._source, url, answer.headers.get("Location", ""))
        raise RefusedTransfer(f"more than {MAX_REDIRECTS} redirections")

    def _begun(self, status: int, headers: Mapping[str, str]) -> int | None:
        """The size of the archive, None if unknown; the part is cut to where the answer continues."""
        if status not in (200, 206):
            kind = BrokenTransfer if status in (408, 425, 429) or status >= 500 else RefusedTransfer
            raise kind(f"the server answered {status}")
        if "html" in headers.get("Content-Type", "").lower():
            raise RefusedTransfer("a web page instead of an archive")
        length, goes_on = headers.get("Content-Length", ""), status == 206
        if goes_on:
            first, _, length = headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
            if not first.startswith(f"{self._part.end}-"):
                self._restart()
                raise BrokenTransfer("the server went on with something else")
        total, expected = int(length) if length.isdecimal() else None, self._source.size
        if total is not None and (total != expected if expected is not None else total > self._source.max_size):
            raise RefusedTransfer(f"{total:,} bytes, expected {at_most(self._source)}")
        if not goes_on:
            self._restart()  # the server does not support ranges
        self._is_patched |= goes_on
        total = expected if total is None else total
        require_room(self._part.path.parent, (total or 0) - self._part.end, self._source.archive)
        return total

    def _take(self, block: bytes, total: int | None) -> None:
        """Write a block. Raises RefusedTransfer if it begins as no archive does, or is too much."""
        magic = MAGIC.get(Path(self._source.archive).suffix, b"")
        if not self._part.end and block.lstrip()[:1] == b"<":
            raise RefusedTransfer("a web page instead of an archive")
        if not self._part.end and not block.startswith(magic[: len(block)]):
            raise RefusedTransfer(f"it begins with {block[:4].hex(' ')}, expected {magic.hex(' ')}")
        if self._part.end + len(block) > (self._source.max_size if total is None else total):
            self._restart()
            raise RefusedTransfer(f"it sends more than expected: {at_most(self._source)}")
        self._part.append(block)
        if (now := time.monotonic()) - self._told >= TELL_SECONDS:
            self._told, done = now, self._part.end
            share = f" of {total:,} bytes ({done / total:.0%})" if total else " bytes"
            self._tell(f"{self._source.archive}: {done:,}{share}")

    def _restart(self) -> None:
        self._part.cut(0)
        self._is_patched = False


def next_hop(source: Source, url: str, location: str) -> str:
    """The address to which a redirection leads. RefusedTransfer unless the source names its host, or the file has a
    SHA-256 and comes over TLS."""
    try:
        here, there = urlsplit(url), urlsplit(urljoin(url, location))
        host, _ = there.hostname or "", there.port
    except ValueError:  # "http://[::1/", "http://x:99999/"
        raise RefusedTransfer(f"redirected to {location[:200]!r}, which is not an address") from None
    is_named = host in (here.hostname, *source.hosts)
    is_known = source.is_pinned and there.scheme == "https" and host
    if not is_known and (not is_named or there.scheme not in ("https", here.scheme)):
        raise RefusedTransfer(
            f"redirected to {there.scheme}://{host}, expected {here.scheme}://{here.hostname}"
            f"{''.join(f' or {one}' for one in source.hosts)}"
        )
    return there.geturl()


def _failure(error: Exception, has_answered: bool) -> Exception:
    """The failure to raise; without the error's own message, which may hold a proxy's address and password."""
    import requests
    import urllib3

    kind = type(getattr(error.args[0] if error.args else None, "reason", error)).__name__
    if isinstance(error, (requests.exceptions.InvalidURL, urllib3.exceptions.LocationValueError, UnicodeError)):
        return RefusedTransfer(f"this address, or that of the proxy, is not valid ({kind})")
    if isinstance(error, requests.ConnectionError) and not has_answered:  # it may answer again
        return Unreachable(f"no connection could be made ({kind})")
    return BrokenTransfer(f"the connection failed or broke ({kind})")
