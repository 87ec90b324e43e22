"""What stands behind a verdict in the report: the numbers, and no word of what the line above them has said."""

import re
from pathlib import Path
from typing import Any

import pytest
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


@pytest.mark.parametrize("outcome", ["undetermined", "sign as printed", "opposite sign"])
def test_a_verdict_is_said_once(outcome: Outcome) -> None:
    text = text_of(outcome, outcome, outcome)
    assert text.count(outcome) == 1
    assert "C99 one is worse" in text


def test_the_mark_of_another_outcome_is_explained() -> None:
    text = text_of("sign as printed", "undetermined", "sign as printed")
    assert text.count("sign as printed") == 1
    assert "? undetermined." in text


def test_the_facts_of_a_claim_have_their_names() -> None:
    text = text_of("undetermined", "undetermined", "undetermined")
    assert "kind: direction; in the paper: 6.2 (A)" in text
    assert " 8, 5 " in text, "runs of each row"


def test_questions_of_texts_are_answered_before_the_statements(made: Path, opened: Any) -> None:
    page = opened(made / "laptop/report.html")
    answers = page.locator("#statements h3", has_text="Questions that those texts leave open")
    expect(answers.locator("+ ul > li").first).to_contain_text("Is softmax needed?")
    assert answers.evaluate("one => one.compareDocumentPosition(document.querySelector('#statements .grid'))") == 4
    assert page.locator("#claims h3", has_text="Questions").count() == 0
