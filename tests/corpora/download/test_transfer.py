"""A transfer ends as the published archive or as words that say what came instead, whatever breaks on the way."""

import hashlib
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import file_server
import pytest
from file_server import FileServer
from served_archive import ARCHIVE, MD5, MIRROR, OTHER, PATH, SHA256, Watched, names, source_at

from repro.corpora.download import transfer as transfer_module
from repro.corpora.download.fetch import fetch
from repro.corpora.download.transfer import ATTEMPTS, received_by_one

ROOT = Path(__file__).parents[3]


# Transfers that succeed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", ["sha256", "md5", "nothing"])
def test_a_good_server(tmp_path: Path, server: FileServer, watched: Watched, known: str) -> None:
    unlike: dict[str, dict[str, Any]] = {
        "sha256": {},
        "md5": {"sha256": None, "md5": MD5},
        "nothing": {"sha256": None, "size": None},
    }
    one = source_at(server.url(PATH), **unlike[known])
    path = watched.fetch(one, tmp_path / "new")
    assert path == tmp_path / "new" / "x.tgz"
    assert path.read_bytes() == ARCHIVE
    assert watched.fetch(one, tmp_path / "new", offline=True) == path
    assert server.log == [(PATH, None)]
    assert names(tmp_path / "new") == ["x.tgz"]
    assert watched.slept == []
    assert len(watched.told) == 1  # the clock stood still
    assert re.fullmatch(rf"x\.tgz: [\d,]+ of {len(ARCHIVE):,} bytes \(\d+%\)", watched.told[0])


