"""Each row of a table shows what came of the claims that compare it with the base, and of no others."""

from dataclasses import replace
from typing import Any

from paper_runs import direction, paper_run

from repro.claims.catalogue import CLAIMS
from repro.claims.claim import ACCURACY, B0, BLEU, D256, H1, H4, LOG_PPL, Claim, Endpoint
from repro.claims.decisions import Outcome, Verdict
from repro.claims.judge import Found, Judged
from repro.pages import tables
from repro.pages.columns import verdict_columns, with_minus
from repro.render.markdown import markdown
from repro.results.frame import table


def frame(*rows: tuple[str, str]) -> Any:
    runs = [paper_run(row, of, position=i, seed=seed) for i, (of, row) in enumerate(rows) for seed in (1, 2)]
    return table(runs, base=[paper_run(seed=seed) for seed in (1, 2)])


def judged(claim: Claim, verdict: Outcome) -> Judged:
    return Judged(claim=claim, verdict=verdict, reason="")


def worse(row: str) -> Claim:
    return direction("C1", "6.2", "The base is better", B0, row, scale="laptop")


def shown(frame: Any, *of: Judged) -> dict[str, str]:
    columns = verdict_columns(frame, of)
    return dict(zip(frame["row"], columns[0].texts, strict=True)) if columns else {}  # type: ignore[arg-type]


HEADS = (("table3_A", "h=1"), ("table3_A", "h=4"))


def test_a_row_has_the_words_of_its_own_claims() -> None:
    assert shown(frame(*HEADS), judged(worse(H1), "sign as printed"), judged(worse(D256), "undetermined")) == {
        "base": "",
        "h=1": "sign as printed",
        "h=4": "",
    }


def test_the_base_may_be_the_worse_of_the_two() -> None:
    better = direction("C2", "6.2", "More heads are better", H4, B0, scale="laptop")
    assert shown(frame(*HEADS), judged(better, "opposite sign"))["h=4"] == "opposite sign"


def test_several_claims_have_their_scores_where_their_words_differ() -> None:
    said: tuple[tuple[Endpoint, Outcome], ...] = (
        (LOG_PPL, "sign as printed"),
        (BLEU, "undetermined"),
        (ACCURACY, "sign as printed"),
    )
    about = [(Found(endpoint=of, runs=(5, 5), verdict=Verdict(outcome=word, reason="")), word) for of, word in said]
    found = shown(frame(*HEADS), *(replace(judged(worse(H1), word), found=(one,)) for one, word in about))
    assert found["h=1"] == "sign as printed (log PPL, accuracy), undetermined (BLEU)"
    found = shown(frame(*HEADS), *(judged(replace(worse(H1), id=name), "undetermined") for name in ("C1", "C2")))
    assert found["h=1"] == "undetermined"


def test_claims_about_other_pairs_and_trends_say_nothing_of_a_row() -> None:
    among_others = direction("C3", "6.2", "One head is worse than four", H4, H1, scale="laptop")
    along = Claim(id="C4", where="6.2", says="More is better", kind="trend", rows=(H1, B0), sizes=(1, 8))
    found = judged(among_others, "sign as printed"), judged(along, "sign as printed")
    assert not verdict_columns(frame(*HEADS), found)
    assert not verdict_columns(frame(*HEADS), [judged(worse(H1), "not judged")]), "nothing is known of any row"


def test_a_row_said_to_be_alike_has_its_verdict() -> None:
    alike = Claim(id="C6", where="6.2", says="Four do as well", kind="equivalence", rows=(B0, H4))
    found = judged(worse(H1), "sign as printed"), judged(alike, "not judged")
    assert shown(frame(*HEADS), *found) == {"base": "", "h=1": "sign as printed", "h=4": "not judged"}


def test_rows_of_table_2_are_compared_with_the_base_of_their_pair() -> None:
    big = direction("C5", "6.1", "Big is better", "table2/big en-de", "table2/base en-de", scale="captions")
    of_2 = frame(("table2", "base en-de"), ("table2", "big en-de"))
    assert shown(of_2, judged(big, "sign as printed")) == {"base": "", "base en-de": "", "big en-de": "sign as printed"}
    [column] = [
        column
        for column in tables.columns_of_table_2(of_2, [judged(big, "sign as printed")])
        if column.heading == "verdict"
    ]
    assert list(column.texts) == ["", "", "sign as printed"]


def test_every_page_of_a_table_has_the_column() -> None:
    of = [judged(worse(H1), "sign as printed")]
    for name in ("table3_A", "table3", "table2"):
        page = tables.page_of_table(frame(("table2", "base en-de"), *HEADS), "laptop", name, of)
        assert markdown(page).count("| sign as printed") == 1
    without = tables.page(frame(*HEADS), "laptop", "table3_A")
    assert "verdict" not in markdown(without)


def test_no_direction_of_the_list_names_a_base_twice() -> None:
    for claim in (claim for claim in CLAIMS if claim.kind == "direction"):
        assert len({*claim.rows}) == 2, claim.id
        assert sum(row.split("/", 1)[1].startswith("base") for row in claim.rows) <= 1, claim.id


def test_numbers_of_a_sentence_are_written_as_in_tables() -> None:
    said = "log PPL between -0.32 and -1e-05; (-3) in newstest2013-14, 3-5, S-1"
    assert with_minus(said) == "log PPL between −0.32 and −1e-05; (−3) in newstest2013-14, 3-5, S-1"
