"""Corpora of trees: found, split, refused where something is missing, and turned into parallel text."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from data.test_treebank import clean
from file_server import FileServer
from text_folders import put
from typed import typed

from repro.corpora import sources
from repro.corpora.catalogue import CORPORA, GrammarSizes, find, open_corpus
from repro.corpora.prepare import prepare
from repro.corpora.sources import craft_sources
from repro.corpora.treebanks import TREEBANKS, check_craft, find_trees, open_trees
from repro.data.treebank import linearised
from repro.data.vocabulary import Subwords

ONE = "(S (NP (NNP Anna)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .))"
TWO = "(S (NP-SBJ (DT The) (NN dog)) (VP (VBZ sleeps) (NP (-NONE- *))) (. .))"
SIZES = GrammarSizes(n_train=30, n_dev=5, n_test=4, n_silver=20)


def written(file: Path, *trees: str) -> Path:
    return put(file, "".join(f"( {tree})\n" for tree in trees))


PENN = "craft/structural-annotation/treebank/penn"


@pytest.fixture
def craft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with a corpus laid out as CRAFT is; its few trees are taken for the published ones."""
    monkeypatch.setattr("repro.corpora.treebanks.check_craft", lambda folder: None)
    for split, numbers in {"train": (1, 2), "dev": (3,), "test": (4,)}.items():
        put(tmp_path / f"craft/articles/ids/craft-ids-{split}.txt", "".join(f"{number}\n" for number in numbers))
        for number in numbers:
            written(tmp_path / PENN / f"{number}.tree", ONE, TWO)
    return tmp_path


def wsj(folder: Path) -> Path:
    """A corpus laid out as Treebank-3 is."""
    for section in range(25):
        trees = (ONE, ONE) if section == 23 else (ONE,)  # test has another size than dev
        written(folder / "wsj" / f"{section:02}" / f"wsj_{section:02}01.mrg", *trees)
    return folder


def test_craft_is_split_by_its_own_lists(craft: Path) -> None:
    corpus = open_trees("craft", data_dir=craft, cache=craft / "cache")
    texts = (*corpus.train, corpus.dev, corpus.test)
    assert [(len(list(text.pairs())), text.may_drop) for text in texts] == [(4, True), (2, False), (2, False)]
    assert list(corpus.dev.pairs()) == [
        ("Anna sees a dog .", linearised(clean(ONE))),
        ("The dog sleeps .", "(S (NP DT NN )NP (VP VBZ )VP . )S"),
    ]
    assert (corpus.name, corpus.pair, corpus.licence) == ("craft", "en-tree", "CC BY 3.0")
    assert "CC BY 3.0" in corpus.about["Attribution"]
    assert corpus.whole == tuple(sorted(["(S", ")S", "(NP", ")NP", "(VP", ")VP", "NNP", "VBZ", "DT", "NN", "."]))


def test_sections_of_the_wall_street_journal_are_split_as_parsers_have_them(tmp_path: Path) -> None:
    corpus = open_trees("wsj", data_dir=wsj(tmp_path), cache=tmp_path / "cache")
    assert [len(list(part.pairs())) for part in (*corpus.train, corpus.dev, corpus.test)] == [20, 1, 2]
    # a section in two splits, and one that is missing
    folder = tmp_path / "wsj"
    (folder / "03" / "wsj_0399.mrg").write_text(ONE)
    (folder / "03" / "wsj_2305.mrg").write_text(ONE)
    with pytest.raises(FileNotFoundError, match=r"wsj/03: expected the trees of section 03 and no others, .*wsj_2305"):
        open_trees("wsj", data_dir=tmp_path, cache=tmp_path / "cache")
    (folder / "03" / "wsj_2305.mrg").unlink()
    (folder / "05" / "wsj_0501.mrg").unlink()
    with pytest.raises(FileNotFoundError, match=r"wsj/05: expected the trees of section 05 .*got \[\]"):
        open_trees("wsj", data_dir=tmp_path, cache=tmp_path / "cache")


