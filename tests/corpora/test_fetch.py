"""Only what is verified is used: archives, where they come from, and the texts made of them."""

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from file_server import ARCHIVE, DE, EN, MD5, N_LINES, OTHER, PATH, SHA256, FileServer, lines, source_at, tar_of
from text_folders import put

from repro.corpora.fetch import fetch, missing, read_sgm, text, unpack
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