@pytest.mark.parametrize("fault", [file_server.truncated, file_server.reset, file_server.stall])
def test_a_broken_transfer_goes_on_where_it_stopped(
    tmp_path: Path, server: FileServer, watched: Watched, fault: file_server.Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_module, "PROGRESS", 1)
    server.faults[PATH] = [fault, fault]
    path = watched.fetch(source_at(server.url(PATH)), tmp_path)
    assert path.read_bytes() == ARCHIVE
    assert server.log[0] == (PATH, None)
    starts = [int(str(asked)[6:-1]) for _, asked in server.log[1:]]
    assert len(starts) == 2
    assert 0 < starts[0] < starts[1] < len(ARCHIVE)
    assert watched.slept == [2.0, 2.0]  # the second made progress too, so the count began again
    assert names(tmp_path) == ["x.tgz"]


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_in_trouble_is_asked_again(tmp_path: Path, server: FileServer, watched: Watched, code: int) -> None:
    server.faults[PATH] = [file_server.status(code)] * (ATTEMPTS - 1)
    assert watched.fetch(source_at(server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    assert watched.slept == [2.0, 4.0, 8.0, 16.0, 32.0]
    assert f"the server answered {code}; again in 2 seconds" in watched.told[0]


def test_a_server_that_knows_no_ranges_starts_anew(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    server.faults[PATH] = [file_server.truncated, file_server.ignores_range]
    assert watched.fetch(source_at(server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    assert len(server.log) == 2


def test_another_mirror_goes_on_with_what_one_gave(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    server.lasting, server.faults[PATH] = True, [file_server.truncated]
    one = source_at(server.url(PATH), server.url(MIRROR))
    assert watched.fetch(one, tmp_path).read_bytes() == ARCHIVE
    assert [path for path, _ in server.log] == [PATH] * ATTEMPTS + [MIRROR]
    assert server.answered[-1] == 206  # though it marks the file in its own way


def test_a_server_that_goes_on_with_something_else(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    server.faults[PATH] = [file_server.truncated, file_server.another_range]
    assert watched.fetch(source_at(server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    assert f"{server.url(PATH)}: the server went on with something else; again in 4 seconds." in watched.told
    assert server.log[-1] == (PATH, None)


def test_the_end_is_known_where_the_server_does_not_say_it(
    tmp_path: Path, server: FileServer, watched: Watched
) -> None:
    server.faults[PATH] = [file_server.half_without_length]
    assert watched.fetch(source_at(server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    assert server.log == [(PATH, None), (PATH, f"bytes={len(ARCHIVE) // 2}-")]


@pytest.mark.parametrize("fault", [file_server.chunked, file_server.called_encoded])
def test_odd_but_good_servers(tmp_path: Path, server: FileServer, watched: Watched, fault: file_server.Answer) -> None:
    server.faults[PATH] = [fault]
    assert watched.fetch(source_at(server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    assert len(server.log) == 1


def test_redirections_within_the_host_and_to_named_hosts(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    server.faults["/a"] = [file_server.redirect("/b")]
    server.faults["/b"] = [file_server.redirect(server.url(PATH, "localhost"))]
    one = source_at(server.url("/a"), hosts=("localhost",))
    assert watched.fetch(one, tmp_path).read_bytes() == ARCHIVE
    assert [path for path, _ in server.log] == ["/a", "/b", PATH]


# Transfers that do not -------------------------------------------------------------------------------------

LONGER = ARCHIVE + b"\0"
REFUSED: dict[str, tuple[Callable[[FileServer], file_server.Answer], str]] = {
    "not there": (lambda _: file_server.status(404), "the server answered 404"),
    "page": (lambda _: file_server.page, "a web page instead of an archive"),  # known by its type
    "page as file": (lambda _: file_server.page_as_file, "a web page instead of an archive"),
    "shorter": (lambda _: file_server.other(ARCHIVE[:-1]), f"{len(ARCHIVE) - 1:,} bytes, expected {len(ARCHIVE):,} b"),
    "endless": (lambda _: lambda h, c: file_server.without_length(h, LONGER), "it sends more than expected: .* bytes"),
    "0 bytes": (lambda _: file_server.empty, r"0 bytes, expected"),
    "no gzip": (lambda _: file_server.other(b"PK" + ARCHIVE[2:]), "it begins with 50 4b .*, expected 1f 8b"),
    "elsewhere": (lambda s: file_server.redirect(s.url(PATH, "localhost")), "redirected to http://localhost, expected"),
    "in circles": (lambda _: file_server.redirect(PATH), "more than 5 redirections"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_not_asked_for_again_but_the_next_mirror_is(
    tmp_path: Path, server: FileServer, watched: Watched, name: str
) -> None:
    make, words = REFUSED[name]
    server.lasting, server.faults[PATH] = True, [make(server)]
    one = source_at(server.url(PATH), server.url(MIRROR))
    assert watched.fetch(one, tmp_path / "a").read_bytes() == ARCHIVE
    assert [path for path, _ in server.log].count(PATH) == (6 if name == "in circles" else 1)
    assert watched.slept == []

    alone = source_at(server.url(PATH))
    with pytest.raises(ConnectionError, match=f"No mirror gave x.tgz:\n  http.*{words}") as error:
        watched.fetch(alone, tmp_path / "b")
    assert f"Put these files into {tmp_path / 'b'}" in str(error.value)
    assert f"x.tgz  {len(ARCHIVE):,} bytes  SHA-256 {SHA256}\n    {server.url(PATH)}" in str(error.value)
    assert names(tmp_path / "b") == []


@pytest.mark.parametrize("is_pinned", [True, False])
def test_no_redirection_leaves_tls(is_pinned: bool) -> None:
    hash_of = {} if is_pinned else {"sha256": None, "md5": MD5}
    one = source_at("https://example.invalid/x.tgz", hosts=("mirror.invalid", "a.content.invalid"), **hash_of)
    named = ["y.tgz", "https://mirror.invalid/y", "https://a.content.invalid/y"]
    others = [  # any host may give what a SHA-256 tells from all else
        "https://content.invalid/y", "https://mirror.invalid.evil.invalid/y", "https://example.invalid@evil.invalid/y",
        "//evil.invalid/y",
    ]  # fmt: skip
    without_tls = ["http://example.invalid/y", "ftp://example.invalid/y"]

    def follows(location: str) -> bool:
        try:
            return transfer_module.next_hop(one, one.urls[0], location).startswith("https://")
        except transfer_module.RefusedTransfer:
            return False

    assert [*filter(follows, named + others + without_tls)] == named + others * is_pinned
    to_tls = "https://example.invalid/x"
    assert transfer_module.next_hop(one, "http://example.invalid/x", to_tls) == to_tls


def test_an_unknown_size_has_a_bound(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    one = source_at(server.url(PATH), size=None, max_size=len(ARCHIVE) - 1)
    with pytest.raises(ConnectionError, match=rf"{len(ARCHIVE):,} bytes, expected at most {len(ARCHIVE) - 1:,}"):
        watched.fetch(one, tmp_path)
    server.faults[PATH] = [file_server.without_length]
    with pytest.raises(ConnectionError, match="it sends more than expected: at most"):
        watched.fetch(one, tmp_path)
    assert watched.fetch(replace(one, max_size=len(ARCHIVE)), tmp_path).read_bytes() == ARCHIVE


def test_a_wrong_hash_is_set_aside_and_not_tried_again(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    server.lasting, server.faults[PATH] = True, [file_server.other(OTHER)]
    with pytest.raises(ValueError, match=rf"sha256 {SHA256}, got {hashlib.sha256(OTHER).hexdigest()}; set aside"):
        watched.fetch(source_at(server.url(PATH)), tmp_path)
    assert names(tmp_path) == ["x.tgz.refused"]
    assert (tmp_path / "x.tgz.refused").read_bytes() == OTHER
    assert len(server.log) == 1

    path = watched.fetch(source_at(server.url(PATH), server.url(MIRROR)), tmp_path)
    assert path.read_bytes() == ARCHIVE
    assert names(tmp_path) == ["x.tgz", "x.tgz.refused"]


def test_one_error_says_what_each_mirror_did(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    server.lasting = True
    server.faults = {
        "/1": [file_server.status(404)],
        "/2": [file_server.status(500)],
        "/3": [file_server.other(OTHER)],
        "/4": [file_server.stall],
    }
    server.files["/4"] = ARCHIVE
    mirrors = [server.url(f"/{i}") for i in range(1, 5)]
    began = time.monotonic()
    with pytest.raises(ValueError, match="No mirror gave x.tgz") as error:
        watched.fetch(source_at(*mirrors), tmp_path)
    assert time.monotonic() - began < ATTEMPTS * (watched.clock.stall_seconds + 1)  # the silent one was left
    said = str(error.value)
    for url, words in zip(
        mirrors, ("answered 404", "answered 500", "expected sha256", "ReadTimeoutError"), strict=True
    ):
        assert f"  {url}: " in said
        assert words in said.split(f"  {url}: ")[1].split("\n")[0]
    assert [path.suffix for path in sorted(tmp_path.glob("x*"), key=lambda path: path.suffix)] == [".part", ".refused"]
    server.faults, count = {}, len(server.log)
    assert watched.fetch(source_at(*mirrors[3:]), tmp_path).read_bytes() == ARCHIVE
    assert int(str(server.log[count][1])[6:-1]) > 0.9 * len(ARCHIVE)


@pytest.mark.parametrize("location", ["http://[::1/", "https://a..b/"])  # refused by us, and by requests
def test_a_redirection_to_what_is_not_an_address(
    tmp_path: Path, server: FileServer, watched: Watched, location: str
) -> None:
    server.lasting, server.faults[PATH] = True, [file_server.redirect(location)]
    said = f"No mirror gave x.tgz:\n  {server.url(PATH)}: .*(which is not an address|this address, .*, is not valid)"
    with pytest.raises(ConnectionError, match=said) as error:
        watched.fetch(source_at(server.url(PATH)), tmp_path)
    assert "None could be reached" not in str(error.value)
    assert (len(server.log), watched.slept) == (1, [])
    assert watched.fetch(source_at(server.url(PATH), server.url(MIRROR)), tmp_path).read_bytes() == ARCHIVE


def test_without_a_network_it_says_what_to_do_and_does_not_wait(
    tmp_path: Path, server: FileServer, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FileServer() as gone:
        closed = gone.url(PATH)

    def no_name(*_: object, **__: object) -> None:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    with monkeypatch.context() as unplugged:
        unplugged.setattr(socket, "getaddrinfo", no_name)
        unplugged.setenv("NO_PROXY", "*")
        with pytest.raises(ConnectionError, match=r"no connection could be made \(NameResolutionError\)") as error:
            watched.fetch(source_at("https://example.invalid/x.tgz", "http://example.invalid/x.tgz"), tmp_path)
    for words in ("is there a network", "--mirror URL", "--offline", f"Put these files into {tmp_path}"):
        assert words in str(error.value)
    with pytest.raises(ConnectionError, match=r"no connection could be made \(NewConnectionError\)\nNone could be"):
        watched.fetch(source_at(closed), tmp_path)
    assert watched.slept == []
    assert watched.fetch(source_at(closed, server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    server.faults["/404"] = [file_server.status(404)]
    with pytest.raises(ConnectionError) as error:  # one that was reached and has nothing is no want of a network
        watched.fetch(source_at(closed, server.url("/404")), tmp_path / "new")
    assert "None could be reached" not in str(error.value)


def test_a_server_that_goes_away_is_waited_for(tmp_path: Path, watched: Watched) -> None:
    with FileServer() as server:
        server.files[PATH] = ARCHIVE
        server.faults[PATH] = [file_server.truncated]

        def sleep(seconds: float) -> None:
            watched.slept.append(seconds)
            server.socket.close()  # nobody listens any more

        clock = replace(watched.clock, sleep=sleep)
        with pytest.raises(ConnectionError, match=r"the connection failed or broke \(NewConnectionError\)"):
            fetch(source_at(server.url(PATH)), tmp_path, tell=watched.told.append, clock=clock)
    assert len(watched.slept) == ATTEMPTS - 1


def test_the_password_of_a_proxy_is_not_told(tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("http://user:secret-word@127.0.0.1:1", "user:secret-word", "http://user:secret-word@:no"):
        monkeypatch.setenv("http_proxy", address)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(ConnectionError) as error:
            watched.fetch(source_at("http://example.invalid/x.tgz"), tmp_path)
        assert "secret" not in f"{error.value}{watched.told}{error.value.__cause__}"


def test_a_full_disk_is_seen_before(
    tmp_path: Path, server: FileServer, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1_000}))
    with pytest.raises(OSError, match=rf"1,000 bytes free, x.tgz needs {len(ARCHIVE):,}. Make room"):
        watched.fetch(source_at(server.url(PATH)), tmp_path)


# Interruption ----------------------------------------------------------------------------------------------

KILLED = """
import os, sys
from pathlib import Path
from repro.corpora.download import transfer
from repro.corpora.download.fetch import fetch
from repro.corpora.download.sources import Source
from repro.storage import atomic

transfer.BLOCK = 10_000
left, append = [int(sys.argv[5])], atomic.Appended.append
def counted(part, block):
    append(part, block)
    left[0] -= 1
    if not left[0]:
        os._exit(137)
atomic.Appended.append = counted
source = Source(name="x", archive="x.tgz", urls=(sys.argv[1],), size=int(sys.argv[3]), sha256=sys.argv[4],
                licence="", members={}, n_pairs={})
fetch(source, Path(sys.argv[2]), clock=transfer.Clock(sleep=lambda _: None))
"""


def started(server: FileServer, folder: Path, n_blocks: int) -> "subprocess.Popen[bytes]":
    arguments = [server.url(PATH), str(folder), str(len(ARCHIVE)), SHA256, str(n_blocks)]
    return subprocess.Popen([sys.executable, "-c", KILLED, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL)


def test_a_killed_download_goes_on_and_ends_as_the_same_bytes(
    tmp_path: Path, server: FileServer, watched: Watched
) -> None:
    with started(server, tmp_path, n_blocks=3) as killed:
        assert killed.wait(60) == 137
    assert not (tmp_path / "x.tgz").exists()
    assert watched.fetch(source_at(server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    starts = [int((asked or "bytes=0-")[6:-1]) for _, asked in server.log]
    assert starts[0] == 0 < starts[1] <= 30_000
    assert list(tmp_path.glob("*.part")) == []


def test_a_part_that_does_not_fit_costs_one_more_transfer(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    part = tmp_path / "x.tgz.part"
    part.write_bytes(b"\x1f\x8b" + bytes(5_000))  # what a power cut may leave
    assert watched.fetch(source_at(server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    assert [asked for _, asked in server.log] == ["bytes=5002-", None]
    assert "x.tgz: the parts do not fit together; from the start." in watched.told
    (tmp_path / "x.tgz").unlink()
    part.write_bytes(bytes(len(ARCHIVE) + 5))  # too long
    assert watched.fetch(source_at(server.url(PATH)), tmp_path).read_bytes() == ARCHIVE
    assert not part.exists()


def test_a_whole_part_needs_no_transfer(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    for size in (len(ARCHIVE), None):  # where the size is unknown, the server says that nothing is left
        (tmp_path / "x.tgz.part").write_bytes(ARCHIVE)
        assert watched.fetch(source_at(server.url(PATH), size=size), tmp_path).read_bytes() == ARCHIVE
        (tmp_path / "x.tgz").unlink()
    assert server.log == [(PATH, f"bytes={len(ARCHIVE)}-")]


def test_without_a_hash_no_parts_are_joined(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    one = source_at(server.url(PATH), sha256=None)
    (tmp_path / "x.tgz.part").write_bytes(b"\x1f\x8b" + bytes(5_000))
    server.faults[PATH] = [file_server.truncated, file_server.half_without_length]
    assert watched.fetch(one, tmp_path).read_bytes() == ARCHIVE
    assert server.log == [(PATH, None)] * 3
    server.lasting, server.faults[PATH] = True, [file_server.truncated]
    with pytest.raises(ConnectionError, match="No mirror gave x.tgz"):
        watched.fetch(one, tmp_path / "new")
    assert names(tmp_path / "new") == []


def test_another_process_is_not_waited_for_without_end(tmp_path: Path, watched: Watched) -> None:
    one = source_at("http://example.invalid/x.tgz")
    with (
        received_by_one(one, tmp_path, print, watched.clock),
        pytest.raises(
            TimeoutError, match=r"has held .*\.x\.tgz\.lock for 0.5 seconds. Wait until it is done, or end it"
        ),
    ):
        watched.fetch(one, tmp_path)
    assert watched.told == ["Another process downloads x.tgz; waiting for it."]


def test_many_processes_at_once_transfer_it_once(tmp_path: Path, server: FileServer) -> None:
    server.lasting, server.faults[PATH] = True, [file_server.slow]
    processes = [started(server, tmp_path, 1_000_000) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert (tmp_path / "x.tgz").read_bytes() == ARCHIVE
    assert len(server.log) == 1
