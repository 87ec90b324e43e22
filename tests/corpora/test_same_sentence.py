"""One sentence in two spellings is one to all that compares text, and a part of a test set is found line by line."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unicodedata import category, normalize

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from text_folders import text_folder

from repro.corpora.catalogue import open_corpus
from repro.corpora.importer import share_of
from repro.corpora.parallel_text import QUOTES, Parallel, normalised, same_spelling, subset_of
from repro.corpora.prepare import looked_for, prepare, seen_lines
from repro.data.vocabulary import Subwords
from repro.runs.run import Run
from repro.runs.task import Translation

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


def parallel(folder: Path, stem: str, pairs: list[tuple[str, str]], languages: str = "en-de") -> Parallel:
    text_folder(folder, languages, **{stem: pairs})
    source, target = (folder / f"{stem}.{language}" for language in languages.split("-"))
    return Parallel(source, target)


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
def test_one_sentence_in_two_spellings_is_one(twin: str) -> None:
    assert twin != FRENCH
    assert same_spelling(twin) == same_spelling(FRENCH)
    assert normalised(twin) == normalised(FRENCH) == "l été c est déjà fini"


def test_all_that_compares_text_has_this_definition(tmp_path: Path) -> None:
    twin = TWINS["all of it"]
    # shares of the importer    what the card says is repeated
    drawn = {"dev": 0.4, "test": 0.4}
    assert share_of(twin, drawn) == share_of(FRENCH, drawn)
    seen = seen_lines(looked_for({"dev": [(twin, twin)]}), [FRENCH], [FRENCH])
    assert [*seen] == [("seen", "dev", 1), ("seen_pairs", "dev", 1)]

    # parts of a test set    sources that are their targets
    part, whole = (parallel(tmp_path, name, [(one, "x")], "fr-en") for name, one in (("test", twin), ("dev", FRENCH)))
    assert subset_of("part", part, whole).places == (0,)
    parallel(tmp_path, "train", [("un", "one"), (FRENCH, twin)], "fr-en")
    corpus = open_corpus("folder", "fr-en", data_dir=tmp_path, cache=tmp_path / "cache")
    made = prepare(corpus, subwords=Subwords("bpe", 300), cache=tmp_path / "cache", max_length=300, workers=1)
    assert made.repeats["same_sides"] == 0.5
    assert made.repeats["dev_sources"] == made.repeats["test_sources"] == 1.0


def test_other_sentences_are_others() -> None:
    assert len({*map(same_spelling, [FRENCH, *OTHERS])}) == 1 + len(OTHERS)
    assert normalised(OTHERS[0]) != normalised(FRENCH) == normalised(OTHERS[1]) == normalised(OTHERS[2])
    assert len({*map(normalised, HINDI)}) == 3
    assert normalised("  “Straße” – it's\u00a0A_B, 3.5 %!") == "strasse it s a b 3 5"


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


# Parts of test sets ----------------------------------------------------------------------------------------

WHOLE = [("one dog", "ein Hund"), ("two  cats", "zwei Katzen"), ("one dog", "ein Hund!"), ("a bird", "ein Vogel")]


def test_lines_are_found_in_whatever_order(tmp_path: Path) -> None:
    whole = parallel(tmp_path, "whole", WHOLE)
    part = parallel(tmp_path, "part", [("a bird ", "der Vogel"), ("one dog", "ein Hund!"), ("two cats", "zwei Katzen")])
    found = subset_of("part", part, whole)
    assert (found.name, found.places) == ("part", (3, 0, 1))
    assert found.references == ("der Vogel", "ein Hund!", "zwei Katzen")  # its own, should they differ
    other = subset_of("part", parallel(tmp_path / "other", "part", [("a bird", "der Vogel")]), whole)
    assert found.sha256 != other.sha256
    unknown = parallel(tmp_path, "part", [("a bird", "ein Vogel"), ("a fish", "ein Fisch")])
    with pytest.raises(ValueError, match=r"part\.en, line 2 is not in .*whole\.en; expected each line of x to be one"):
        subset_of("x", unknown, whole)


def test_wmt14_has_its_whole_test_set_and_the_part_that_the_task_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repro.corpora.catalogue.KNOWN", {})
    tests = {"newstest2014_full": [*WHOLE[1:], ("a horse", "ein Pferd")], "newstest2014": [WHOLE[3], WHOLE[1]]}

    def opened(*names: str) -> Any:
        held_out = {"newstest2013": WHOLE[:1]} | {name: tests[name] for name in names}
        folder = text_folder(tmp_path / "-".join(names), train=WHOLE, **held_out)
        return open_corpus("wmt14", "en-de", data_dir=folder, cache=tmp_path / "cache")

    both = opened("newstest2014_full", "newstest2014")
    assert len(list(both.test.pairs())) == 4
    assert (both.subset.name, both.subset.places) == ("newstest2014", (2, 0))
    whole, part = opened("newstest2014_full"), opened("newstest2014")
    assert (whole.subset, part.subset) == (None, None)
    assert len(list(part.test.pairs())) == 2  # what was there before there were two
    assert both.sha256 == whole.sha256 != part.sha256  # the part decides nothing of how a model is trained


def test_the_part_is_scored_from_the_lines_of_its_own() -> None:
    hypotheses = ["zwei Katzen schlafen hier", "falsch", "ein Vogel singt dort oben", "auch falsch"]
    references = ("ein Vogel singt dort oben", "zwei Katzen schlafen dort")
    subset = SimpleNamespace(name="newstest2014", places=(2, 0), references=references)
    spec = SimpleNamespace(task=Translation("en-de"), text=SimpleNamespace(in_tokens=False))
    corpus = SimpleNamespace(subset=subset)
    run: Any = SimpleNamespace(dir=SimpleNamespace(corpus=corpus, spec=spec))
    found = Run._score_subset(run, hypotheses)
    chosen = ["ein Vogel singt dort oben", "zwei Katzen schlafen hier"]
    assert found is not None
    assert (found["name"], found["n"]) == ("newstest2014", 2)
    assert found["bleu"] == sacrebleu.corpus_bleu(chosen, [list(references)]).score
    assert found["bleu_published"] is not None
    corpus.subset = None
    assert Run._score_subset(run, hypotheses) is None


def test_the_real_test_set_and_its_part(real_text: Path, tmp_path: Path) -> None:
    whole, part = (
        Parallel(*(real_text / "wmt_ende" / f"{name}.{language}.gz" for language in ("en", "de")))
        for name in ("newstest2014_full", "newstest2014")
    )
    found = subset_of("newstest2014", part, whole)
    references = [target for _, target in whole.pairs()]
    assert (len(references), len(found.places), len(set(found.places))) == (3_003, 2_737, 2_737)
    assert list(found.places) != sorted(found.places)
    differ = [i for i, place in enumerate(found.places) if references[place] != found.references[i]]
    assert len(differ) <= 2  # two source lines stand twice in the whole, each with another translation
