"""A corpus is found by its name, or what is missing is named; a known name stands for a known text."""

import gzip
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sacremoses import MosesTokenizer
from text_folders import put, text_folder

from repro.corpora import catalogue
from repro.corpora.catalogue import CORPORA, KNOWN, Corpus, GrammarSizes, open_corpus
from repro.corpora.grammar import generate
from repro.corpora.parallel_text import text_fingerprint
from repro.corpora.prepare import prepare
from repro.data.tokenizer import train_tokenizer
from repro.data.vocabulary import SCHEMES, Subwords, whole_words
from repro.decoding.bleu import split_compounds
from repro.runs.table import Translation


def six_files(folder: Path, dev: str = "dev", **changed: bytes) -> Path:
    """A whole corpus of two, one and one pairs."""
    splits = {"train": [("one", "eins"), ("two", "zwei")], dev: [("three", "drei")], "test": [("four", "vier")]}
    text_folder(folder, **splits)
    for name, content in changed.items():
        put(folder / name.replace("_", "."), content)
    return folder


def opened(folder: Path, name: str = "folder", pair: str = "en-de") -> catalogue.Corpus:
    return open_corpus(name, pair, data_dir=folder, cache=folder / "cache")


# Folders ---------------------------------------------------------------------------------------------------


def test_any_folder_of_parallel_files_is_a_corpus(tmp_path: Path) -> None:
    found = opened(six_files(tmp_path))
    texts = (found.train[0], found.dev, found.test)
    assert [[*text.pairs()] for text in texts] == [
        [("one", "eins"), ("two", "zwei")],
        [("three", "drei")],
        [("four", "vier")],
    ]
    assert [text.may_drop for text in texts] == [True, False, False]
    assert (found.name, found.pair) == ("folder", "en-de")


def test_a_folder_with_a_vocabulary_is_in_pieces_of_moses_tokens(tmp_path: Path) -> None:
    chosen = Subwords("bpe", 300)
    plain = opened(six_files(tmp_path / "plain"))
    assert (plain.vocabulary, plain.in_tokens, plain.subwords(chosen, asked=300)) == (None, False, chosen)
    put(six_files(tmp_path / "given") / "vocab", b"eins\nzwei\n")
    given = opened(tmp_path / "given")
    assert (given.vocabulary, given.in_tokens) == (tmp_path / "given" / "vocab", True)
    assert given.subwords(chosen, asked=None) == Subwords("given", 0)
    with pytest.raises(ValueError, match="--vocab-size 300: the text came split into sub-words, those of .*vocab"):
        given.subwords(chosen, asked=300)


def test_a_test_set_that_is_the_dev_set_is_noted(tmp_path: Path) -> None:
    for test_de, expected in ((b"drei\r\n", ["valid.en and test.en are one text"]), (b"vier\n", [])):
        notes = opened(six_files(tmp_path, dev="valid", test_en=b"three\n", test_de=test_de)).notes
        assert [note.partition(",")[0] for note in notes] == expected


def test_the_hash_is_of_the_text_and_its_places(tmp_path: Path) -> None:
    plain = opened(six_files(tmp_path / "plain", dev="valid"))
    packed = six_files(tmp_path / "packed")
    for path in list(packed.iterdir()):
        put(packed / f"{path.name}.gz", gzip.compress(path.read_bytes()))
        path.unlink()
    assert opened(packed).sha256 == plain.sha256
    assert [*plain.files] == ["train.en", "train.de", "dev.en", "dev.de", "test.en", "test.de"]

    others = [
        opened(six_files(tmp_path / "word", test_de=b"fuenf\n")),
        opened(six_files(tmp_path / "order", train_en=b"two\none\n")),
        opened(six_files(tmp_path / "swapped", dev_en=b"four\n", test_en=b"three\n")),
    ]
    for path in (tmp_path / "plain").glob("*.de"):
        path.rename(path.with_suffix(".fr"))
    others.append(opened(tmp_path / "plain", pair="en-fr"))
    assert len({plain.sha256, *(other.sha256 for other in others)}) == 5


