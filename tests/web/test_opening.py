"""What a report does when it is opened is little: each view is made when it is looked at, and then it is made."""

import json
from pathlib import Path
from typing import Any

from packed_values import packed_at
from playwright.sync_api import expect

REPORT = "laptop/report.html"
PARSED = """() => {
  const asked = (window.asked = []);
  const parse = JSON.parse;
  JSON.parse = (text, act) => { asked.push(text.length); return parse(text, act); };
}"""


def test_nothing_is_made_before_it_is_looked_at(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, height=300)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))")
    assert page.evaluate("typeof vegaEmbed") == "undefined"
    assert page.locator("#library").get_attribute("type") == "text/plain"
    for late in (".chart svg", "#claims .controls", "#explorables svg", "#side-by-side *", "#inside-view *"):
        assert page.locator(late).count() == 0, late


def test_every_view_is_made_when_it_is_looked_at(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, height=300)
    for place, drawn in (
        ('[data-chart="differences/bleu"]', ".chart svg"),
        ("#claims .item >> nth=0", "#claims .controls"),
        ("#explorables", "#explorables .plot svg"),
    ):
        page.locator(place).scroll_into_view_if_needed()
        expect(page.locator(drawn).first).to_be_visible()
    assert page.evaluate("typeof vegaEmbed") == "function"
    assert page.locator("#library").count() == 0, "the text has become the script"


def test_runs_are_read_when_one_is_asked_for(made: Path, opened: Any) -> None:
    page = opened(made / REPORT)
    page.evaluate(PARSED)
    assert page.evaluate("asked") == [], "neither unpacked nor read"
    page.locator("#table3 tbody a").first.click()
    page.get_by_role("dialog").locator("h2").wait_for()
    runs = packed_at(page, "data-runs")
    assert page.evaluate("asked") == [len(json.dumps(runs, separators=(",", ":")))]
    assert page.evaluate("location.hash").removeprefix("#run=") in runs["runs"]
