"""Web servers on this machine for tests of downloads: they serve bytes, well or badly, of an archive for instance."""

import gzip
import hashlib
import io
import random
import tarfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from repro.corpora.sources import Member, Source

Answer = Callable[["Handler", bytes], None]


class LoopbackServer(ThreadingHTTPServer):
    """`with LoopbackServer(Handler) as server`: it serves on 127.0.0.1; `closing` is set when it is to end."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.closing = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client went away, as some tests make it

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    """Answers with the next fault of the path, and when there is none left, with the file."""

    server: "FileServer"

    def do_GET(self) -> None:
        self.server.log.append((self.path, self.headers.get("Range")))
        faults = self.server.faults.get(self.path, [])
        content = self.server.files.get(self.path)
        if faults:
            (faults.pop(0) if len(faults) > 1 or not self.server.lasting else faults[0])(self, content or b"")
        elif content is None:
            self.send_error(404)
        else:
            good(self, content)

    def log_message(self, *_: Any) -> None:
        pass

    def head(self, status: int, **headers: str | int) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def part(self, content: bytes) -> bytes:
        """Send the head for what is asked, and give the bytes that belong after it."""
        asked = self.headers.get("Range")
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if asked and start >= len(content):
            self.head(416, Content_Range=f"bytes */{len(content)}")
            return b""
        named: dict[str, str | int] = {"Content_Length": len(content) - start, "Content_Type": "application/x-gzip"}
        if asked:
            named["Content_Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.head(206 if asked else 200, **named)
        return content[start:]


class FileServer(LoopbackServer):
    """`with FileServer() as server`: put bytes into `files`, and faults, one for each request, into `faults`."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Answer]] = {}
        self.lasting = False  # whether the last fault of a path stays
        self.log: list[tuple[str, str | None]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


def good(handler: Handler, content: bytes) -> None:
    handler.wfile.write(handler.part(content))


def truncated(handler: Handler, content: bytes) -> None:
    """Promise all, send half of what is asked, close."""
    rest = handler.part(content)
    handler.wfile.write(rest[: len(rest) // 2])


def stall(handler: Handler, content: bytes) -> None:
    """Send half, and then nothing."""
    truncated(handler, content)
    handler.wfile.flush()
    handler.server.closing.wait(30)


def ignores_range(handler: Handler, content: bytes) -> None:
    handler.head(200, Content_Length=len(content))
    handler.wfile.write(content)


def called_encoded(handler: Handler, content: bytes) -> None:
    """Some servers say of a .tgz that it is a tar, sent gzip'd."""
    handler.head(200, Content_Length=len(content), Content_Type="application/x-tar", Content_Encoding="gzip")
    handler.wfile.write(content)


def half_without_length(handler: Handler, content: bytes) -> None:
    handler.head(200)
    handler.wfile.write(content[: len(content) // 2])


def without_length(handler: Handler, content: bytes) -> None:
    handler.head(200)
    handler.wfile.write(content)


def web_page(handler: Handler, content: bytes) -> None:
    handler.head(200, Content_Type="text/html; charset=utf-8")
    handler.wfile.write(b"<html>Log in first.</html>")


def status(code: int) -> Answer:
    return lambda handler, content: handler.send_error(code)


def redirect(url: str) -> Answer:
    return lambda handler, content: handler.head(302, Location=url, Content_Length=0)


def other(replaced: bytes) -> Answer:
    """Another content, in good order."""
    return lambda handler, content: good(handler, replaced)


N_LINES = 4_000
PATH, MIRROR = "/wmt13/x.tgz", "/mirror/x.tgz"


def noise(seed: int) -> list[str]:
    """Lines that gzip cannot shrink much."""
    generator = random.Random(seed)
    return [f"{generator.getrandbits(200):x}" + "x" * generator.randrange(40) for _ in range(N_LINES)]


def tar_of(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def lines(texts: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in texts).encode()


EN = noise(1)
DE = [f"{line[::-1]} ja" for line in EN]
ARCHIVE = gzip.compress(tar_of({"training/x.de-en.en": lines(EN), "training/x.de-en.de": lines(DE)}), 1, mtime=0)
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
MD5 = hashlib.md5(ARCHIVE).hexdigest()
OTHER = ARCHIVE[:-1_000] + bytes([ARCHIVE[-1_000] ^ 1]) + ARCHIVE[-999:]  # one bit


def source_at(*urls: str, **changed: Any) -> Source:
    sides = tuple(Member(language=one, name=f"training/x.de-en.{one}") for one in ("en", "de"))
    made = Source(
        name="x_v7",
        archive="x.tgz",
        urls=urls,
        size=len(ARCHIVE),
        sha256=SHA256,
        licence="none",
        members={"en-de": (sides[0], sides[1])},
        n_pairs={"en-de": N_LINES},
    )
    return replace(made, **changed)
