"""Counts of sentences, summed, are the scores of the whole."""

from pathlib import Path

import pytest
from sacremoses import MosesTokenizer

from repro.decoding.bleu import published_score, sacrebleu_score
from repro.results.counts import ngram_counts, thirds
from repro.results.sentences import SMOOTHED, bleu

GOLDEN = Path(__file__).parents[1] / "decoding" / "golden"


def read(name: str) -> list[str]:
    return (GOLDEN / name).read_bytes().decode().split("\n")[:-1]


@pytest.mark.parametrize("in_tokens", [False, True])
@pytest.mark.parametrize("language", ["de", "fr"])
def test_their_sums_give_both_scores(language: str, in_tokens: bool) -> None:
    hypotheses, references = read(f"hyp.{language}"), read(f"ref.{language}")
    if in_tokens:
        moses = MosesTokenizer(language)
        hypotheses, references = (
            [moses.tokenize(line, return_str=True) for line in side] for side in (hypotheses, references)
        )
    found = ngram_counts(hypotheses, references, language, in_tokens=in_tokens)
    whole = {
        "bleu": sacrebleu_score(hypotheses, references, language, are_tokens=in_tokens),
        "bleu_published": published_score(hypotheses, references, language, are_tokens=in_tokens),
    }
    assert found.keys() == whole.keys()
    for name, score in whole.items():
        sums = found[name].summands.sum(0)
        assert bleu(sums, smoothed=SMOOTHED[name]) == pytest.approx(score.bleu, abs=1e-9), name
        assert (sums[0], sums[1]) == (score.hyp_len, score.ref_len), name
    half = slice(0, 23)
    assert bleu(found["bleu"].summands[half].sum(0), smoothed=True) == pytest.approx(
        sacrebleu_score(hypotheses[half], references[half], language, are_tokens=in_tokens).bleu, abs=1e-9
    )


def test_where_no_4_gram_is_right_only_sacrebleu_smooths() -> None:
    hypotheses, references = ["ein Hund läuft und schläft heute"], ["ein Hund läuft oder schläft morgen"]
    found = ngram_counts(hypotheses, references, "de", in_tokens=False)
    worth = {name: bleu(counts.summands.sum(0), smoothed=SMOOTHED[name]).item() for name, counts in found.items()}
    assert worth["bleu"] == pytest.approx(sacrebleu_score(hypotheses, references, "de").bleu, abs=1e-9)
    assert worth["bleu"] > 10
    assert worth["bleu_published"] == published_score(hypotheses, references, "de").bleu == 0


def test_a_language_without_a_protocol_is_counted_by_sacrebleu_alone() -> None:
    assert [*ngram_counts(["ein pes"], ["jeden pes"], "cs", in_tokens=False)] == ["bleu"]


def test_characters_are_counted_where_words_have_no_blanks() -> None:
    found = ngram_counts(["我喜欢狗。"], ["我喜欢猫。"], "zh", in_tokens=False)["bleu"]
    assert (found.hypothesis.tolist(), found.correct.tolist()) == ([5], [[4, 2, 1, 0]])
    parts = thirds(["我喜欢狗。吗"], ["我喜欢猫。吗"], "zh", in_tokens=False)
    assert [part.correct[0].tolist() for part in parts] == [[2, 1, 0, 0], [1, 0, 0, 0], [2, 1, 0, 0]]


def test_an_empty_translation_counts_its_reference() -> None:
    found = ngram_counts(["", "das ist gut"], ["das ist gut", "das ist gut"], "de", in_tokens=False)
    assert found["bleu"].summands.tolist() == [[0, 3, 0, 0, 0, 0, 0, 0, 0, 0], [3, 3, 3, 2, 1, 0, 3, 2, 1, 0]]


def test_sides_that_are_not_parallel_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2 is longer"):
        ngram_counts(["a"], ["a", "b"], "de", in_tokens=False)


def test_thirds_by_hand() -> None:
    # 7 words are cut 2, 2, 3; the reference's 8 are cut 2, 3, 3; marks are words of their own
    hypotheses, references = ["a b c d e f ."], ["a b x c d e f ."]
    first, second, last = thirds(hypotheses, references, "de", in_tokens=False)
    assert [(int(one.hypothesis[0]), int(one.reference[0])) for one in (first, second, last)] == [
        (2, 2),
        (2, 3),
        (3, 3),
    ]
    assert [one.correct[0].tolist() for one in (first, second, last)] == [[2, 1, 0, 0], [2, 1, 0, 0], [3, 2, 1, 0]]


def test_thirds_hold_every_token_once_and_short_lines_leave_some_empty() -> None:
    hypotheses, references = read("hyp.de"), read("ref.de")
    whole = ngram_counts(hypotheses, references, "de", in_tokens=False)["bleu"]
    parts = thirds(hypotheses, references, "de", in_tokens=False)
    assert sum(part.hypothesis for part in parts).tolist() == whole.hypothesis.tolist()
    assert sum(part.reference for part in parts).tolist() == whole.reference.tolist()
    assert [part.hypothesis.tolist() for part in thirds(["a", ""], ["a b", "c"], "de", in_tokens=False)] == [
        [0, 0], [0, 0], [1, 0],
    ]  # fmt: skip
