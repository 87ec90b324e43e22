"""Only what is verified is used: archives, where they come from, and the texts made of them."""

import gzip
import hashlib
import io
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import file_server
import pytest
from file_server import ARCHIVE, DE, EN, MD5, MIRROR, N_LINES, OTHER, PATH, SHA256, FileServer, lines, source_at, tar_of
from text_folders import put

from repro.corpora import fetch as fetching
from repro.corpora.fetch import ATTEMPTS, fetch, missing, read_sgm, text, unpack
from repro.corpora.sources import COLLECTIONS, Source
from repro.storage.folder_cache import verified

# Archives --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [{}, {"sha256": None, "md5": MD5, "size": None}], ids=["sha256", "md5"])
def test_a_wrong_file_is_refused_at_every_use(tmp_path: Path, changed: dict[str, Any]) -> None:
    one = source_at("http://example.invalid/x.tgz", **changed)
    (tmp_path / "x.tgz").write_bytes(ARCHIVE)
    fetch(one, tmp_path)
    (tmp_path / "x.tgz").write_bytes(OTHER)  # a bit that flips after success
    refused = f"x.tgz is not the published file: expected {'md5' if changed else f'sha256 {SHA256}'}.*Delete the arch"
    with pytest.raises(ValueError, match=refused):
        fetch(one, tmp_path)
    assert (tmp_path / "x.tgz").read_bytes() == OTHER  # left to whoever put it there


def test_offline_opens_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a socket")

    monkeypatch.setattr("socket.socket", refuse)
    one = source_at("http://example.invalid/x.tgz")
    with pytest.raises(FileNotFoundError, match="Offline, and an archive is missing") as error:
        fetch(one, tmp_path / "none", offline=True)
    assert f"Put these files into {tmp_path / 'none'}" in str(error.value)
    assert not (tmp_path / "none").exists()
    (tmp_path / "x.tgz").write_bytes(ARCHIVE)
    found = text(one, "en-de", tmp_path, tmp_path / "texts", offline=True, tell=str)
    assert found[0].read_bytes() == lines(EN)


def test_what_must_be_fetched(tmp_path: Path) -> None:
    wanted, archives, texts = COLLECTIONS["wmt14-en-de"], tmp_path / "archives", tmp_path / "texts"
    lacking = missing(wanted, archives, texts)
    names = "europarl_v7 commoncrawl news_commentary_v9 newstest2013 newstest2014_full newstest2014"
    assert [one.name for one in lacking] == names.split()
    assert sum(one.size_at_most for one in lacking) == (
        657_632_379 + 918_311_367 + 80_418_416 + 38_654_961 + 2 * 64_000_000  # the least that is unknown: its bound
    )
    put(archives / "training-parallel-commoncrawl.tgz", "")
    put(texts / "newstest2013-en-de" / "manifest.json", "")
    still = {one.name for one in missing(wanted, archives, texts)}
    assert {one.name for one in lacking} - still == {"commoncrawl", "newstest2013"}
    assert len(missing(COLLECTIONS["multi30k-en-de"], tmp_path, texts)) == 1  # of four sources


# Texts -----------------------------------------------------------------------------------------------------


def test_the_text_of_a_source(tmp_path: Path, server: FileServer) -> None:
    told: list[str] = []

    def found(offline: bool) -> tuple[Path, Path]:
        texts = tmp_path / "texts"
        return text(source_at(server.url(PATH)), "en-de", tmp_path, texts, offline=offline, tell=told.append)

    first = found(offline=False)
    folder = tmp_path / "texts" / "x_v7-en-de"
    assert first == (folder / "x_v7.en", folder / "x_v7.de")
    assert [path.read_bytes() for path in first] == [lines(EN), lines(DE)]
    en, de = ({"n_lines": N_LINES, "sha256": hashlib.sha256(lines(of)).hexdigest()} for of in (EN, DE))
    assert verified(folder) == {"archive": "x.tgz", "files": {"en": en, "de": de}}
    (tmp_path / "x.tgz").unlink()
    assert found(offline=True) == first  # the text is there, the archive is not needed

    first[1].write_bytes(lines(EN))
    with pytest.raises(FileNotFoundError, match="Offline, and an archive is missing"):
        found(offline=True)
    assert "x_v7.de is damaged" in told[-1]
    assert found(offline=False) == first
    assert first[1].read_bytes() == lines(DE)
    assert len(server.log) == 2


def local(folder: Path, en: list[str], de: list[str], **changed: Any) -> Source:
    """A source whose archive was put there by hand."""
    content = gzip.compress(tar_of({"training/x.de-en.en": lines(en), "training/x.de-en.de": lines(de)}), 1, mtime=0)
    (folder / "x.tgz").write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    return source_at("http://example.invalid/x.tgz", size=len(content), sha256=sha256, **changed)