def test_of_two_dev_texts_in_a_folder_none_is_chosen(tmp_path: Path) -> None:
    six_files(tmp_path, dev="val")
    text_folder(tmp_path, "en-fr", valid=[("five", "cinq")])
    assert opened(tmp_path).dev.source.name == "val.en"  # of this pair it is the only one
    six_files(tmp_path, dev="valid")
    refused = rf"{tmp_path} has valid and val: expected one text for dev\. Move what is not meant"
    with pytest.raises(ValueError, match=refused):
        opened(tmp_path)


def test_a_split_that_is_empty_or_unequal_is_refused_when_opened(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"test\.en and .*test\.de hold no line"):
        opened(six_files(tmp_path / "empty", test_en=b"", test_de=b""))
    with pytest.raises(ValueError, match=r"train\.en has 2 lines, .*train\.de has 1"):
        opened(six_files(tmp_path / "unequal", train_de=b"eins"))


def test_a_missing_corpus_says_what_where_and_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "PROJECT", tmp_path / "project")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "given"))
    put(tmp_path / "given" / "multi30k" / "val.en", b"a\n")
    with pytest.raises(FileNotFoundError) as error:
        open_corpus("multi30k", "en-fr", data_dir=None, cache=tmp_path)
    message = str(error.value)
    assert "expected the files train.en, train.fr, val.en, val.fr, test_2016_flickr.en" in message
    assert f"{tmp_path}/given/multi30k (lacks train|multi30k_train.en, train|multi30k_train.fr, val|" in message
    assert f"{tmp_path}/project/data/multi30k (no such folder)" in message
    assert "shared" not in message  # no folder outside the project but those that the user names
    assert "python -m repro data fetch multi30k-en-de" in message


