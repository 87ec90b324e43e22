"""A run folder to put into it, and trackers that are dead."""

import socket
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tracked_runs import eventful


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A run folder with curves, a crash, a NaN and infinities."""
    return eventful(tmp_path / "runs", f"{zlib.crc32(request.node.name.encode()):016x}")


@pytest.fixture(params=["closed port", "a server that never answers"])
def dead(request: pytest.FixtureRequest) -> Iterator[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if request.param != "closed port":
            server.listen()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
