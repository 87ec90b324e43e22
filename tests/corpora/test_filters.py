"""A rule decides about a pair alone, the same on every machine."""

import unicodedata
from pathlib import Path

import pytest
from sacremoses import MosesTokenizer

from repro.corpora.filters import FILTER_RULES, check_rules, identity, reasons
from repro.corpora.parallel_text import Parallel


def words(n: int) -> str:
    return " ".join(["wort"] * n)


def one_reason(source: str, target: str, *rules: str, pair: str = "en-de") -> str | None:
    [reason] = reasons(rules, pair, [source], [target])
    return reason


@pytest.mark.parametrize(
    ("rule", "source", "target", "reason"),
    [
        ("length_ratio", "Yes.", "Ja , natürlich .", None),  # 4 words, 3 * 1 + 5 may be
        ("length_ratio", words(7), words(26), None),
        ("length_ratio", words(7), words(27), "sides differ in length by more than 3 times"),
        ("length_ratio", words(27), words(7), "sides differ in length by more than 3 times"),
        ("fairseq", words(2), words(3), None),
        ("fairseq", words(10), words(16), "sides differ in length by more than 1.5 times"),
        ("fairseq", words(16), words(10), "sides differ in length by more than 1.5 times"),
        ("fairseq", "«L’eau»", "water!?:", None),  # five against four: a mark is a word, with a blank or without
        ("fairseq", words(117), words(175), None),
        ("fairseq", words(175), words(176), "a side has more than 175 words"),
    ],
)
def test_a_pair_is_dropped_for_its_lengths(rule: str, source: str, target: str, reason: str | None) -> None:
    assert one_reason(source, target, rule) == reason
    assert one_reason(source, target) is None  # nothing is dropped unless asked


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("six short words are in here", "मैं उसे कल फिर देखूँगा ।"),  # Hindi: the marks of its vowels are no words
        ("the café is old", unicodedata.normalize("NFD", "le café âgé là")),
        ("I am going", "می\u200cروم آن\u200cجا می\u200cروم"),  # Persian: words with joiners
        ("the ship travels", "das Do\u00adnau\u00addampf\u00adschiff fährt"),
    ],
)
def test_marks_belong_to_their_letters(source: str, target: str) -> None:
    assert one_reason(source, target, "fairseq", pair="en-hi") is None
    assert one_reason(source, f"{target} {target} {target}", "fairseq", pair="en-hi") is not None


@pytest.mark.parametrize("rule", ["length_ratio", "fairseq"])
def test_words_that_cannot_be_counted_are_not_compared(rule: str) -> None:
    refused = "Rules of length compare numbers of words and 'zh-Hant-TW' of pair 'en-zh-Hant-TW'"
    with pytest.raises(ValueError, match=refused):
        reasons([rule], "en-zh-Hant-TW", [], [])
    assert reasons([rule], "en-ko", [], []) == []


def test_fairseqs_words_are_near_those_of_moses(real_text: Path) -> None:
    sides = (real_text / "europarl_ende_5k" / f"train.{language}.gz" for language in ("en", "de"))
    pairs = list(Parallel(*sides, may_drop=True).pairs())
    tokenizers = [MosesTokenizer(language) for language in ("en", "de")]
    theirs, ours = set(), set()
    for i, pair in enumerate(pairs):
        cut = [one.tokenize(side, aggressive_dash_splits=True) for one, side in zip(tokenizers, pair, strict=True)]
        fewest, most = sorted(map(len, cut))
        theirs |= {i} if most > 175 or most > 1.5 * fewest else set()
        ours |= {i} if one_reason(*pair, "fairseq") else set()
    assert (len(theirs), len(ours), len(theirs & ours)) == (323, 318, 316)


def test_rules_are_applied_in_one_order_and_have_a_version() -> None:
    both = ["fairseq", "length_ratio"]
    assert tuple(FILTER_RULES) == check_rules(both) == ("length_ratio", "fairseq")
    assert (identity(both), identity(())) == ({"length_ratio": "1", "fairseq": "3"}, {})
    with pytest.raises(ValueError, match="Unknown cleaning rule 'ratio'; expected some of length_ratio, fairseq"):
        check_rules(["ratio"])
