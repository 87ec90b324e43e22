"""What the first minute of a report tells: which claims came out one way or the other, in their own words."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from paper_runs import direction
from playwright.sync_api import expect

from repro.claims.claim import B0, BLEU, H1, H4, LOG_PPL, Claim, Endpoint
from repro.claims.decisions import Outcome, Verdict
from repro.claims.judge import Found, Judged
from repro.pages.scale_data import ScaleData
from repro.web.files import sections_of
from repro.web.overview import overview_section
from repro.web.report import report_html
from repro.web.verdicts import claims_section


def test_a_finding_names_the_scores_that_decide_it_and_what_says_otherwise(laptop: ScaleData) -> None:
    def found(endpoint: Endpoint, outcome: Outcome, steps: tuple[float, ...] = ()) -> Found:
        return Found(
            endpoint=endpoint, runs=(5, 8), verdict=Verdict(outcome=outcome, reason=""), value=1.0, steps=steps
        )

    one = judged("C1", "one is worse", "sign as printed")
    deeper = replace(
        one, claim=Claim(id="C2", where="6.2", says="more is better", kind="trend", rows=(H1, H4, B0), sizes=(1, 4, 8))
    )
    claims = [
        replace(one, found=(found(LOG_PPL, "sign as printed"), found(BLEU, "sign as printed"))),
        replace(one, found=(found(LOG_PPL, "sign as printed"), found(BLEU, "undetermined"))),
        replace(deeper, found=(found(BLEU, "sign as printed", (2.0, -0.5)),)),
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


def test_where_nothing_came_out_there_is_no_list(laptop: ScaleData) -> None:
    claims = [judged("C4", "four is worse", "undetermined")]
    assert "findings" not in overview_section(replace(laptop, judged=claims)).body


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
