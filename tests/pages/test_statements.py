"""The questions that teaching texts leave open are answered by the verdicts, with their numbers."""

import pandas as pd

from repro.claims.catalogue import STATEMENTS
from repro.claims.claim import BLEU, LOG_PPL
from repro.claims.decisions import Outcome, Verdict
from repro.claims.judge import Found, Judged
from repro.pages.statements import QUESTIONS, answers
from repro.render.page import Heading, Listing, plain
from repro.results.frame import spread
from repro.results.parts import KEPT, THIRDS

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
        judged("S25b", "sign as printed", 0.5, 12.5),
        judged("S25c", "undetermined", 0.01, -0.1),
        judged("S13a", "not judged"),
        judged("S13b", "sign as printed", 0.2, 4.0, of_bleu="undetermined"),
    )
    assert found == [
        "Is softmax needed? Worse: ReLU weights (0.500 log PPL worse; 12.50 BLEU worse; S25b). Better: sigmoid weights "
        "in its place (0.020 log PPL better; 0.40 BLEU worse; S25a). Not told apart: the scores themselves as weights "
        "(S25c).",
        "Does a Transformer need scaled scores in order to learn? Worse: no scale, at d_k = d_model (0.200 log PPL "
        "worse; BLEU undetermined; S13b). Not known yet: no scale, at the base's d_k (S13a).",
    ]


def test_a_statement_that_says_better_turns_the_word() -> None:
    [found] = lines(judged("S24a", "sign as printed", 0.9), judged("S24b", "sign as printed", 1.2, 30.0))
    assert found == (
        "What would a decoder without a mask do? Worse: its translations (1.200 log PPL worse; 30.00 BLEU worse; "
        "S24b). Better: its next token, where the reference that it reads has that token in it (0.900 log PPL better; "
        "S24a)."
    )


def test_an_unjudged_statement_shows_no_numbers() -> None:
    [found] = lines(judged("S25a", "not judged", 0.3, 4.0))  # of runs that only explore
    assert found == "Is softmax needed? Not known yet: sigmoid weights in its place (S25a)."
    assert answers([judged("S18", "undetermined")]) == (), "of no question"


def ladder(**rows: tuple[list[float], list[float]]) -> pd.DataFrame:
    """A frame of the ladder from the BLEU of the first and of the last third, a value a run."""
    lines = []
    for name, (first, last) in rows.items():
        kept = [100 * end / begin for begin, end in zip(first, last, strict=True)]
        scores = {THIRDS[3]: first, THIRDS[5]: last, KEPT: kept}
        line = {key: x for score, values in scores.items() for key, x in spread(score, values).items()}
        table = "base" if name == "base" else "ladder"
        lines.append({"table": table, "row": name.replace("_", ", "), "n": len(first), **line})
    return pd.DataFrame(lines)


def test_the_answer_on_fading_leaves_out_rows_with_too_little_bleu() -> None:
    base = ([60.0, 60.0, 60.0], [35.4, 36.0, 36.6])
    static = ([20.0, 40.0, 25.0], [8.0, 20.0, 7.5])  # 40, 50, 30 %: 40 ± 4.303 * 10 / sqrt(3)
    match answers([], ladder(base=base, simple=([0.8, 0.4, 0.6], [0.4, 0.1, 0.1]), static_mean=static)):
        case (Heading(), Listing((line,))):
            assert plain(line) == (
                "Does the source fade as a translation goes on, and does a static context keep it? Of the BLEU of "
                "their first third, translations have in their last: static, mean 40 ± 25 % (11.8 of 28.3); base "
                "60 ± 2 % (36.0 of 60.0). Too little is right to tell: simple (0.6 BLEU in the first third). The base "
                "sees the whole source at each step: only what a row keeps less can be fading."
            )
        case other:
            raise AssertionError(other)
    assert answers([], ladder(base=base)) == (), "where no row fades"
    assert answers([], ladder(base=base, simple=static).drop(columns=[KEPT])) == (), "without counts"
