"""MLflow's own server on this machine for tests of the mirror: what it answers is real, how may be faulty."""

import os
import socket
import struct
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from file_server import LoopbackServer

from repro.tracking.client import connect, sqlite_path

Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers as the server's `fault` says."""

    server: "TrackingServer"

    def do_GET(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append(self.path.partition("?")[0].rpartition("/")[2])
        self.server.fault(self)

    do_POST = do_PATCH = do_DELETE = do_GET

    def log_message(self, *_: Any) -> None:
        pass

    def real(self) -> tuple[int, bytes]:
        """What MLflow answers; it has done what it was asked to."""
        reply = self.server.mlflow.open(
            self.path, method=self.command, data=self.body, content_type=self.headers.get("Content-Type")
        )
        return reply.status_code, reply.data

    def send(self, status: int, content: bytes, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)


class TrackingServer(LoopbackServer):
    """`with TrackingServer(database) as server`: an MLflow server at `server.uri`; set `fault` to break it."""

    def __init__(self, database: str) -> None:
        super().__init__(Handler)
        connect(database)  # quietens MLflow
        os.environ["_MLFLOW_SERVER_FILE_STORE"] = database  # as MLflow's launcher tells its workers
        os.environ["_MLFLOW_SERVER_ARTIFACT_ROOT"] = str(sqlite_path(database).parent / "mlruns")
        from mlflow.server import app, handlers

        handlers._tracking_store = None  # it keeps the store of the first server of a process
        self.mlflow = app.test_client()
        self.uri = f"http://127.0.0.1:{self.server_port}"
        self.fault: Answer = good
        self.asked: list[str] = []


def good(handler: Handler) -> None:
    handler.send(*handler.real())


def status(code: int) -> Answer:
    return lambda handler: handler.send(code, b'{"error_code": "INTERNAL_ERROR", "message": "sorry"}')


def reply_lost(handler: Handler) -> None:
    """Do what is asked, and tear the connection down."""
    handler.real()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def page(handler: Handler) -> None:
    """An error page that says 200, as a proxy sends it."""
    handler.send(200, b"<!DOCTYPE html><title>Sorry</title>")


def hang(handler: Handler) -> None:
    """Say nothing, and do what was asked when nobody waits for it any more."""
    handler.server.closing.wait(30)


def slow(seconds: float) -> Answer:
    def answer(handler: Handler) -> None:
        handler.server.closing.wait(seconds)
        good(handler)

    return answer