def test_the_number_of_lines_is_the_published_one_on_both_sides(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    unequal = local(tmp_path, EN, DE[:2_345] + DE[2_346:])
    with pytest.raises(ValueError, match="4,000 and 3,999 lines, expected 4,000 of each. Delete the archive"):
        text(unequal, "en-de", tmp_path, texts, tell=str)
    assert list(texts.iterdir()) == []  # nothing half made is left
    # 2,737 lines are the filtered newstest2014, 3,003 the full one: neither passes for the other
    one = local(tmp_path, EN[:3_003], DE[:3_003], n_pairs={"en-de": 2_737})
    with pytest.raises(ValueError, match="3,003 and 3,003 lines, expected 2,737 of each"):
        text(one, "en-de", tmp_path, texts, tell=str)
    full = replace(one, n_pairs={"en-de": 3_003})
    assert text(full, "en-de", tmp_path, texts, tell=str)[0].read_bytes() == lines(EN[:3_003])


# Archives that nobody vouches for --------------------------------------------------------------------------

WANTED = {"training/x.de-en.en": "x.en", "x.gz": "x.de"}
GOOD = {"training/x.cs-en.en": b"not wanted", "x.gz": gzip.compress(b"e") + gzip.compress(b"ins\n")}
EVIL = ["../evil", "/tmp/evil", "training/../../evil", "training/x.de-en.en ", "training//x.de-en.en", "long" * 200]


def links(kind: bytes) -> bytes:
    """A tar with the wanted name as a link."""
    file, info = io.BytesIO(), tarfile.TarInfo("training/x.de-en.en")
    info.type, info.linkname = kind, "../evil"
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(info)
    return file.getvalue()


def unpacked(folder: Path, content: bytes) -> dict[str, bytes]:
    (folder / "x.tgz").write_bytes(content)
    unpack(folder / "x.tgz", {name: folder / "out" / ours for name, ours in WANTED.items()})
    assert sorted(path.name for path in folder.iterdir()) == ["out", "x.tgz"]
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.mark.parametrize("is_gzip", [True, False])
def test_wanted_members_come_under_our_names_and_others_do_nothing(tmp_path: Path, is_gzip: bool) -> None:
    content = tar_of(dict.fromkeys(EVIL, b"evil") | GOOD | {"training/x.de-en.en": b"one\n"})
    assert unpacked(tmp_path, gzip.compress(content) if is_gzip else content) == {"x.en": b"one\n", "x.de": b"eins\n"}


@pytest.mark.parametrize("content", [tar_of(GOOD), links(tarfile.SYMTYPE), links(tarfile.LNKTYPE)])
def test_a_member_that_is_missing_or_no_file_is_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError, match=r"x\.tgz lacks 'training/x\.de-en\.en'.*; expected regular files"):
        unpacked(tmp_path, content)


@pytest.mark.parametrize("n", [0, 10, 3_000])
def test_a_truncated_archive_is_refused(tmp_path: Path, n: int) -> None:
    with pytest.raises(ValueError, match="is not a whole archive"):
        unpacked(tmp_path, ARCHIVE[:n])


SGM = """<srcset setid="newstest2014" srclang="any">
<DOC origlang="en" sysid="src" docid="a.1">
<hl>
<seg id="1"> Fish & chips &amp; S&P </seg>
</hl>
<p>
<SEG ID='2'>2 < 3
and\t 5 >\r
4&#46; &quot;Yes&#x21;&quot; &amp;lt;</SEG>
</p>
</DOC>
<doc docid="b.2" genre="news">
<p><seg id=1>Caf\u00e9\u00a0\u2028 &nbsp;&euro;&#0;&bomb;</seg></p>
</doc>
</srcset>
"""


def test_sgm_as_it_stands_in_the_archives() -> None:
    assert read_sgm(SGM.encode()) == [
        "Fish & chips & S&P",
        '2 < 3 and 5 > 4. "Yes!" &lt;',
        "Caf\u00e9\u00a0\u2028 \u00a0\u20ac\ufffd&bomb;",
    ]


# Transfers ------------------------------------------------------------------------------------------------


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
    server.faults[PATH] = [file_server.truncated, lambda handler, content: None]  # the second closes without an answer
    assert fetched(source_at(server.url(PATH)), tmp_path / "closed") == ARCHIVE
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
    "shorter": (file_server.other(ARCHIVE[:-1]), f"{len(ARCHIVE) - 1:,} bytes, expected {len(ARCHIVE):,} bytes"),
    "endless": (lambda h, _: file_server.without_length(h, ARCHIVE + b"\0"), "it sends more than expected: .* bytes"),
    "altered": (file_server.other(OTHER), f"expected sha256 {SHA256}, got {hashlib.sha256(OTHER).hexdigest()}"),
    "a page": (file_server.web_page, "a web page instead of an archive"),
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
