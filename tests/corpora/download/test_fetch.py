"""Only what is verified is used: archives, where they come from, and the texts made of them."""

import gzip
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from file_server import FileServer
from served_archive import ARCHIVE, DE, EN, MD5, N_LINES, OTHER, PATH, SHA256, Watched, lines, source_at, tar_of

from repro.corpora.download.fetch import copies, instructions, missing, text
from repro.corpora.download.sources import COLLECTIONS, Source
from repro.storage.folder_cache import verified

# Mirrors -----------------------------------------------------------------------------------------------------


def test_a_mirror_is_asked_first_by_our_names(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    server.files["/copies/x.tgz"] = ARCHIVE
    one = source_at(server.url(PATH))
    for n, mirror in enumerate((server.url("/copies"), server.url("/copies/"))):
        assert watched.fetch(one, tmp_path / f"{n}", mirror=mirror).read_bytes() == ARCHIVE
    assert [path for path, _ in server.log] == ["/copies/x.tgz"] * 2
    assert watched.fetch(one, tmp_path / "none", mirror=server.url("/empty")).read_bytes() == ARCHIVE
    assert [path for path, _ in server.log][2:] == ["/empty/x.tgz", PATH]
    server.files["/copies/x.tgz"] = OTHER
    assert watched.fetch(one, tmp_path / "altered", mirror=server.url("/copies")).read_bytes() == ARCHIVE


def test_a_mirror_without_tls_gives_only_what_a_hash_vouches_for(
    tmp_path: Path, server: FileServer, watched: Watched
) -> None:
    one = source_at(server.url(PATH), sha256=None, md5=MD5)
    assert watched.fetch(one, tmp_path, mirror=server.url("/copies")).read_bytes() == ARCHIVE
    assert [path for path, _ in server.log] == [PATH]
    assert "is passed over: x.tgz has no published SHA-256" in watched.told[0]
    assert copies(one, "https://example.invalid/copies") == ["https://example.invalid/copies/x.tgz"]
    sides = tuple(replace(member, sha256="0" * 64) for member in one.members["en-de"])
    by_text = replace(one, members={"en-de": (sides[0], sides[1])})
    assert copies(by_text, server.url("/copies")) == [server.url("/copies/x.tgz")]


@pytest.mark.parametrize("mirror", ["ftp://example.invalid/a", "https://", "https://x/a?b=c"])
def test_a_mirror_is_the_address_of_a_folder(tmp_path: Path, watched: Watched, mirror: str) -> None:
    with pytest.raises(ValueError, match="--mirror '.*' is not the address of a folder; expected one like https://"):
        watched.fetch(source_at("http://example.invalid/x.tgz"), tmp_path, mirror=mirror)


# Files that are there --------------------------------------------------------------------------------------


def test_what_is_no_file_is_refused_and_left_where_it_is(tmp_path: Path, watched: Watched) -> None:
    os.mkfifo(tmp_path / "x.tgz")
    with pytest.raises(ValueError, match=r"x.tgz: expected the file as it is published, got a folder or a pipe"):
        watched.fetch(source_at("http://example.invalid/x.tgz", size=None), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["x.tgz"]


@pytest.mark.parametrize("changed", [{}, {"sha256": None, "md5": MD5, "size": None}], ids=["sha256", "md5"])
def test_a_wrong_file_is_set_aside_at_every_use(tmp_path: Path, watched: Watched, changed: dict[str, Any]) -> None:
    one = source_at("http://example.invalid/x.tgz", **changed)
    (tmp_path / "x.tgz").write_bytes(ARCHIVE)
    watched.fetch(one, tmp_path)
    (tmp_path / "x.tgz").write_bytes(OTHER)  # a bit that flips after success
    refused = (
        f"x.tgz is not the published file: expected {'md5' if changed else f'sha256 {SHA256}'}.*set aside as x.tgz"
    )
    with pytest.raises(ValueError, match=refused):
        watched.fetch(one, tmp_path)
    assert (tmp_path / "x.tgz.refused").read_bytes() == OTHER
    assert not (tmp_path / "x.tgz").exists()


def test_a_size_is_all_that_may_be_known(tmp_path: Path, watched: Watched) -> None:
    (tmp_path / "x.tgz").write_bytes(ARCHIVE[:-1])
    with pytest.raises(ValueError, match=rf"expected {len(ARCHIVE):,} bytes, got {len(ARCHIVE) - 1:,}\. It was set"):
        watched.fetch(source_at("http://example.invalid/x.tgz", sha256=None), tmp_path)


def test_a_file_is_read_once_per_process(tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.tgz").write_bytes(ARCHIVE)
    one = source_at("http://example.invalid/x.tgz")
    watched.fetch(one, tmp_path)
    monkeypatch.setattr(hashlib, "file_digest", None)  # so reading it fails
    watched.fetch(one, tmp_path)


def test_offline_opens_no_socket(tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a socket")

    monkeypatch.setattr("socket.socket", refuse)
    one = source_at("http://example.invalid/x.tgz")
    with pytest.raises(FileNotFoundError, match="Offline, and an archive is missing") as error:
        watched.fetch(one, tmp_path / "none", offline=True)
    assert f"Put these files into {tmp_path / 'none'}" in str(error.value)
    assert f"  x.tgz  {len(ARCHIVE):,} bytes  SHA-256 {SHA256}\n    http://example.invalid/x.tgz" in str(error.value)
    assert not (tmp_path / "none").exists()
    (tmp_path / "x.tgz").write_bytes(ARCHIVE)
    found = text(one, "en-de", tmp_path, tmp_path / "texts", offline=True, tell=watched.told.append)
    assert found[0].read_bytes() == lines(EN)


# Texts -----------------------------------------------------------------------------------------------------


def test_the_text_of_a_source(tmp_path: Path, server: FileServer, watched: Watched) -> None:
    def found(offline: bool) -> tuple[Path, Path]:
        one = source_at(server.url(PATH))
        texts = tmp_path / "texts"
        return text(one, "en-de", tmp_path, texts, offline=offline, tell=watched.told.append, clock=watched.clock)

    first = found(offline=False)
    folder = tmp_path / "texts" / "x_v7-en-de"
    assert first == (folder / "x_v7.en", folder / "x_v7.de")
    assert [path.read_bytes() for path in first] == [lines(EN), lines(DE)]
    facts = verified(folder)
    assert facts["archive"] == SHA256
    assert facts["files"]["de"] == {
        "bytes": len(lines(DE)),
        "sha256": hashlib.sha256(lines(DE)).hexdigest(),
        "n_lines": N_LINES,
    }
    (tmp_path / "x.tgz").unlink()
    assert found(offline=True) == first  # the text is there, the archive is not needed

    first[1].write_bytes(lines(EN))
    with pytest.raises(FileNotFoundError, match="Offline, and an archive is missing"):
        found(offline=True)
    assert "x_v7.de is damaged" in watched.told[-1]
    assert found(offline=False) == first
    assert first[1].read_bytes() == lines(DE)
    assert len(server.log) == 2


def local(folder: Path, en: list[str], de: list[str], **changed: Any) -> Source:
    """A source whose archive was put there by hand."""
    content = gzip.compress(tar_of({"training/x.de-en.en": lines(en), "training/x.de-en.de": lines(de)}), 1, mtime=0)
    (folder / "x.tgz").write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    return source_at("http://example.invalid/x.tgz", size=len(content), sha256=sha256, **changed)


def test_sides_of_unequal_length_are_refused(tmp_path: Path, watched: Watched) -> None:
    one = local(tmp_path, EN, DE[:2_345] + DE[2_346:])
    with pytest.raises(ValueError, match=r"has 4,000 lines, .* has 3,999; expected 4,000 of each") as error:
        text(one, "en-de", tmp_path, tmp_path / "texts", tell=watched.told.append)
    assert "Delete the archive and get it again." in str(error.value)
    assert list((tmp_path / "texts").iterdir()) == []  # nothing half made is left


def test_the_number_of_lines_is_the_published_one(tmp_path: Path, watched: Watched) -> None:
    # 2,737 lines are the filtered newstest2014, 3,003 the full one: neither passes for the other
    one = local(tmp_path, EN[:3_003], DE[:3_003], n_pairs={"en-de": 2_737})
    with pytest.raises(ValueError, match="has 3,003 lines, .* has 3,003; expected 2,737 of each"):
        text(one, "en-de", tmp_path, tmp_path / "texts", tell=watched.told.append)
    full = replace(one, n_pairs={"en-de": 3_003})
    assert text(full, "en-de", tmp_path, tmp_path / "texts", tell=print)[0].read_bytes() == lines(EN[:3_003])


# What is missing -------------------------------------------------------------------------------------------


def touched(folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"")


def test_what_must_be_fetched(tmp_path: Path) -> None:
    wanted = COLLECTIONS["wmt14-en-de"]
    archives, texts = tmp_path / "archives", tmp_path / "texts"
    assert [one.name for one in missing(wanted, archives, texts)] == [
        *("europarl_v7", "commoncrawl", "news_commentary_v9", "newstest2013", "newstest2014_full", "newstest2014")
    ]
    assert sum(one.size_at_most for one in missing(wanted, archives)) == (
        657_632_379 + 918_311_367 + 80_418_416 + 38_654_961 + 2 * 64_000_000  # the least that is unknown: its bound
    )
    touched(archives, "training-parallel-commoncrawl.tgz")
    touched(texts / "newstest2013-en-de", "manifest.json")
    assert [one.name for one in missing(wanted, archives, texts)] == [
        *("europarl_v7", "news_commentary_v9", "newstest2014_full", "newstest2014")
    ]
    said = instructions(wanted, archives, texts)
    assert said.split("\n")[0] == f"Put these files into {archives}, under these names:"
    assert (
        f"  training-parallel-europarl-v7.tgz  657,632,379 bytes  SHA-256 {wanted.sources[0].sha256}\n"
        "    https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz\n" in said
    )
    assert "  wmt14-test-filtered.tgz  at most 64,000,000 bytes  MD5 84c597844c1542e29c2aff23aaee4310\n" in said
    for one in wanted.sources:
        touched(archives, one.archive)
    assert instructions(wanted, archives, texts) == ""


def test_an_archive_is_asked_for_once(tmp_path: Path) -> None:
    assert len(missing(COLLECTIONS["multi30k-en-de"], tmp_path)) == 1  # of four sources
