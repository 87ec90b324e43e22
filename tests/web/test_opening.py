"""What a report does when it is opened is little: each view is made when it is looked at, and then it is made."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import expect
from report_records import packed_at

REPORT = "laptop/report.html"
PARSED = """() => {
  const asked = (window.asked = []);
  const parse = JSON.parse;
  JSON.parse = (text, act) => { asked.push(text.length); return parse(text, act); };
}"""
NEVER_IDLE = "window.requestIdleCallback = () => 0;"


def test_a_view_is_made_when_it_is_looked_at_and_not_before(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, height=300)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))")
    assert page.evaluate("typeof vegaEmbed") == "undefined"
    assert "vegaEmbed" in packed_at(page, "library")
    for late in (".chart svg", "#claims .controls", "#explorables svg", "#side-by-side *", "#inside-view *"):
        assert page.locator(late).count() == 0, late
    for place, drawn in (
        ('[data-chart="differences/bleu"]', ".chart svg"),
        ("#claims .item >> nth=0", "#claims .controls"),
        ("#explorables", "#explorables .plot svg"),
    ):
        page.locator(place).scroll_into_view_if_needed()
        expect(page.locator(drawn).first).to_be_visible()
    assert page.evaluate("typeof vegaEmbed") == "function"
    assert page.locator("#library").count() == 0, "what was packed has become the script"


def test_runs_are_read_when_one_is_asked_for(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, before=f"({PARSED})(); {NEVER_IDLE}")
    runs = packed_at(page, "data-runs")
    size = len(json.dumps(runs, separators=(",", ":")))
    assert size not in page.evaluate("asked"), "neither unpacked nor read"
    page.locator("#table3 tbody a").first.click()
    page.get_by_role("dialog").locator("h2").wait_for()
    assert page.evaluate("asked") == [size]
    assert page.evaluate("location.hash").removeprefix("#run=") in runs["runs"]


def test_a_folded_table_is_made_where_an_address_leads_to_it(made: Path, opened: Any) -> None:
    assert "<td" not in re.findall('<section id="tables".*?</section>', (made / REPORT).read_text("utf-8"), re.S)[0]
    page = opened(made / REPORT, "#table3_A", height=300, before=NEVER_IDLE)
    sheet = packed_at(page, "csv-tables")["table3_A.csv"]
    names = page.locator("#table3_A .grid >> nth=0 >> tbody th")
    expect(names).to_have_count(len([*csv.DictReader(io.StringIO(sheet))]))
    page.locator("#table3_A button.sort", has_text="ours").nth(1).click()
    assert [name[:3] for name in names.all_inner_texts()][:1] == ["<sc"], "the best of them first"
    assert page.locator("#all-runs table").count() == 0, "far below"
