"""A transfer ends as the published archive or as words that say what came instead, whatever breaks on the way."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import file_server
import pytest
from file_server import ARCHIVE, MD5, MIRROR, OTHER, PATH, SHA256, FileServer, source_at

from repro.corpora import fetch as fetching
from repro.corpora.fetch import ATTEMPTS, fetch
from repro.corpora.sources import Source

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was slept; no test sleeps."""
    seconds: list[float] = []
    monkeypatch.setattr(fetching, "TIMEOUT", (5.0, 0.3))
    monkeypatch.setattr(fetching.time, "sleep", seconds.append)
    return seconds


def fetched(source: Source, folder: Path, **others: Any) -> bytes:
    content = fetch(source, folder, tell=lambda said: None, **others).read_bytes()
    assert names(folder) == ["x.tgz"]
    return content


def names(folder: Path) -> list[str]:
    """What lies in a folder, but for the locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


# Transfers that succeed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [{}, {"sha256": None, "md5": MD5}, {"sha256": None, "size": None}])
def test_a_good_server(tmp_path: Path, server: FileServer, slept: list[float], known: dict[str, Any]) -> None:
    one = source_at(server.url(PATH), **known)
    assert fetched(one, tmp_path / "new") == fetched(one, tmp_path / "new", offline=True) == ARCHIVE
    assert (server.log, slept) == ([(PATH, None)], [])


def starts(server: FileServer) -> list[int]:
    """The byte from which each transfer was asked for."""
    return [int((asked or "bytes=0-")[6:-1]) for _, asked in server.log]


@pytest.mark.parametrize("fault", [file_server.truncated, file_server.stall, file_server.half_without_length])
def test_a_broken_transfer_goes_on_where_it_stopped(
    tmp_path: Path, server: FileServer, slept: list[float], fault: file_server.Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "PROGRESS", 1)
    server.faults[PATH] = [fault, file_server.truncated]
    assert fetched(source_at(server.url(PATH)), tmp_path) == ARCHIVE
    first, second, third = starts(server)
    assert 0 == first < second < third < len(ARCHIVE)
    assert slept == [2.0, 2.0]  # the second made progress too, so the count began again


def test_a_server_in_trouble_is_asked_again(tmp_path: Path, server: FileServer, slept: list[float]) -> None:
    server.faults[PATH] = [file_server.status(code) for code in (429, 503, 500, 502, 408)]
    assert fetched(source_at(server.url(PATH)), tmp_path) == ARCHIVE
    assert slept == [2.0, 4.0, 8.0, 16.0, 32.0]
    for fault in (file_server.ignores_range, file_server.called_encoded):  # servers that go on in their own way
        server.faults[PATH] = [file_server.truncated, fault]
        assert fetched(source_at(server.url(PATH)), tmp_path / fault.__name__) == ARCHIVE


def test_another_mirror_goes_on_with_what_one_gave(tmp_path: Path, server: FileServer) -> None:
    server.lasting, server.faults[PATH] = True, [file_server.truncated]
    assert fetched(source_at(server.url(PATH), server.url(MIRROR)), tmp_path) == ARCHIVE
    assert [path for path, _ in server.log] == [PATH] * ATTEMPTS + [MIRROR]
    assert server.log[-1][1] is not None


# Transfers that do not -------------------------------------------------------------------------------------

REFUSED = {
    "not there": (file_server.status(404), "the server answered 404"),
    "page": (file_server.page, "a web page instead of an archive"),
    "shorter": (file_server.other(ARCHIVE[:-1]), f"{len(ARCHIVE) - 1:,} bytes, expected {len(ARCHIVE):,} bytes"),
    "endless": (lambda h, _: file_server.without_length(h, ARCHIVE + b"\0"), "it sends more than expected: .* bytes"),
    "altered": (file_server.other(OTHER), f"expected sha256 {SHA256}, got {hashlib.sha256(OTHER).hexdigest()}"),
    "in circles": (file_server.redirect(PATH), r"no connection could be made \(TooManyRedirects\)"),
    "no address": (file_server.redirect("http://[::1/"), r"no connection could be made \("),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_not_asked_for_again_but_the_next_mirror_is(
    tmp_path: Path, server: FileServer, slept: list[float], name: str
) -> None:
    fault, words = REFUSED[name]
    server.lasting, server.faults[PATH] = True, [fault]
    assert fetched(source_at(server.url(PATH), server.url(MIRROR)), tmp_path / "a") == ARCHIVE
    assert name == "in circles" or [path for path, _ in server.log].count(PATH) == 1
    assert slept == []
    with pytest.raises(ConnectionError, match=f"No address gave x.tgz:\n  http.*{words}") as error:
        fetched(source_at(server.url(PATH)), tmp_path / "b")
    by_hand = f"  x.tgz  {len(ARCHIVE):,} bytes  SHA-256 {SHA256}\n    {server.url(PATH)}"
    assert f"Put these files into {tmp_path / 'b'}, under these names:\n{by_hand}" in str(error.value)
    assert names(tmp_path / "b") == []


def test_an_unknown_size_has_a_bound(tmp_path: Path, server: FileServer) -> None:
    one = source_at(server.url(PATH), size=None, max_size=len(ARCHIVE) - 1)
    with pytest.raises(ConnectionError, match="sends more than expected: at most"):
        fetched(one, tmp_path)
    assert fetched(replace(one, max_size=len(ARCHIVE)), tmp_path) == ARCHIVE


def test_without_a_network_it_says_what_to_do_and_does_not_wait(
    tmp_path: Path, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    with FileServer() as gone:
        closed = gone.url(PATH)
    monkeypatch.delenv("NO_PROXY", raising=False)
    for proxy in ("", "http://user:secret-word@127.0.0.1:1", "http://user:secret-word@:no"):
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(ConnectionError, match="no connection could be made") as error:
            fetched(source_at(closed, "http://example.invalid/x.tgz"), tmp_path)
        assert "Without a network, get the file elsewhere and add --offline.\nPut these files into" in str(error.value)
        assert "secret" not in f"{error.value}{error.value.__cause__}"
    assert slept == []


# Interruption ----------------------------------------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from repro.corpora import fetch as fetching
from repro.corpora.fetch import fetch
from repro.corpora.sources import Source
from repro.storage import atomic

fetching.BLOCK = 10_000
left, append = [int(sys.argv[5])], atomic.Appended.append
def counted(part, block):
    append(part, block)
    left[0] -= 1
    if not left[0]:
        os._exit(137)
atomic.Appended.append = counted
source = Source(name="x", archive="x.tgz", urls=(sys.argv[1],), size=int(sys.argv[3]), sha256=sys.argv[4],
                licence="", members={}, n_pairs={})
fetch(source, Path(sys.argv[2]))
"""


