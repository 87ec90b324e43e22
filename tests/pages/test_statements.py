"""The questions that teaching texts leave open are answered by the verdicts."""

import pytest

from repro.claims.catalogue import STATEMENTS
from repro.claims.decisions import Outcome
from repro.claims.judge import Judged
from repro.pages.statements import QUESTIONS, answers
from repro.render.page import Heading, Listing, plain

CLAIMS = {claim.id: claim for claim in STATEMENTS}


def lines(**verdicts: Outcome) -> list[str]:
    match answers(Judged(claim=CLAIMS[id], verdict=verdict, reason="") for id, verdict in verdicts.items()):
        case (Heading(), Listing(items)):
            return [plain(item) for item in items]
    return []


def test_every_part_of_a_question_is_a_listed_statement_that_rows_settle() -> None:
    for parts in QUESTIONS.values():
        for part in parts:
            assert CLAIMS[part.claim].is_trained
            worse = "worse" in CLAIMS[part.claim].sentence or "Softmax is better than" in CLAIMS[part.claim].sentence
            assert part.is_worse == worse


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (
            {"S25a": "opposite sign", "S25b": "sign as printed", "S25c": "undetermined"},
            "Is softmax needed? Worse: ReLU weights (S25b). Better: sigmoid weights in its place (S25a). Not told "
            "apart: the scores themselves as weights (S25c).",
        ),
        (
            {"S13a": "not judged", "S13b": "reproduced"},
            "Does a Transformer need scaled scores in order to learn? Worse: no scale, at d_k = d_model (S13b). Not "
            "known yet: no scale, at the base's d_k (S13a).",
        ),
        (  # a statement that says better turns the word
            {"S24a": "sign as printed", "S24b": "sign as printed"},
            "What would a decoder without a mask do? Worse: its translations (S24b). Better: its next token, where "
            "the reference that it reads has that token in it (S24a).",
        ),
    ],
)
def test_an_answer_says_what_is_worse_what_is_better_and_what_nobody_knows(
    verdicts: dict[str, Outcome], said: str
) -> None:
    assert lines(**verdicts) == [said]


def test_a_statement_of_no_question_answers_none() -> None:
    assert lines(S18="undetermined") == []
