"""What the tests' web servers share: a free port of this machine, a thread, an end that leaves nothing behind."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


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
