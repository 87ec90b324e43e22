"""Downloads one archive into a `.part` file, which gets its name when it is complete and its hash is right.

A broken transfer is tried again, from where it stopped if a hash can tell whether the parts fit. If an address does not
have the archive, or cannot be reached, the next one is tried.
"""

import functools
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import requests
import urllib3

from repro.corpora.download.sources import Source
from repro.storage import atomic

BLOCK = 1 << 17
ATTEMPTS = 6  # at one address, in a row, each with no more progress in bytes than:
PROGRESS = 1 << 20
TIMEOUT = (5.0, 60.0)  # seconds to connect, and in which nothing comes
TELL_SECONDS = 10.0
BUSY = (408, 425, 429)  # answers that ask to try again later, as those from 500 on do
Announce = Callable[[str], object]


class Refused(Exception):
    """This address does not have the archive; the message says why."""


class Broken(Exception):
    """The transfer broke; another try may succeed."""


def at_most(source: Source) -> str:
    """The size of an archive, or its bound, in words."""
    return f"{source.size:,} bytes" if source.size is not None else f"at most {source.max_size:,} bytes"


def wrong_hash(path: Path, known: Mapping[str, str]) -> str:
    """What is wrong with the hashes of a file; "" if it has those that are `known`, by algorithm."""
    for algorithm, expected in known.items():
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, functools.partial(hashlib.new, algorithm, usedforsecurity=False))
        if (found := digest.hexdigest()) != expected:
            return f"expected {algorithm} {expected}, got {found}"
    return ""


def download(
    source: Source, urls: Sequence[str], folder: Path, known: Mapping[str, str], tell: Announce
) -> dict[str, str]:
    """Download the archive from the first address that gives it. Returns {}, or if all fail what each of them did."""
    failures: dict[str, str] = {}
    path = folder / f"{source.archive}.part"
    with closing(atomic.Appended(path)) as part:
        part.cut(path.stat().st_size)
        for url in urls:
            try:
                _receive(source, url, part, known, tell)
            except (Refused, Broken) as failure:
                failures[url] = f"{failure}"
                tell(f"{url}: {failure}")
                continue
            path.replace(folder / source.archive)
            return {}
    if not (known and path.stat().st_size):  # it could not be resumed
        path.unlink()
    return failures


def _receive(source: Source, url: str, part: atomic.Appended, known: Mapping[str, str], tell: Announce) -> None:
    """Receive the whole archive from one address; try again while attempts make progress."""
    failed = 0
    while True:
        if not known or part.end > source.size_at_most:
            part.cut(0)
        before = part.end
        try:
            if part.end != source.size:
                _attempt(source, url, part, tell)
            part.push()
            if wrong := wrong_hash(part.path, known):
                part.cut(0)
                raise Broken(f"the parts do not fit together ({wrong})") if before else Refused(wrong)
            return
        except Broken as broken:
            failed = 1 if part.end - before > PROGRESS else failed + 1
            if failed == ATTEMPTS:
                raise
            tell(f"{url}: {broken}; again in {2**failed} seconds.")
            time.sleep(2**failed)


def _attempt(source: Source, url: str, part: atomic.Appended, tell: Announce) -> None:
    """Make one request for what is lacking, and write what comes.

    Messages name the kind of an error alone: its text may hold a proxy's address and password.
    """
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={part.end}-"} if part.end else {})
    try:
        answer = requests.get(url, headers=headers, stream=True, timeout=TIMEOUT)
    except (requests.RequestException, ValueError) as error:  # the second: it leads to what is no address
        raise Refused(f"no connection could be made ({type(error).__name__})") from None
    try:
        with answer:
            _take(source, answer, part, tell)
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise Broken(f"the connection broke ({type(error).__name__})") from None


def _take(source: Source, answer: requests.Response, part: atomic.Appended, tell: Announce) -> None:
    """Write the body of an answer to the part, which is cut to where the answer begins."""
    schemes = [urlsplit(hop.url).scheme for hop in (*answer.history, answer)]
    if not source.is_pinned and schemes[0] == "https" and {*schemes} != {"https"}:
        raise Refused("it leads to an address without TLS, and there is no published SHA-256")
    if (status := answer.status_code) == 416 and part.end:  # it may be complete: the hash decides
        return
    if status not in (200, 206):
        raise (Broken if status in BUSY or status >= 500 else Refused)(f"the server answered {status}")
    if "html" in answer.headers.get("Content-Type", "").lower():
        raise Refused("a web page instead of an archive")
    goes_on = answer.headers.get("Content-Range", "").startswith(f"bytes {part.end}-")
    if status == 200 or not goes_on:
        part.cut(0)
        if status == 206:
            raise Broken("the server went on with something else")
    length = answer.headers.get("Content-Length", "")
    total = part.end + int(length) if length.isdecimal() else source.size
    if total is not None and (total > source.size_at_most or source.size not in (None, total)):
        raise Refused(f"{total:,} bytes, expected {at_most(source)}")
    told = time.monotonic()
    while block := answer.raw.read1(BLOCK, decode_content=False):  # returns what has come so far
        if part.end + len(block) > source.size_at_most:
            part.cut(0)
            raise Refused(f"it sends more than expected: {at_most(source)}")
        part.append(block)
        if (now := time.monotonic()) - told >= TELL_SECONDS:
            told = now
            tell(f"{source.archive}: {part.end:,} of {at_most(source)}")
    if total is not None and part.end < total:
        raise Broken(f"the connection ended after {part.end:,} of {total:,} bytes")
