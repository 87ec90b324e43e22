"""One sentence in two spellings is one to all that compares text."""

import re
from pathlib import Path
from unicodedata import category, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.corpora.catalogue import open_corpus
from repro.corpora.datacard import Overlap
from repro.corpora.filters import first_occurrences, pair_hashes
from repro.corpora.importer import share_of
from repro.corpora.parallel_text import Parallel
from repro.corpora.prepare import prepare
from repro.corpora.same_sentence import QUOTES, normalised, same_spelling
from repro.corpora.subset import subset_of
from repro.data.vocabulary import Subwords

FRENCH = "L'été, c'est \"déjà\" fini ?"
TWINS = {
    "decomposed": normalize("NFD", FRENCH),
    "no-break blanks": FRENCH.replace(" ", "\u00a0"),
    "thin blank": FRENCH.replace(" ?", "\u202f?").replace("\u202f", " \u202f"),
    "curly quotes": FRENCH.replace("'", "’").replace(' "', " “").replace('"', "”"),
    "guillemets": FRENCH.replace(' "', " «").replace('"', "»"),
    "modifier letter": FRENCH.replace("'", "ʼ"),
    "zero width": FRENCH.replace(" ", " \u200b") + "\ufeff",
    "all of it": normalize("NFD", FRENCH).replace(" ", "\u00a0\u2009").replace("'", "’"),
}
OTHERS = ["L'ete, c'est \"deja\" fini ?", "L'été, c'est \"déjà\" fini !", "l'été, c'est \"déjà\" fini ?", "L'été"]
HINDI = {"दिन": "day", "दान": "gift", "दीन": "poor"}  # one consonant more than the vowel signs tell them apart


def parallel(folder: Path, stem: str, pairs: list[tuple[str, str]]) -> Parallel:
    paths = [folder / f"{stem}.{language}" for language in ("fr", "en")]
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return Parallel(paths[0], paths[1])


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
def test_one_sentence_in_two_spellings_is_one(tmp_path: Path, twin: str) -> None:
    assert twin != FRENCH
    # the definition    shares of the importer    duplicates of the cleaner    what the card says is repeated
    assert same_spelling(twin) == same_spelling(FRENCH)
    assert normalised(twin) == normalised(FRENCH) == "l été c est déjà fini"
    drawn = {"dev": 0.4, "test": 0.4}
    assert share_of(twin, drawn) == share_of(FRENCH, drawn)
    assert [kept.tolist() for kept in first_occurrences([pair_hashes([FRENCH, twin], ["x", "x"])])] == [[True, False]]
    seen = Overlap({"dev": [(twin, twin)]}).seen([FRENCH], [FRENCH])
    assert seen == {"seen": {"dev": [1]}, "seen_pairs": {"dev": [1]}}

    # parts of a test set    a test set that is the dev set    sources that are their targets
    part, whole = parallel(tmp_path, "test", [(twin, "x")]), parallel(tmp_path, "dev", [(FRENCH, "x")])
    assert subset_of("part", part, whole).places == (0,)
    parallel(tmp_path, "train", [("un", "one"), (FRENCH, twin)])
    corpus = open_corpus("folder", "fr-en", data_dir=tmp_path, cache=tmp_path / "cache")
    assert any(note.startswith("dev.fr and test.fr are one text") for note in corpus.notes)
    made = prepare(corpus, subwords=Subwords("bpe", 300), cache=tmp_path / "cache", max_length=300, workers=1)
    assert made.repeats["same_sides"] == 0.5
    assert made.repeats["dev_sources"] == made.repeats["test_sources"] == 1.0


def test_other_sentences_are_others() -> None:
    assert len({*map(same_spelling, [FRENCH, *OTHERS])}) == 1 + len(OTHERS)
    assert normalised(OTHERS[0]) != normalised(FRENCH) == normalised(OTHERS[1]) == normalised(OTHERS[2])
    assert len({*map(normalised, HINDI)}) == 3


@given(st.text())
def test_a_spelling_is_its_own(line: str) -> None:
    assert same_spelling(same_spelling(line)) == same_spelling(line)
    assert normalised(same_spelling(line)) == normalised(line)


plain = st.text(st.characters(exclude_categories=("Mn", "Mc", "Me", "Cs", "Cf"), exclude_characters="ʼ"))


@given(plain.filter(lambda line: normalize("NFC", line) == line and not re.search(r"[\u0300-\u036f]", line.casefold())))
def test_words_of_text_without_marks_are_what_they_were(line: str) -> None:
    # published shares of repeated text stand on it
    assert normalised(line) == " ".join(re.findall(r"[^\W_]+", line.casefold()))


def test_every_mark_of_quotation_is_plain() -> None:
    quotes = {chr(i) for i in range(0x3000) if category(chr(i)) in ("Pi", "Pf")} - set("⸂⸃⸄⸅⸉⸊⸌⸍⸜⸝⸠⸡")
    assert quotes <= set("".join(QUOTES.values()))
