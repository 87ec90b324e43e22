"""A server of the archive, and nothing between it and the test."""

from collections.abc import Iterator

import pytest
from file_server import ARCHIVE, MIRROR, PATH, FileServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setenv("NO_PROXY", "*")
    with FileServer() as server:
        server.files = {PATH: ARCHIVE, MIRROR: ARCHIVE}
        yield server
