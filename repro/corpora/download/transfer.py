"""One archive over the network: into a `.part` file, and given its name when it is whole and known by its hash.

What breaks on the way is tried again, from where it stopped if a hash tells whether the parts fit. What was refused (an
error page, another length, another host) and who cannot be reached is left to the next address. A wrong hash is never
tried again: the file is set aside as `.refused`. Who sends nothing for a minute is left.
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
ATTEMPTS = 6  # at one address, in a row, none with more progress than this:
PROGRESS = 1 << 20
TELL_SECONDS = 10.0
MAGIC = {".tgz": b"\x1f\x8b", ".gz": b"\x1f\x8b"}
Announce = Callable[[str], object]


@dataclass(frozen=True, kw_only=True)
class Clock:
    """How much time a server and another process get."""

    sleep: Callable[[float], object] = time.sleep
    connect_seconds: float = 5.0  # to each address of a host; without a network all mirrors together take some seconds
    stall_seconds: float = 60.0  # with nothing received
    wait_seconds: float = WORK  # for another process that receives the archive


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
    """This address does not have the archive; the words say why."""


class BrokenTransfer(Exception):
    """The transfer broke; it may succeed when it is tried again."""


class Unreachable(Exception):
    """No connection could be made: to ask again at once would only take time."""


class WrongHash(Exception):
    """Something came whole, and it is not the archive."""


FAILURES = (RefusedTransfer, BrokenTransfer, Unreachable, WrongHash)


def download(
    source: Source, urls: Sequence[str], folder: Path, known: Mapping[str, str], tell: Announce, clock: Clock = CLOCK
) -> dict[str, Exception]:
    """Have the archive from the first address that gives it: {}; else what each of them did.

    `known` are the hashes that it must have, by algorithm.
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
        if path.exists() and not (known and path.stat().st_size):  # without a hash nobody could go on with it
            path.unlink()
    return failures


@contextmanager
def received_by_one(source: Source, folder: Path, tell: Announce, clock: Clock = CLOCK) -> Iterator[None]:
    """Be the only process that receives the archive. TimeoutError where another one holds it for too long."""
    lock = folder / f".{source.archive}.lock"
    atomic.Appended(lock).close()
    with locked(
        lock, clock.wait_seconds, lambda: tell(f"Another process receives {source.archive}; waiting for it.")
    ) as mine:
        if not mine:
            raise TimeoutError(
                f"Another process receives {source.archive} and has held {lock} for {clock.wait_seconds:g} seconds. "
                "Wait until it is done, or end it, and type the same command again: it goes on."
            )
        yield


