"""Claims of a report: found by a reader, with the numbers behind them and no word that the line above has said."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from packed_values import packed_at
from paper_runs import direction
from playwright.sync_api import expect

from repro.claims.claim import B0, BLEU, H1, LOG_PPL
from repro.claims.decisions import Outcome, Verdict
from repro.claims.judge import Found, Judged
from repro.web.verdicts import _item


def text_of(on_ppl: Outcome, on_bleu: Outcome, verdict: Outcome) -> str:
    """What a reader sees of one claim, judged on both scores."""
    claim = direction("C99", "6.2 (A)", "one is worse", B0, H1, scale="smoke")
    found = tuple(
        Found(endpoint=endpoint, runs=(8, 5), verdict=Verdict(outcome=outcome, reason=""), value=0.5, low=-1, high=2)
        for endpoint, outcome in ((LOG_PPL, on_ppl), (BLEU, on_bleu))
    )
    item = _item(Judged(claim=claim, verdict=verdict, reason="BLEU above 1", found=found), "table3_A", {}, {})
    return " ".join(re.sub("<[^>]*>", " ", item).split())


@pytest.mark.parametrize("outcome", ["undetermined", "sign as printed"])
def test_a_verdict_is_said_once_and_facts_have_their_names(outcome: Outcome) -> None:
    text = text_of(outcome, outcome, outcome)
    assert text.count(outcome) == 1
    assert "C99 one is worse" in text
    assert "kind: direction; in the paper: 6.2 (A)" in text
    assert " 8, 5 " in text, "runs of each row"


def test_the_mark_of_another_outcome_is_explained() -> None:
    text = text_of("sign as printed", "undetermined", "sign as printed")
    assert text.count("sign as printed") == 1
    assert "? undetermined." in text


def test_claims_are_found_by_verdict_kind_and_word(made: Path, opened: Any) -> None:
    page = opened(made / "laptop/report.html")
    claims = page.locator("#claims")
    claims.locator(".item").first.scroll_into_view_if_needed()  # its filters are made when it comes into sight
    claims.get_by_role("searchbox").wait_for()
    shown = claims.locator(".item:visible")
    sheet = packed_at(page, "csv-claims")["claims.csv"]
    by_claim = {line["claim"]: line for line in csv.DictReader(io.StringIO(sheet))}
    assert shown.count() == len(by_claim)
    claims.locator('select[data-facet="kind"]').select_option("arithmetic")
    expected = [name for name, line in by_claim.items() if line["kind"] == "arithmetic"]
    assert shown.locator(".id").all_inner_texts() == expected
    claims.locator('select[data-facet="kind"]').select_option("")
    claims.get_by_role("searchbox").fill("single head")
    assert "C28b" in shown.locator(".id").all_inner_texts()
    assert 0 < shown.count() < 20
    assert all({"single", "head"} <= {*re.findall("[a-z]+", text.lower())} for text in shown.all_text_contents())
    claims.locator("#claim-C28b summary").click()
    behind = claims.locator("#claim-C28b").inner_text()
    assert behind.count(by_claim["C28b"]["verdict"]) == 1, "it stands above, and is not said again"
    assert "BLEU" in behind
    about = claims.locator("> p").all_inner_texts()
    assert any("found from is the size that would have been found" in text for text in about)
    claims.locator("#claim-C28b a", has_text="table3_A/h=1").click()
    assert page.get_by_role("dialog").locator("h2").inner_text() == "h=1"


def test_what_stands_behind_a_verdict_ends_with_one_stop_and_questions_come_first(made: Path, opened: Any) -> None:
    page = opened(made / "laptop/report.html")
    for key in ("claims", "statements"):
        told = page.locator(f"#{key} .item > p:first-of-type").all_text_contents()
        assert told
        assert [text for text in told if ".." in text or not text.endswith(".")] == []
    answers = page.locator("#statements h3", has_text="Questions that those texts leave open")
    expect(answers.locator("+ ul > li").first).to_contain_text("Is softmax needed?")
    assert answers.evaluate("one => one.compareDocumentPosition(document.querySelector('#statements .grid'))") == 4
    assert page.locator("#claims h3", has_text="Questions").count() == 0
