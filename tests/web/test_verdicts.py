"""Claims of a report: the findings first, found by a reader, with the numbers behind them, and no word said twice."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from paper_runs import direction
from playwright.sync_api import expect
from report_records import packed_at

from repro.claims.catalogue import B0, BLEU, H1, H4, LOG_PPL, Claim, Endpoint
from repro.claims.decisions import Outcome, Verdict
from repro.claims.judge import Found, Judged
from repro.pages.scale_data import ScaleData
from repro.web.files import sections_of
from repro.web.report import report_html
from repro.web.tables import verdict_html
from repro.web.verdicts import _item, claims_section, overview_section


def text_of(on_ppl: Outcome, on_bleu: Outcome, verdict: Outcome) -> str:
    """What a reader sees of one claim, judged on both scores."""
    claim = direction("C99", "6.2 (A)", "one is worse", B0, H1, scale="smoke")
    found = tuple(
        Found(endpoint=endpoint, runs=(8, 5), verdict=Verdict(outcome=outcome, reason=""), value=0.5, interval=(-1, 2))
        for endpoint, outcome in ((LOG_PPL, on_ppl), (BLEU, on_bleu))
    )
    item = _item(Judged(claim=claim, verdict=verdict, reason="BLEU above 1", found=found), "table3_A", {})
    return " ".join(re.sub("<[^>]*>", " ", item).split())


@pytest.mark.parametrize(
    ("on_ppl", "on_bleu", "ticks", "questions"),
    [
        ("undetermined", "undetermined", 0, 3),
        ("sign as printed", "sign as printed", 3, 0),
        ("sign as printed", "undetermined", 2, 1),
    ],
)
def test_a_verdict_is_said_once_each_score_has_its_mark_and_facts_have_their_names(
    on_ppl: Outcome, on_bleu: Outcome, ticks: int, questions: int
) -> None:
    text = text_of(on_ppl, on_bleu, on_ppl)
    assert text.count(on_ppl) == 1
    assert (text.count("✓"), text.count("?")) == (ticks, questions)
    for told in ("C99 one is worse", "kind: direction; in the paper: 6.2 (A)", " 8, 5 "):
        assert told in text


def test_verdicts_in_a_cell_have_their_marks_each() -> None:
    shown = verdict_html("opposite sign (log PPL), undetermined (BLEU, accuracy)")
    assert re.sub("<[^>]*>", "", shown) == "✗ opposite sign (log PPL), ? undetermined (BLEU, accuracy)"
    assert re.findall('class="verdict (.*?)"', shown) == ["no", "open"]
    assert re.sub("<[^>]*>", "", verdict_html("not consistent")) == "✗ not consistent"


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
    assert any("found from is the size that would have been" in text for text in about)
    claims.locator("#claim-C28b a", has_text="table3_A/h=1").click()
    assert page.get_by_role("dialog").locator("h2").inner_text() == "h=1"


def test_what_stands_behind_a_verdict_ends_with_one_stop(made: Path, opened: Any) -> None:
    page = opened(made / "laptop/report.html")
    for key in ("claims", "statements"):
        told = page.locator(f"#{key} .item > p:first-of-type").all_text_contents()
        assert told
        assert [text for text in told if ".." in text or not text.endswith(".")] == []
        ids = page.locator(f"#{key} .item .id").all_text_contents()
        assert {id[0] for id in ids} == {"C" if key == "claims" else "S"}


def test_a_finding_names_the_scores_that_decide_it_and_what_says_otherwise(laptop: ScaleData) -> None:
    def found(endpoint: Endpoint, outcome: Outcome, *means: float) -> Found:
        return Found(endpoint=endpoint, runs=(5, 8), verdict=Verdict(outcome=outcome, reason=""), value=1, means=means)

    one = judged("C1", "one is worse", "sign as printed")
    deeper = replace(
        one, claim=Claim(id="C2", where="6.2", says="more is better", kind="trend", rows=(H1, H4, B0), sizes=(1, 4, 8))
    )
    claims = [
        replace(one, found=(found(LOG_PPL, "sign as printed"), found(BLEU, "sign as printed"))),
        replace(one, found=(found(LOG_PPL, "sign as printed"), found(BLEU, "undetermined"))),
        replace(deeper, found=(found(BLEU, "sign as printed", 0.0, 2.0, 1.5),)),
    ]
    body = overview_section(replace(laptop, judged=claims)).body
    said = [re.sub("<[^>]*>", "", line) for line in re.findall('<li>(<a href="#claim.*?)</li>', body)]
    assert said == [
        "one is worse (log PPL and BLEU)",
        "one is worse (log PPL; BLEU undetermined)",
        "more is better (BLEU, though −0.50 from h=4 to base)",
    ]


def judged(id: str, sentence: str, outcome: Outcome, **change: Any) -> Judged:
    claim: Claim = replace(direction(id, "6.2 (A)", sentence, B0, H1, scale="smoke"), **change)
    return Judged(claim=claim, verdict=outcome, reason="", found=())


def lists(body: str) -> list[list[str]]:
    """Of each list of findings what is linked, its heading first."""
    (_, *parts) = body.partition('class="beside findings">')[2].partition("<dl")[0].split("<h3>")
    return [
        [re.sub("<[^>]*>", "", part.partition("</h3>")[0]), *re.findall('href="#([^"]*)">', part)] for part in parts
    ]


def test_claims_that_came_out_stand_first_and_lead_to_their_numbers(laptop: ScaleData) -> None:
    claims = [
        judged("C1", "one is worse", "opposite sign"),
        judged("C2", "two is worse", "sign as printed"),
        judged("C3", "three < two", "sign as printed"),
        judged("C4", "four is worse", "undetermined"),
        judged("C5", "five is worse", "not judged"),
        judged("C6", "six is six", "consistent", kind="arithmetic", rows=(), endpoints=()),
    ]
    body = overview_section(replace(laptop, judged=claims)).body
    assert lists(body) == [
        ["✓ sign as printed as the paper says", "claim-C2", "claim-C3"],
        ["✗ opposite sign the other way round", "claim-C1"],
    ]
    assert "three &lt; two</a>" in body
    assert body.index("findings") < body.index("<dl"), "before the counts"
    assert re.findall("<strong>(.*?):</strong>", body) == [
        "5 claims about trained rows",
        "1 claims about arithmetic, code and layers",
    ]


def test_a_finding_opens_its_claim(laptop: ScaleData, opened: Any, tmp_path: Path) -> None:
    found = [replace(one, verdict="sign as printed") for one in laptop.judged if one.claim.is_trained][:2]
    assert len(found) == 2
    sections = sections_of(replace(laptop, judged=found), (overview_section, claims_section))
    (tmp_path / "report.html").write_text(report_html(sections, title="Findings", origin="a test"), "utf-8")
    page = opened(tmp_path / "report.html", width=360)
    claim = page.locator(f"#claim-{found[1].claim.id}")
    assert claim.get_attribute("open") is None
    page.locator(".findings a").nth(1).click()
    expect(claim).to_have_attribute("open", "")  # the page hears of its address a moment later
    assert page.evaluate("document.documentElement.scrollWidth") == 360
