"""Text that comes cut is known by its marks, and scored as the text it was cut from."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sacremoses import MosesTokenizer
from text_folders import put, text_folder

from repro.corpora.catalogue import Corpus, open_corpus
from repro.corpora.prepare import prepare
from repro.data.tokenizer import train_tokenizer
from repro.data.vocabulary import SCHEMES, Subwords, whole_words
from repro.decoding.bleu import split_compounds
from repro.runs.task import Translation

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


def opened(place: Path) -> Corpus:
    return open_corpus("folder", "fr-de", data_dir=place, cache=place / "cache")


def notes(corpus: Corpus) -> tuple[str, ...]:
    """What is said of how a text is cut: dev and test are one here, which is said besides."""
    return tuple(note for note in corpus.notes if " are one text" not in note)


def scored(place: Path, cut: Callable[[str], str]) -> dict[str, float | str | None]:
    """The scores of the golden translations, as a model that learned from the folder would write them."""
    corpus = opened(place)
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


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "@@"])  # those of Britz et al. are Moses tokens
def test_text_in_pieces_with_a_vocabulary_is_worth_the_same(tmp_path: Path, scheme: str) -> None:
    cut = CUTS[scheme]
    place = folder(tmp_path, cut, source=cut, vocab=vocabulary(cut))
    assert scored(place, cut)["bleu"] == pytest.approx(BLEU, abs=5e-5)
    assert opened(place).in_tokens is False


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
    corpus = opened(folder(tmp_path))
    assert (corpus.pieces, corpus.in_tokens, notes(corpus)) == ("", False, ())
    # neither few marks nor escapes in text that is not cut make it so
    dirty = folder(tmp_path / "dirty", lambda line: line.replace("und", "&amp;"))
    for language, line in (("de", "Anna@@ beispiel.de .\n"), ("fr", "x\n")):
        text = dirty / f"train.{language}"
        text.write_bytes(text.read_bytes() + line.encode())
    found = opened(dirty)
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
    corpus = opened(folder(tmp_path, lambda line: re.sub(r"([.,?!])", r" \1", line)))
    [note] = notes(corpus)
    assert not corpus.in_tokens
    assert re.match(r"100\.0 % of the target lines of the training text that end in a full stop have a blank", note)


def test_unlike_texts_are_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, CUTS["@@"])
    (place / "test.de").write_bytes((GOLDEN / "ref.de").read_bytes())
    pieces = r"train\.de has pieces of words \(@@\) in \d+\.\d% .*test\.de in 0\.0%: expec"
    with pytest.raises(ValueError, match=pieces):
        opened(place)
    folder(tmp_path, moses)
    (place / "dev.de").write_bytes((GOLDEN / "ref.de").read_bytes())
    with pytest.raises(ValueError, match=r"train\.de has full stops that stand apart .*dev\.de in"):
        opened(place)


def test_what_cannot_be_joined_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"by one scheme, got @@ in .* and ## in .* Cut it by one of them"):
        opened(folder(tmp_path, lambda line: CUTS["@@"](line) if "e" in line[:9] else CUTS["##"](line)))
