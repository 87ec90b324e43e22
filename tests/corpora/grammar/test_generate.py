"""The corpus that is written: each source once, the same bytes on every machine, held-out text apart."""

import hashlib
from itertools import islice

from repro.corpora.grammar import lexicon as lex
from repro.corpora.grammar.author import Author
from repro.corpora.grammar.english import english
from repro.corpora.grammar.generate import sentences, write_grammar


def test_a_source_comes_once(monkeypatch):
    """Where the author says the same again, the reader does not see it; nor what is too short or too long."""
    author = Author(0)
    drawn = [author.sentence() for _ in range(50)]
    trees = [tree for tree in drawn if 4 <= len(english(tree).split()) <= 30][:3]
    unfit = [tree for tree in drawn if not 4 <= len(english(tree).split()) <= 30][:1]
    assert len({english(tree) for tree in trees}) == 3
    assert unfit
    script = iter([trees[0], *unfit, trees[0], trees[1], trees[0], trees[2]])
    monkeypatch.setattr(Author, "sentence", lambda author: next(script))
    assert [en for en, _, _ in islice(sentences(0), 3)] == [english(tree) for tree in trees]


def test_the_corpus_is_pinned():
    """After a change of the grammar: read 60 sentences in three languages, then write the new values. What held of all
    these: cases after prepositions, elisions, agreement, 4 to 30 words (12 on average), and the law of Zipf.

    Each process has its own hash seed, so this also sees an order that depends on it.
    """
    digests = []
    for seed, n in ((0, 1_000), (3, 3_000)):
        text = "".join("\n".join(triple) + "\n" for triple in islice(sentences(seed), n))
        digests.append(hashlib.sha256(text.encode()).hexdigest())
    assert digests == [
        "db4750323a569dd17dfda17c04852b93a480dd8eb13a40b7e180181f1062e243",
        "e95d92d1700ae9ee84ee0207dc6d5512b604eaefb206210020a5f0c7ada50eae",
    ]


def test_every_english_word_has_one_german_and_one_french():
    for words in (lex.nouns, lex.adjectives, lex.modifiers):
        assert len({word.en for word in words if word.en}) == len({(w.en, w.de, w.fr) for w in words})


def read(folder, name):
    return (folder / name).read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def test_splits_are_disjoint_and_parallel(tmp_path):
    sizes = {"train": 400, "dev": 30, "test": 20}
    for name, n_train, seed in (("one", 400, 0), ("other", 400, 1), ("small", 10, 0)):
        write_grammar(tmp_path / name, n_train=n_train, n_dev=30, n_test=20, seed=seed)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == sorted(f"{split}.{language}" for split in sizes for language in ("en", "de", "fr"))
    sources = []
    for split, n in sizes.items():
        assert [len(read(tmp_path / "one", f"{split}.{language}")) for language in ("en", "de", "fr")] == [n] * 3
        sources += read(tmp_path / "one", f"{split}.en")
    assert len(set(sources)) == len(sources) == 450
    assert read(tmp_path / "one", "test.en") != read(tmp_path / "other", "test.en")
    # the held-out sets do not depend on the size of the training text
    for name in ("dev.en", "dev.de", "test.en", "test.fr"):
        assert read(tmp_path / "small", name) == read(tmp_path / "one", name)
    assert read(tmp_path / "one", "train.en")[:10] == read(tmp_path / "small", "train.en")
