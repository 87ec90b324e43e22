"""A server of the archive, and nothing between it and the test."""

from collections.abc import Iterator

import pytest
from file_server import FileServer
from served_archive import ARCHIVE, MIRROR, PATH, Watched


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as server:
        server.files = {PATH: ARCHIVE, MIRROR: ARCHIVE}
        yield server


@pytest.fixture
def watched() -> Watched:
    return Watched()
