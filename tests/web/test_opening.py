"""What a report does when it is opened is little: each view is made when it is looked at, and then it is made."""

import json
from pathlib import Path
from typing import Any

from packed_values import packed_at
from playwright.sync_api import expect

REPORT = "laptop/report.html"
AT_REST = """() => new Promise((done) => {
  const look = () => performance.getEntriesByName("unpacked").length ? done(null) : setTimeout(look, 20);
  look();
})"""
PARSED = """() => {
  const asked = (window.asked = []);
  const parse = JSON.parse;
  JSON.parse = (text, act) => { asked.push(text.length); return parse(text, act); };
}"""
PRINTED = """() => addEventListener("afterprint", () => {
  window.printed = [".chart svg", "#explorables .plot svg"].map((of) => document.querySelectorAll(of).length);
})"""


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
    page.evaluate(AT_REST)
    assert page.evaluate("asked") == [], "unpacked, but not read"
    page.locator("#table3 tbody a").first.click()
    page.get_by_role("dialog").locator("h2").wait_for()
    runs = packed_at(page, "data-runs")
    assert page.evaluate("asked") == [len(json.dumps(runs, separators=(",", ":")))]
    assert page.evaluate("location.hash").removeprefix("#run=") in runs["runs"]


def test_a_print_has_every_view_at_once(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, height=300)
    page.evaluate(AT_REST)
    page.evaluate(PRINTED)
    page.pdf()
    charts, plots = page.locator(".chart").count(), page.locator("#explorables .explorable").count()
    assert page.evaluate("printed") == [charts, plots], "a print waits for nothing"


def test_a_dark_page_is_printed_on_white_and_dark_again(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, dark=True)
    page.evaluate(AT_REST)
    page.locator(".chart").first.scroll_into_view_if_needed()
    title = page.locator(".chart .role-axis-title text").first
    title.wait_for()
    page.evaluate("""() => addEventListener("afterprint", () => {
      window.printed = document.querySelector(".chart .role-axis-title text").getAttribute("fill");
    })""")
    page.pdf()
    assert page.evaluate("printed") == "rgb(26, 26, 26)"
    expect(title).to_have_attribute("fill", "rgb(230, 228, 223)")


def test_paper_has_what_is_folded_and_nothing_to_press(made: Path, opened: Any) -> None:
    page = opened(made / REPORT)
    for place in ("#table3 .grid", '[data-chart="curves/all"]', "#runs"):
        page.locator(place).first.scroll_into_view_if_needed()
    runs, choice = page.locator("#runs details.many table"), page.locator("#curves .vega-bindings")
    expect(runs).not_to_be_visible()
    expect(choice).to_be_visible()
    page.emulate_media(media="print")
    expect(runs).to_be_visible()
    expect(choice).not_to_be_visible()
    arrow = "getComputedStyle(document.querySelector('.sort'), '::after').content"
    assert page.evaluate(arrow) == "none"


def test_on_paper_what_is_said_of_a_chart_stands_whole_above_it(made: Path, opened: Any) -> None:
    page = opened(made / REPORT)
    page.emulate_media(media="print")
    said = page.locator("#curves h2 + p").evaluate(
        "(one) => [one, one.previousElementSibling].map((at) => getComputedStyle(at))"
        ".map((style) => [style.breakInside, style.breakAfter])"
    )
    assert said == [["avoid", "avoid"], ["auto", "avoid"]], "not cut, and neither left behind on the page before"


def test_of_two_addresses_the_last_one_is_shown(made: Path, opened: Any) -> None:
    page = opened(made / REPORT)
    page.evaluate("""() => {
      const [first, last] = document.querySelectorAll('#table3 tbody a[href^="#run="]');
      window.last = last.textContent;
      const data = report.data;
      let slow = true; // the values of the first question come after those of the second
      report.data = async (key) => {
        const late = slow;
        slow = false;
        if (late) await new Promise((done) => setTimeout(done, 300));
        return data(key);
      };
      first.click();
      setTimeout(() => last.click(), 50);
    }""")
    heading = page.get_by_role("dialog").locator("h2")
    expect(heading).to_be_visible()
    page.wait_for_timeout(600)
    assert page.evaluate("last").endswith(heading.inner_text())


def test_a_browser_that_cannot_unpack_says_what_is_missing(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, before="delete window.DecompressionStream")
    notice = page.get_by_role("alert")
    assert "expected one with DecompressionStream" in notice.inner_text()
    assert "charts, single runs and downloads are missing" in notice.inner_text()
    page.locator("#table3 tbody a").first.click()
    page.locator("#explorables").scroll_into_view_if_needed()
    assert page.locator("#table3 .grid >> nth=0 >> tbody tr").count() == 4, "the tables stand"
    assert opened(made / REPORT).get_by_role("alert").count() == 0
