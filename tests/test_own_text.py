"""A reader's own text, of languages that the paper never saw: from a folder to a table, in a few steps."""

import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest
from own_signals import places
from text_folders import put, text_folder

from repro.corpora.catalogue import open_corpus
from repro.corpora.prepare import prepare
from repro.data.vocabulary import Subwords
from repro.experiment import Paper, Row, main
from repro.results import record
from repro.results.record import Record

pytestmark = pytest.mark.usefixtures("own_signals")
SUBJECTS = {"the dog": "el perro", "a cat": "un gato", "my sister": "mi hermana", "no child": "ningún niño"}
VERBS = {"sees": "ve", "hears": "oye", "finds": "encuentra"}
OBJECTS = {"the house": "la casa", "an apple": "una manzana", "two trees": "dos árboles"}
PAIRS = [
    (f"{subject} {verb} {thing} .", f"{SUBJECTS[subject]} {VERBS[verb]} {OBJECTS[thing]} .")
    for subject in SUBJECTS
    for verb in VERBS
    for thing in OBJECTS
]


def trained(folder: Path, text: Path, pair: str, *more: str) -> Record:
    """The record of one row after two steps on the text."""
    options = ["--scale=smoke", f"--data-dir={text}", f"--pair={pair}", "--rows", "four", "--steps=1"]
    options += places(folder, *more)
    main("table3_A", [Row("four", lambda base: replace(base, n_heads=4), Paper())], options)
    [made] = (folder / "runs").glob("*/record.json")
    return record.load(made)


def test_a_language_that_the_authors_never_scored_is_trained_to_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = text_folder(tmp_path / "text", "en-es", train=PAIRS[:30], dev=PAIRS[29:33], test=PAIRS[33:])
    done = trained(tmp_path, text, "en-es", "--vocab-size=5000", "--batch-tokens=4096")
    assert done.status == "finished"
    for score in (done.scores["dev"], done.scores["test"]):
        assert score["bleu"] is not None
        assert score["bleu_published"] is score["bleu_published_signature"] is None
    repeats = {"dev_sources": 0.25, "dev_pairs": 0.25}  # one of four
    assert done.corpus["repeats"] == repeats | dict.fromkeys(("test_sources", "test_pairs", "same_sides"), 0.0)
    note = "No multi-bleu score, compounds split, of en-es: the authors' script knows no such target language."
    said = " ".join(capsys.readouterr().out.split())
    assert note in said
    seen = "folder en-es: 25.0 % of the dev pairs and 25.0 % of the dev source sentences are in the training text."
    assert f"Note on {seen}" in said


def test_text_in_pieces_of_a_language_with_a_tag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # cut by the reader, as the set of Britz et al. is: nothing is learned, and nothing is cut again
    tokens = [(f"a{i % 5}@@ b{i % 3} &quot; .", f"c{i % 5}@@ d{i % 3} &quot; .") for i in range(40)]
    held_out = {"dev": [tokens[1], ("b1 .", "d1 .")], "test": tokens[2:4]}
    text = text_folder(tmp_path / "text", "en-de-AT", train=tokens, **held_out)
    vocabulary = sorted({token for pair in tokens for line in pair for token in line.split(" ")} - {"d1"})
    put(text / "vocab", "".join(f"{token}\n" for token in vocabulary))
    put(text / "train.en.gz", gzip.compress((text / "train.en").read_bytes()))
    (text / "train.en").unlink()
    done = trained(tmp_path, text, "en-de-AT")
    assert done.tokenizer["size"] == len(vocabulary) + 3  # with <pad>, </s> and the unknown
    assert (done.settings["pieces"], done.settings["vocab_size"], done.pair) == ("given", 0, "en-de-AT")
    for score in (done.scores["dev"], done.scores["test"]):
        assert "|tok:given-unescaped|" in (score["bleu_published_signature"] or "")
        assert "|detok:moses-de-sacremoses-" in (score["bleu_signature"] or "")
    said = capsys.readouterr().out.replace("\n", " ")
    assert "50.0 % of the dev pairs" in said
    assert "Note on folder en-de-AT: 8.1 % of the target tokens of train are not in the vocabulary" in said  # 13 of 160
    assert "33.3 % of the target tokens of dev are not in the vocabulary" in said  # 2 of 6
    assert said.count("not in the vocabulary") == 4  # and below the table
    # what the console said of the text stands in the record, and from there beside the numbers
    [of_train, of_dev] = [note for note in done.corpus["notes"] if "not in the vocabulary" in note]
    assert of_train.startswith("8.1 % of the target tokens of train are not in the vocabulary")
    [table] = (tmp_path / "results").rglob("table3.md")
    assert f"folder en-de-AT: {of_dev}" in table.read_text()


VOCABULARIES = {  # of a text of "the@@ re a" and "da@@ r b"
    "JSON": (b'{"the@@": 4, "re": 5, "a": 6, "da@@": 7}\n', "A vocabulary has one token a line, got '"),
    "counts beside the tokens": (b"the 100\n", "A vocabulary has one token a line, got 'the 100'"),
    "Latin-1": (b"caf\xe9\nx\n", "'utf-8' codec can't decode byte 0xe9 in position 3"),
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_another_vocabulary_is_refused(tmp_path: Path, name: str) -> None:
    pairs = [("the@@ re a", "da@@ r b")]
    content, refused = VOCABULARIES[name]
    put(text_folder(tmp_path, train=pairs, dev=pairs, test=pairs) / "vocab", content)
    corpus = open_corpus("folder", "en-de", data_dir=tmp_path, cache=tmp_path / "cache")
    with pytest.raises(ValueError, match=f"^{tmp_path}/vocab:? {refused}"):
        prepare(corpus, subwords=Subwords("given", 0), cache=tmp_path / "cache", max_length=32)


def test_text_in_pieces_without_a_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pieces = [(source, re.sub(r"(\w{3})(?=\w)", r"\1@@ ", target)) for source, target in PAIRS]
    text = text_folder(tmp_path / "text", train=pieces[:28], dev=pieces[28:32], test=pieces[32:])
    done = trained(tmp_path, text, "en-de", "--vocab-size=400")
    notes = [
        "100.0 % of the target lines of the training text bear the marks of pieces of words (@@): they are joined",
        "100.0 % of the target lines of the training text that end in a full stop have a blank before it: the text "
        "looks tokenised and is scored as it stands, so its BLEU is not that of plain text.",
    ]
    assert len(done.corpus["notes"]) == len(notes)
    said = " ".join(capsys.readouterr().out.split())
    [page] = (tmp_path / "results").rglob("table3.md")
    for note in notes:
        assert f"{note}" in said
        assert note in " ".join(page.read_text("utf-8").split())
    [made] = (tmp_path / "runs").glob("*/test.hyp")
    assert "@@ " not in made.read_text("utf-8")