class _Transfer:
    """One archive on its way from one address into its part."""

    def __init__(
        self, source: Source, url: str, part: atomic.Appended, known: Mapping[str, str], tell: Announce, clock: Clock
    ) -> None:
        self._source, self._url, self._part, self._known = source, url, part, known
        self._tell, self._clock, self._told = tell, clock, -math.inf
        part.cut(part.path.stat().st_size if known else 0)
        self._is_patched = part.end > 0  # whether it was not received in one go
        self._has_answered = False

    def receive(self) -> None:
        """Have the archive whole, under its name."""
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
        """Receive what is lacking, in as many attempts as make progress."""
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
        """One request for what is lacking."""
        import requests  # here, not above: it takes a tenth of a second, which --help need not wait
        import urllib3

        size = self._source.size
        if not self._known or (size is not None and self._part.end > size):
            self._restart()
        if self._part.end == size:
            return
        try:
            with requests.Session() as session, closing(self._answer(session)) as answer:
                self._has_answered = True
                if answer.status_code == 416 and self._part.end:  # it may be whole: its hash tells
                    return
                total = self._begun(answer.status_code, answer.headers)
                while self._part.end != total:  # what the server says after that is no matter
                    block = answer.raw.read1(BLOCK, decode_content=False)  # whatever has come by now
                    if not block:
                        break
                    self._take(block, total)
        except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
            raise _failure(error, self._has_answered) from None
        if total is not None and self._part.end < total:
            raise BrokenTransfer(f"the connection ended after {self._part.end:,} of {total:,} bytes")
        if not self._part.end:
            raise RefusedTransfer("an empty file")

    def _answer(self, session: "requests.Session") -> "requests.Response":
        """How the answer begins; redirected at most to where `refuse_redirection` allows."""
        headers = {"Accept-Encoding": "identity"}
        if self._part.end:
            headers["Range"] = f"bytes={self._part.end}-"
        seconds = (self._clock.connect_seconds, self._clock.stall_seconds)

        def check(answer: "requests.Response", **_: object) -> None:
            if answer.is_redirect:
                answer.close()
                refuse_redirection(self._source, answer.url, answer.headers["Location"])

        session.max_redirects = 5
        return session.get(self._url, headers=headers, stream=True, timeout=seconds, hooks={"response": check})

    def _begun(self, status: int, headers: Mapping[str, str]) -> int | None:
        """Bytes of the whole archive, if the server says; the part is cut to where the answer goes on."""
        if status not in (200, 206):
            kind = BrokenTransfer if status in (408, 425, 429) or status >= 500 else RefusedTransfer
            raise kind(f"the server answered {status}")
        length = headers.get("Content-Length", "")
        if status == 200:  # also of a server that knows no ranges
            self._restart()
        else:
            first, _, length = headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
            if not first.startswith(f"{self._part.end}-"):
                self._restart()
                raise BrokenTransfer("the server went on with something else")
            self._is_patched = True
        expected = self._source.size
        total = int(length) if length.isdecimal() else expected
        if total is not None and (total != expected if expected is not None else total > self._source.max_size):
            raise RefusedTransfer(f"{total:,} bytes, expected {at_most(self._source)}")
        require_room(self._part.path.parent, (total or 0) - self._part.end, self._source.archive)
        return total

    def _take(self, block: bytes, total: int | None) -> None:
        """Write what came; a page at its beginning, or more than is expected, is refused."""
        magic = MAGIC.get(Path(self._source.archive).suffix, b"")
        if not self._part.end and not block.startswith(magic[: len(block)]):
            what = "a web page" if block.lstrip()[:1] == b"<" else f"it begins with {block[:4].hex(' ')}"
            raise RefusedTransfer(f"{what}, expected an archive that begins with {magic.hex(' ')}")
        if self._part.end + len(block) > (self._source.max_size if total is None else total):
            self._restart()
            raise RefusedTransfer(f"more than the {at_most(self._source)} that were expected")
        self._part.append(block)
        if (now := time.monotonic()) - self._told >= TELL_SECONDS:
            self._told, done = now, self._part.end
            share = f" of {total:,} bytes ({done / total:.0%})" if total else " bytes"
            self._tell(f"{self._source.archive}: {done:,}{share}")

    def _restart(self) -> None:
        self._part.cut(0)
        self._is_patched = False


def refuse_redirection(source: Source, url: str, location: str) -> None:
    """RefusedTransfer unless it leads to a host that the manifest names, or over TLS to any where a SHA-256 tells the
    file from all others."""
    here, there = urlsplit(url), urlsplit(urljoin(url, location))
    is_named = there.hostname in (here.hostname, *source.hosts)
    is_known = source.is_pinned and there.scheme == "https"
    if not is_known and (not is_named or there.scheme not in ("https", here.scheme)):
        raise RefusedTransfer(
            f"redirected to {there.scheme}://{there.hostname}, expected {here.scheme}://{here.hostname}"
            f"{''.join(f' or {one}' for one in source.hosts)}"
        )


def _failure(error: Exception, has_answered: bool) -> Exception:
    """What went wrong; not in the error's own words, which may hold the address of a proxy with its password."""
    import requests

    kind = type(getattr(error.args[0] if error.args else None, "reason", error)).__name__
    if isinstance(error, (ValueError, requests.TooManyRedirects)):
        return RefusedTransfer(f"the address, that of a proxy or one redirected to, is none ({kind})")
    if isinstance(error, requests.ConnectionError) and not has_answered:  # one that answered before may do it again
        return Unreachable(f"no connection could be made ({kind})")
    return BrokenTransfer(f"the connection failed or broke ({kind})")
