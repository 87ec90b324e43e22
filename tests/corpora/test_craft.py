"""CRAFT: each file is known by its hash, wherever it comes from."""

import hashlib
import os
from pathlib import Path

import pytest
from file_server import FileServer
from text_folders import put
from typed import typed

from repro.corpora import sources
from repro.corpora.sources import craft_sources, missing_of_craft
from repro.corpora.treebanks import check_craft, open_trees

AT_HAND = Path(os.environ.get("REPRO_DATA", "no such folder")) / "craft"
TREES = "structural-annotation/treebank/penn"
ADDRESS = f"https://raw.githubusercontent.com/UCDenver-ccp/CRAFT/v5.0.2/{TREES}/11319941.tree"


def of_ours(monkeypatch: pytest.MonkeyPatch, contents: dict[str, bytes]) -> None:
    """These files, instead of those of the corpus."""
    known = {f"craft/{path}": hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    monkeypatch.setattr(sources, "KNOWN", known | {"multi30k/train.en": "0" * 64})


def test_every_file_has_an_address_and_a_hash() -> None:
    known = craft_sources()
    assert len(known) == 97 + 3 + 1
    assert all(len(source.sha256 or "") == 64 for source in known.values())
    assert known[f"{TREES}/11319941.tree"].urls == (ADDRESS,)


def test_the_hashes_are_those_of_the_corpus_at_hand() -> None:
    if not AT_HAND.is_dir():
        pytest.skip("REPRO_DATA names no folder with craft in it")
    for path, source in craft_sources().items():
        assert hashlib.sha256((AT_HAND / path).read_bytes()).hexdigest() == source.sha256, path
    assert missing_of_craft(AT_HAND) == {}
    check_craft(AT_HAND)


def test_it_is_fetched_file_by_file_and_what_is_there_is_left(
    tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_ours(monkeypatch, {f"{TREES}/a1.tree": b"(S (NN a))\n", f"{TREES}/b2.tree": b"(S (NN b))\n"})
    monkeypatch.setattr(sources, "CRAFT_ADDRESS", server.url("/craft"))
    server.files |= {f"/craft/{TREES}/{name}": b"(S (NN %c))\n" % name[0].encode() for name in ("a1.tree", "b2.tree")}
    for _ in range(2):
        typed(capsys, "data", "fetch", "craft", "--data-dir", tmp_path)
    assert [path for path, _ in server.log] == [f"/craft/{TREES}/a1.tree", f"/craft/{TREES}/b2.tree"]
    assert (tmp_path / "craft" / TREES / "b2.tree").read_bytes() == b"(S (NN b))\n"


def test_the_command_says_what_it_would_fetch_and_what_it_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = typed(capsys, "data", "fetch", "craft", "--dry-run", "--data-dir", tmp_path)
    assert "licence CC BY 3.0; still to fetch: 101 files" in said
    assert ADDRESS in said
    assert not [*tmp_path.iterdir()]
    refused = typed(capsys, "data", "fetch", "wsj", "--data-dir", tmp_path, code=2)
    assert "It is read from your own copy of Treebank-3" in refused


def test_a_copy_is_read_only_where_it_is_the_published_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splits = enumerate(("train", "dev", "test"))
    lists = {f"articles/ids/craft-ids-{split}.txt": f"{n}\n".encode() for n, split in splits}
    lists["LICENSE.txt"] = b"a line,\nand one that does not end"  # as that of the corpus
    trees = {f"{TREES}/{n}.tree": f"(S (NN word{n}))\n".encode() for n in range(3)}
    of_ours(monkeypatch, lists | trees)
    for path, text in (lists | trees).items():
        put(tmp_path / "craft" / path, text)
    corpus = open_trees("craft", data_dir=tmp_path, cache=tmp_path / "cache")
    assert [words for words, _ in corpus.dev.pairs()] == ["word1"]
    (tmp_path / "craft" / "LICENSE.txt").write_bytes(lists["LICENSE.txt"].replace(b"\n", b"\r\n"))
    open_trees("craft", data_dir=tmp_path, cache=tmp_path / "cache")
    altered = tmp_path / "craft" / TREES / "2.tree"
    altered.write_bytes(b"(S (NN word3))\n")  # as long as it was
    with pytest.raises(ValueError, match=r"2\.tree is not the published file: expected SHA-256 .* fetch craft"):
        open_trees("craft", data_dir=tmp_path, cache=tmp_path / "cache")
    altered.unlink()
    missing = r"1 files are missing, the first is .*2\.tree\. Get .* data fetch craft"
    with pytest.raises(FileNotFoundError, match=missing):
        open_trees("craft", data_dir=tmp_path, cache=tmp_path / "cache")