def started(server: FileServer, folder: Path, n_blocks: int) -> "subprocess.Popen[bytes]":
    arguments = [server.url(PATH), str(folder), str(len(ARCHIVE)), SHA256, str(n_blocks)]
    return subprocess.Popen([sys.executable, "-c", KILLED, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL)


def test_a_killed_download_goes_on_and_many_processes_at_once_transfer_it_once(
    tmp_path: Path, server: FileServer
) -> None:
    with started(server, tmp_path, n_blocks=3) as killed:
        assert killed.wait(60) == 137
    assert names(tmp_path) == ["x.tgz.part"]
    processes = [started(server, tmp_path, 1_000_000) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert (tmp_path / "x.tgz").read_bytes() == ARCHIVE
    first, second = starts(server)
    assert first == 0 < second <= 30_000


def test_a_part_that_does_not_fit_costs_one_more_transfer(tmp_path: Path, server: FileServer) -> None:
    part = tmp_path / "x.tgz.part"
    part.write_bytes(b"\x1f\x8b" + bytes(5_000))  # what a power cut may leave
    assert fetched(source_at(server.url(PATH)), tmp_path) == ARCHIVE
    assert [asked for _, asked in server.log] == ["bytes=5002-", None]
    (tmp_path / "x.tgz").unlink()
    part.write_bytes(bytes(len(ARCHIVE) + 5))  # too long
    assert fetched(source_at(server.url(PATH)), tmp_path) == ARCHIVE


def test_a_whole_part_needs_no_transfer(tmp_path: Path, server: FileServer) -> None:
    for size in (len(ARCHIVE), None):  # where the size is unknown, the server says that nothing is left
        (tmp_path / "x.tgz.part").write_bytes(ARCHIVE)
        assert fetched(source_at(server.url(PATH), size=size), tmp_path) == ARCHIVE
        (tmp_path / "x.tgz").unlink()
    assert server.log == [(PATH, f"bytes={len(ARCHIVE)}-")]


def test_without_a_hash_no_parts_are_joined(tmp_path: Path, server: FileServer) -> None:
    one = source_at(server.url(PATH), sha256=None)
    (tmp_path / "x.tgz.part").write_bytes(b"\x1f\x8b" + bytes(5_000))
    server.faults[PATH] = [file_server.truncated, file_server.half_without_length]
    assert fetched(one, tmp_path) == ARCHIVE
    assert server.log == [(PATH, None)] * 3
    server.lasting, server.faults[PATH] = True, [file_server.truncated]
    with pytest.raises(ConnectionError, match="No address gave x.tgz"):
        fetched(one, tmp_path / "new")
    assert names(tmp_path / "new") == []
