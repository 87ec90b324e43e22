"""Each mark that is looked for has a sentence."""

from repro.data.cut_text import APART, ESCAPED, MOSES, NFD, SCHEMES
from repro.results.cut_text import DECOMPOSED, SAID, marked


def test_each_mark_has_a_sentence() -> None:
    assert {*SAID} == {*SCHEMES, MOSES, ESCAPED, APART}
    assert DECOMPOSED == NFD
    told = [*marked({f"{side} {mark}": 0.125 for mark in SAID for side in ("source", "target")})]
    assert all(sentence.startswith("12.5 % of the ") and sentence.endswith(".") for sentence in told)
    assert told[:2] == [
        "12.5 % of the source lines of the training text have pieces of words by BPE (@@).",
        "12.5 % of the target lines of the training text have pieces of words by BPE (@@): they are joined before a "
        "score.",
    ]


def test_letters_spelled_in_two_ways_are_told() -> None:
    [told] = marked({"target nfd dev": 0.5})
    assert told.startswith("50.0 % of the target lines of dev spell a letter and its accent as two characters")