def test_the_wall_street_journal_is_read_only_where_the_user_says(
    craft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_DATA", str(wsj(tmp_path)))
    with pytest.raises(ValueError, match="'wsj' needs a folder.*--data-dir FOLDER"):
        find_trees("wsj", None)
    assert find_trees("wsj", tmp_path) == tmp_path / "wsj"
    assert find_trees("craft", None) == tmp_path / "craft"


@pytest.mark.parametrize(
    ("tree", "reason"), [("(S (NN a)", "a tree that is not closed"), ("(S (NP (-NONE- *)))", "no word")]
)
def test_what_training_text_drops_held_out_text_refuses(craft: Path, tree: str, reason: str) -> None:
    trees = craft / PENN
    written(trees / "2.tree", ONE, tree, TWO)
    corpus = open_trees("craft", data_dir=craft, cache=craft / "cache")
    assert corpus.left_out == {reason: 1}
    assert corpus.about["Trees left out on reading"] == f"1: {reason} 1"
    subwords = corpus.subwords(Subwords("bpe", 400), asked=None)
    made = prepare(corpus, subwords=subwords, cache=craft / "cache", max_length=13, workers=1)
    assert made.train.dropped == {reason: 1, "longer than 13 pieces": 2}
    written(trees / "4.tree", ONE, tree, TWO)
    with pytest.raises(ValueError, match=rf"4\.tree, (line|tree) 2.*{reason}"):
        open_trees("craft", data_dir=craft, cache=craft / "cache")


def test_silver_text_is_a_part_of_train_alone(tmp_path: Path) -> None:
    corpus = open_trees("grammar_trees", silver=True, data_dir=None, cache=tmp_path, sizes=SIZES)
    assert [(part.name, len(list(part.pairs()))) for part in corpus.train] == [("gold", 30), ("silver", 20)]
    alone = open_trees("grammar_trees", data_dir=None, cache=tmp_path, sizes=SIZES)
    assert list(alone.train[0].pairs()) == list(corpus.train[0].pairs())
    for split in ("dev", "test"):
        assert getattr(alone, split).fingerprints() == getattr(corpus, split).fingerprints()
    assert (alone.name, corpus.name) == ("grammar_trees", "grammar_trees_silver")
    assert corpus.about["Trees"] == "gold 30, silver 20, dev 5, test 4"


def test_silver_text_of_others_comes_by_the_data_dir(craft: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no silver text beside 'craft'.*--rows"):
        find_trees("craft", craft, silver=True)
    masked = "(S (NN _) (VB _))"
    written(craft / "gum" / "const" / "GUM_own.ptb", ONE, masked)
    corpus = open_trees("craft", silver=True, data_dir=craft, cache=craft / "cache")
    assert [len(list(part.pairs())) for part in corpus.train] == [4, 1]
    assert corpus.left_out == {"a text without its words": 1}


def test_what_is_no_treebank_and_what_is_no_translation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'multi30k' has no trees; expected one of grammar_trees, craft, wsj"):
        find_trees("multi30k", None)
    with pytest.raises(ValueError, match="is generated; for text in .* add --corpus craft or wsj"):
        find_trees("grammar_trees", tmp_path)
    for name in TREEBANKS:
        assert CORPORA[name].trees
        with pytest.raises(ValueError, match="has no pair 'en-de'"):
            find(name, "en-de", None)
    with pytest.raises(ValueError, match="has trees and no translations"):
        open_corpus("grammar_trees", "en-tree", data_dir=None, cache=tmp_path, sizes=SIZES)


def test_labels_and_tags_are_one_token_each_and_the_card_says_what_the_trees_are(tmp_path: Path) -> None:
    corpus = open_trees("grammar_trees", data_dir=None, cache=tmp_path, sizes=SIZES)
    subwords = corpus.subwords(Subwords("bpe", 400), asked=None)
    prepared = prepare(corpus, subwords=subwords, cache=tmp_path, max_length=128, workers=1)
    lines = [line for _, line in corpus.train[0].pairs()]
    for i, line in enumerate(lines):
        ids = prepared.train.target.sentence(i)
        assert len(ids) == len(line.split()) + 1
        assert prepared.tokenizer.decode(ids.tolist()) == line
    card = json.loads((prepared.card / "data_card.json").read_bytes())
    assert card["about"]["Trees"] == "train 30, dev 5, test 4"


def test_test_is_never_learned_from(craft: Path) -> None:
    """Neither its trees nor, in the vocabulary, its words."""
    trees = craft / PENN
    before = open_trees("craft", data_dir=craft, cache=craft / "cache")
    written(trees / "4.tree", "(FRAG (UH Zounds))")
    after = open_trees("craft", data_dir=craft, cache=craft / "cache")
    assert before.whole == after.whole
    assert list(after.train[0].pairs()) == list(before.train[0].pairs())
    assert before.sha256 != after.sha256


# CRAFT ----------------------------------------------------------------------------------------------------


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
    assert all(len(source.sha256 or "") == 64 for source in known)
    assert [one.urls for one in known if one.archive == f"{TREES}/11319941.tree"] == [(ADDRESS,)]


def test_the_hashes_are_those_of_the_corpus_at_hand() -> None:
    if not AT_HAND.is_dir():
        pytest.skip("REPRO_DATA names no folder with craft in it")
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
    assert [one.name for one in (tmp_path / "craft").iterdir()] == ["structural-annotation"]


def test_the_command_says_what_it_would_fetch_and_what_it_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = typed(capsys, "data", "fetch", "craft", "--dry-run", "--data-dir", tmp_path)
    assert "licence CC BY 3.0; still to fetch: 101 files" in said
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
    altered = tmp_path / "craft" / TREES / "2.tree"
    altered.write_bytes(b"(S (NN word3))\n")  # as long as it was
    with pytest.raises(ValueError, match=r"2\.tree is not the published file: expected sha256 .*, got .* get it again"):
        open_trees("craft", data_dir=tmp_path, cache=tmp_path / "cache")
    altered.unlink()
    missing = r"1 files are missing, the first is .*2\.tree\. Get it with: python -m repro data fetch craft"
    with pytest.raises(FileNotFoundError, match=missing):
        open_trees("craft", data_dir=tmp_path, cache=tmp_path / "cache")
