"""The questions that teaching texts leave open are answered by the verdicts, with their numbers."""

from repro.claims.claim import BLEU, LOG_PPL
from repro.claims.decisions import Outcome, Verdict
from repro.claims.judge import Found, Judged
from repro.claims.statements import STATEMENTS
from repro.pages.statements import QUESTIONS, answers
from repro.render.page import Heading, Listing, plain

CLAIMS = {claim.id: claim for claim in STATEMENTS}


def judged(
    claim: str,
    outcome: Outcome,
    log_ppl: float | None = None,
    bleu: float | None = None,
    of_bleu: Outcome | None = None,
) -> Judged:
    """A verdict, and that of BLEU alone where it is another; positive differences are what the statement says."""
    found = [
        Found(endpoint=endpoint, runs=(3, 8), verdict=Verdict(outcome=word, reason=""), value=value)
        for endpoint, value, word in ((LOG_PPL, log_ppl, outcome), (BLEU, bleu, of_bleu or outcome))
    ]
    return Judged(claim=CLAIMS[claim], verdict=outcome, reason="", found=tuple(found))


def lines(*of: Judged) -> list[str]:
    match answers(of):
        case ():
            return []
        case (Heading(), Listing(items)):
            return [plain(item) for item in items]
    raise AssertionError(of)


def test_every_part_of_a_question_is_a_listed_statement_that_rows_settle() -> None:
    for parts in QUESTIONS.values():
        for part in parts:
            assert CLAIMS[part.claim].is_trained
            worse = "worse" in CLAIMS[part.claim].sentence or "Softmax is better than" in CLAIMS[part.claim].sentence
            assert part.is_worse == worse


def test_an_answer_says_what_is_worse_what_is_better_and_what_nobody_knows() -> None:
    found = lines(
        judged("S25a", "opposite sign", -0.02, 0.4),
        judged("S25b", "same sign", 0.5, 12.5),
        judged("S25c", "open", 0.01, -0.1),
        judged("S13a", "not judged"),
        judged("S13b", "same sign", 0.2, 4.0, of_bleu="open"),
    )
    assert found == [
        "Is softmax needed? Worse: ReLU weights (0.500 log PPL worse; 12.50 BLEU worse; S25b). Better: sigmoid weights "
        "in its place (0.020 log PPL better; 0.40 BLEU worse; S25a). Not told apart: the scores themselves as weights "
        "(S25c).",
        "Does a Transformer need scaled scores in order to learn? Worse: no scale, at d_k = d_model (0.200 log PPL "
        "worse; BLEU open; S13b). Not known yet: no scale, at the base's d_k (S13a).",
    ]


def test_a_statement_that_says_better_turns_the_word() -> None:
    [found] = lines(judged("S24a", "same sign", 0.9), judged("S24b", "same sign", 1.2, 30.0))
    assert found == (
        "What would a decoder without a mask do? Worse: its translations (1.200 log PPL worse; 30.00 BLEU worse; "
        "S24b). Better: its next token, where the reference that it reads has that token in it (0.900 log PPL better; "
        "S24a)."
    )


def test_a_verdict_without_numbers_that_count_has_none_beside_it() -> None:
    [found] = lines(judged("S25a", "not judged", 0.3, 4.0))  # of runs that only explore
    assert found == "Is softmax needed? Not known yet: sigmoid weights in its place (S25a)."
    assert answers([judged("S18", "open")]) == (), "of no question"