@pytest.mark.parametrize(
    ("name", "pair", "message"),
    [
        ("wmt", "en-de", "Unknown corpus 'wmt'; expected one of grammar, multi30k"),
        ("tatoeba", "de-en", "Corpus 'tatoeba' has no pair 'de-en'; expected one of en-de, en-fr"),
        ("folder", "../x-de", "A pair is two languages"),
        ("folder", "en-de", "Corpus 'folder' needs a folder. .*--data-dir FOLDER"),
        ("grammar", "en-de", "Corpus 'grammar' is generated: expected its sizes, got none"),
    ],
)
def test_what_cannot_be_opened(tmp_path: Path, name: str, pair: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_corpus(name, pair, data_dir=None, cache=tmp_path)


def test_a_manifest_of_others_beside_ones_own_text_is_left_alone(tmp_path: Path) -> None:
    put(six_files(tmp_path) / "manifest.json", b'{"my": "notes"}')
    made = prepare(opened(tmp_path), subwords=Subwords("bpe", 300), cache=tmp_path / "cache", max_length=9)
    assert len(made.train) == 2


@pytest.fixture
def tiny_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named corpus whose test set is known by its hash."""
    known = catalogue.NamedCorpus(folders={"en-de": "tiny_ende"}, licence="none", origin="Nowhere.")
    monkeypatch.setitem(CORPORA, "tiny", known)
    monkeypatch.setitem(KNOWN, "tiny_ende/test.de", hashlib.sha256(b"vier\n").hexdigest())


@pytest.mark.usefixtures("tiny_corpus")
def test_another_text_under_a_known_name_is_refused(tmp_path: Path) -> None:
    six_files(tmp_path, dev="valid")  # a corpus with a name knows the name of its dev text
    assert opened(six_files(tmp_path), "tiny").dev.source.name == "dev.en"
    (tmp_path / "valid.en").unlink()
    altered = six_files(tmp_path, test_de=b"vieR\n")
    expected, got = (hashlib.sha256(text).hexdigest() for text in (b"vier\n", b"vieR\n"))
    with pytest.raises(ValueError, match=f"not the text known as tiny: expected SHA-256 {expected}, got {got}"):
        opened(altered, "tiny")
    assert opened(altered).name == "folder"


@pytest.mark.usefixtures("tiny_corpus")
def test_the_order_in_which_folders_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "PROJECT", tmp_path / "project")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "given"))

    def found(data_dir: Path | None = None) -> Path:
        return open_corpus("tiny", "en-de", data_dir=data_dir, cache=tmp_path).test.source.parent

    for place in ("project/data/tiny", "project/data/tiny_ende", "given/tiny", "given/tiny_ende"):
        folder = tmp_path / place  # goes before those above it
        assert found(six_files(folder)) == folder
        assert found() == folder
        assert found(folder.parent) == folder
    with pytest.raises(FileNotFoundError, match="elsewhere"):  # a folder that is named is the only one
        found(tmp_path / "elsewhere")


def test_names_of_corpora_and_addresses_of_archives_need_the_standard_library_alone() -> None:
    program = (
        "import sys; before = set(sys.modules); import repro.corpora.catalogue; "
        "print('repro.corpora.grammar.generate' in sys.modules); "
        "print(*{name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=catalogue.PROJECT)
    assert done.stdout.split() == ["False", "repro"], done.stderr


# The embedded corpus ---------------------------------------------------------------------------------------

SIZES = GrammarSizes(n_train=3, n_dev=2, n_test=1, seed=7)


def test_the_grammar_is_generated_once_for_both_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    german = open_corpus("grammar", "en-de", data_dir=None, cache=tmp_path, sizes=SIZES)
    monkeypatch.setattr(generate, "write_grammar", None)  # nobody asks for it again
    french = open_corpus("grammar", "en-fr", data_dir=None, cache=tmp_path, sizes=SIZES)
    assert german.train[0].source == french.train[0].source
    assert [len(list(text.pairs())) for text in (french.train[0], french.dev, french.test)] == [3, 2, 1]
    assert german.sha256 != french.sha256


def test_another_generator_makes_another_grammar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "__file__", str(tmp_path / "source" / "generate.py"))
    places = set()
    for name, content in (("generate.py", b"1"), ("generate.py", b"2"), ("lexicon.py", b"more words")):
        put(tmp_path / "source" / name, content)
        found = open_corpus("grammar", "en-de", data_dir=None, cache=tmp_path, sizes=SIZES)
        places.add(found.train[0].source.parent)
    assert len(places) == 3


# Real text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pair", "sizes"),
    [
        ("multi30k", "en-de", (29_000, 1_014, 1_000)),
        ("multi30k", "en-fr", (29_000, 1_014, 1_000)),
        ("multi30k_tok", "en-de", (29_000, 1_014, 1_000)),
        ("tatoeba", "en-de", (162_065, 2_380, 2_390)),
        ("tatoeba", "en-fr", (136_787, 2_000, 2_000)),
    ],
)
def test_real_text_is_recognised(
    real_text: Path, tmp_path: Path, name: str, pair: str, sizes: tuple[int, int, int]
) -> None:
    if not (folder := real_text / CORPORA[name].folders[pair]).is_dir():
        pytest.skip(f"needs the real text: {folder} is absent.")
    found = open_corpus(name, pair, data_dir=real_text, cache=tmp_path)
    assert tuple(text_fingerprint(of.target).n_lines for of in (found.train[0], found.dev, found.test)) == sizes
    assert len(list(found.test.pairs())) == sizes[2]


@pytest.mark.parametrize(("pair", "further"), [("en-de", {"newstest2014": 2_737}), ("en-fr", {})])
def test_the_news_tests_are_recognised(real_text: Path, tmp_path: Path, pair: str, further: dict[str, int]) -> None:
    # the training text of wmt14 is no part of the real text at hand
    folder = real_text / CORPORA["wmt14"].folders[pair]
    if not folder.is_dir():
        pytest.skip(f"needs the real text: {folder} is absent.")
    for file in folder.glob("newstest201[34]*.gz"):
        shutil.copy(file, tmp_path)
    text_folder(tmp_path, pair, train=[("a", "a")])
    found = open_corpus("wmt14", pair, data_dir=tmp_path, cache=tmp_path / "cache")
    assert (len(list(found.dev.pairs())), len(list(found.test.pairs()))) == (3_000, 3_003)
    assert {name: len(list(text.pairs())) for name, text in found.further.items()} == further


# Other test sets -------------------------------------------------------------------------------------------


def test_other_test_sets_beside_a_corpus_are_found_known_and_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "KNOWN", {"multi30k/test_2017_flickr.de": "ef" * 32})
    one = [("one", "eins")]
    captions = text_folder(tmp_path, train=one, val=one, test_2016_flickr=[("four", "vier")])
    without = opened(captions, "multi30k")
    assert without.further == {}
    put(captions / "test_2017_mscoco.en", b"five\n")
    assert opened(captions, "multi30k").further == {}, "half of one is none"
    (captions / "test_2017_mscoco.de.gz").write_bytes(gzip.compress(b"f\xc3\xbcnf\n"))
    found = opened(captions, "multi30k")
    assert {name: [*text.pairs()] for name, text in found.further.items()} == {"test_2017_mscoco": [("five", "fünf")]}
    assert (found.sha256, found.files) == (without.sha256, without.files)
    text_folder(captions, test_2017_flickr=[("five", "five")])
    with pytest.raises(
        ValueError, match=r"test_2017_flickr\.de is not the text known as multi30k: expected SHA-256 efef"
    ):
        opened(captions, "multi30k")


def test_wmt14_has_its_whole_test_set_and_beside_it_the_part_that_the_task_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "KNOWN", {})
    tests = {"newstest2014_full": [("two", "zwei"), ("four", "vier")], "newstest2014": [("four", "vier")]}

    def found(*names: str) -> Corpus:
        held_out = {"newstest2013": [("one", "eins")]} | {name: tests[name] for name in names}
        return opened(text_folder(tmp_path / "-".join(names), train=[("six", "sechs")], **held_out), "wmt14")

    both, whole, part = found("newstest2014_full", "newstest2014"), found("newstest2014_full"), found("newstest2014")
    assert [*both.test.pairs()] == tests["newstest2014_full"]
    assert {name: [*text.pairs()] for name, text in both.further.items()} == {"newstest2014": tests["newstest2014"]}
    assert [*part.test.pairs()] == tests["newstest2014"]  # what was there before there were two
    assert (whole.further, part.further) == ({}, {}), "a text is scored once"
    assert both.sha256 == whole.sha256 != part.sha256  # the part decides nothing of how a model is trained


# Text that comes cut --------------------------------------------------------------------------------------


GOLDEN = Path(__file__).parents[1] / "decoding" / "golden"
BLEU = 67.5295  # of the 60 sentences there, as plain text
# as Moses tokens: published, and of plain text, for which some marks are joined to the wrong side
MOSES = (pytest.approx(70.8460, abs=5e-5), pytest.approx(67.4244, abs=5e-5))


def lines(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8").split("\n")[:-1]


def after_four(mark: str) -> Callable[[str], str]:
    """Cut each word after each four letters."""
    return lambda line: re.sub(r"([^ ]{4})(?=[^ ])", rf"\1{mark}", line)


CUTS: dict[str, Callable[[str], str]] = {
    "@@": after_four("@@ "),
    "##": after_four(" ##"),
    "\u2581": lambda line: " ".join("\u2581" + after_four(" ")(word) for word in line.split(" ")),
    "</w>": lambda line: " ".join(after_four(" ")(word) + "</w>" for word in line.split(" ")),
    "\uffed": after_four("\uffed "),
}


def moses(line: str) -> str:
    """The form in which WMT 2014 is handed round."""
    tokens: str = MosesTokenizer("de").tokenize(line, return_str=True)
    return split_compounds(tokens)


def folder(place: Path, by: Callable[[str], str] = str, *, source: Callable[[str], str] = str, vocab: str = "") -> Path:
    """Text of one's own: the 60 golden sentences thrice, and once more as dev and as test."""
    pairs = [(source(line), by(line)) for line in lines(GOLDEN / "ref.de")]
    text_folder(place, "fr-de", train=pairs * 3, dev=pairs, test=pairs)
    if vocab:
        put(place / "vocab", vocab)
    return place


def in_french(place: Path) -> Corpus:
    return open_corpus("folder", "fr-de", data_dir=place, cache=place / "cache")


def notes(corpus: Corpus) -> tuple[str, ...]:
    """What is said of how a text is cut: dev and test are one here, which is said besides."""
    return tuple(note for note in corpus.notes if " are one text" not in note)


def scored(place: Path, cut: Callable[[str], str]) -> dict[str, float | str | None]:
    """The scores of the golden translations, as a model that learned from the folder would write them."""
    corpus = in_french(place)
    subwords = corpus.subwords(Subwords("bpe", 600), asked=None)
    made = prepare(corpus, subwords=subwords, cache=place / "cache", max_length=1_000, workers=1)
    ids = (made.tokenizer.encode([cut(line)])[0] for line in lines(GOLDEN / "hyp.de"))
    hypotheses = [made.tokenizer.decode(line) for line in ids]
    return Translation("fr-de").score(hypotheses, made.test.references, in_tokens=corpus.in_tokens)


def vocabulary(cut: Callable[[str], str]) -> str:
    text = [cut(line) for name in ("ref.de", "hyp.de") for line in lines(GOLDEN / name)]
    return "".join(f"{token}\n" for token in sorted({token for line in text for token in line.split(" ")}))


# Scores --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_in_pieces_is_worth_what_its_words_are(tmp_path: Path, scheme: str) -> None:
    cut = CUTS[scheme]
    plain = Translation("fr-de").score(lines(GOLDEN / "hyp.de"), lines(GOLDEN / "ref.de"), in_tokens=False)
    as_it_stands = [[cut(line) for line in lines(GOLDEN / f"{side}.de")] for side in ("hyp", "ref")]
    wrong = Translation("fr-de").score(as_it_stands[0], as_it_stands[1], in_tokens=False)["bleu"]
    found = scored(folder(tmp_path, cut), cut)
    assert found == plain
    assert found["bleu"] == pytest.approx(BLEU, abs=5e-5)
    assert abs(float(wrong or 0) - BLEU) > 5
    if scheme != "@@":  # with a vocabulary those of Britz et al. are Moses tokens
        place = folder(tmp_path / "given", cut, source=cut, vocab=vocabulary(cut))
        assert scored(place, cut)["bleu"] == pytest.approx(BLEU, abs=5e-5)
        assert in_french(place).in_tokens is False


def test_moses_tokens_are_scored_as_they_are_cut(tmp_path: Path) -> None:
    def cut(line: str) -> str:
        return " ".join(word if "##AT##" in word else CUTS["@@"](word) for word in moses(line).split(" "))

    for by in (moses, cut):  # whole, or in pieces
        found = scored(folder(tmp_path / by.__name__, by), by)
        assert (found["bleu_published"], found["bleu"]) == MOSES
        assert "|detok:moses-de-" in str(found["bleu_signature"])


# Joining -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_tokenizers_join_as_references_are_joined(scheme: str, kind: Any) -> None:
    cut = CUTS[scheme]
    odd = ["ab", "Donaudampfschiff", "a @-@ b", "Kanu , ##AT##-##AT## x", "zwölf Boxkämpfer", "@@ x", "##x y"]
    text = [cut(line) for line in odd] + odd
    made = train_tokenizer(map(cut, lines(GOLDEN / "ref.de")), Subwords(kind, 700), pieces=scheme)
    assert [made.decode(made.encode([line])[0]) for line in text] == [whole_words(line, scheme) for line in text]


def test_pieces_are_joined_by_hand() -> None:
    assert whole_words("Bun@@ des@@ republik .", "@@") == "Bundesrepublik ."
    assert whole_words("bun ##des ##republik - x ##AT##-##AT##", "##") == "bundesrepublik - x ##AT##-##AT##"
    assert whole_words("\u2581Die \u2581Bund es \u2581.", "\u2581") == "Die Bundes ."
    assert whole_words("die</w> bun des</w> .</w>", "</w>") == "die bundes ."
    assert whole_words("Bund\uffed es \uffed.", "\uffed") == "Bundes."
    assert whole_words("Bun@@ des", "") == "Bun@@ des"


# What is found -------------------------------------------------------------------------------------------------------


def test_plain_text_is_left_as_it_is(tmp_path: Path) -> None:
    corpus = in_french(folder(tmp_path))
    assert (corpus.pieces, corpus.in_tokens, notes(corpus)) == ("", False, ())
    # neither few marks nor escapes in text that is not cut make it so
    dirty = folder(tmp_path / "dirty", lambda line: line.replace("und", "&amp;"))
    for language, line in (("de", "Anna@@ beispiel.de .\n"), ("fr", "x\n")):
        text = dirty / f"train.{language}"
        text.write_bytes(text.read_bytes() + line.encode())
    found = in_french(dirty)
    assert (found.pieces, found.in_tokens, notes(found)) == ("", False, ())


REAL = ["multi30k-de", "multi30k-fr", "tatoeba_ende-de", "gigafren_enfr_30k-fr"]
REAL_MOSES = ["multi30k_tok-de", "multi30k_tok-fr", "opennmt_ende_10k_tok-de"]


@pytest.mark.parametrize("corpus", [*REAL, *REAL_MOSES])
def test_real_text_is_taken_for_what_it_is(tmp_path: Path, real_text: Path, corpus: str) -> None:
    """The first 10,000 lines of a real text as train, some of them as dev and test."""
    name, target = corpus.split("-")
    for language in ("en", target):
        text = gzip.decompress((real_text / name / f"train.{language}.gz").read_bytes()).split(b"\n")[:10_000]
        for split, kept in (("train", text), ("dev", text[50:1_000]), ("test", text[50:1_000])):
            put(tmp_path / f"{split}.{language}", b"\n".join(kept) + b"\n")
    found = open_corpus("folder", f"en-{target}", data_dir=tmp_path, cache=tmp_path / "cache")
    assert (found.pieces, found.in_tokens) == ("", corpus in REAL_MOSES)
    assert ["of Moses (" in note for note in notes(found)] == [True] * found.in_tokens


def test_full_stops_that_stand_apart_are_told(tmp_path: Path) -> None:
    corpus = in_french(folder(tmp_path, lambda line: re.sub(r"([.,?!])", r" \1", line)))
    [note] = notes(corpus)
    assert not corpus.in_tokens
    assert re.match(r"100\.0 % of the target lines of the training text that end in a full stop have a blank", note)


def test_unlike_texts_are_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, CUTS["@@"])
    (place / "test.de").write_bytes((GOLDEN / "ref.de").read_bytes())
    pieces = r"train\.de has pieces of words \(@@\) in \d+\.\d% .*test\.de in 0\.0%: expec"
    with pytest.raises(ValueError, match=pieces):
        in_french(place)
    folder(tmp_path, moses)
    (place / "dev.de").write_bytes((GOLDEN / "ref.de").read_bytes())
    with pytest.raises(ValueError, match=r"train\.de has full stops that stand apart .*dev\.de in"):
        in_french(place)


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, lambda line: CUTS["@@"](line) if "e" in line[:9] else CUTS["##"](line))
    for split in ("dev", "test"):  # these are whole, and would be unlike the other once it is cut by one
        (place / f"{split}.de").write_bytes((GOLDEN / "ref.de").read_bytes())
    with pytest.raises(ValueError, match=r"by one scheme, got @@ in .* and ## in .* Cut it by one of them"):
        in_french(place)
