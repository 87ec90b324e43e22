"""What a report has on paper: every view, however early it is printed, in black on white, and nothing to press."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from looked_inside import its_record, looked_at
from packed_values import packed_at
from playwright.sync_api import expect
from report_records import fill

from repro.pages.build import read_results
from repro.pages.scale_data import scale_data
from repro.results.inside import read_inside
from repro.results.record import path
from repro.runs.beside import keep_beside
from repro.web.files import scale_report

REPORT = "laptop/report.html"
DRAWN = (
    ".chart svg",
    "#explorables .plot svg",
    "#inside .heads canvas",
    "#inside .from",  # lines from a query
    "#inside figure svg[role=img] rect",  # cells of the matrix
    "#inside .tree .node",
    "#table3_A tbody tr",  # of a folded table
    "#all-runs tbody tr",
)
PRINTED = """(of) => addEventListener("afterprint", () => {
  window.printed = of.map((one) => document.querySelectorAll(one).length);
})"""
TITLE = ".chart .role-axis-title text"


def test_a_print_has_every_view_and_what_is_folded_as_soon_as_the_page_is_there(tmp_path: Path, opened: Any) -> None:
    results = tmp_path / "results"
    record = replace(its_record(), table="lab_parts", row="no norm")  # a row that no other run has
    n_runs = len(fill(results)) + 1
    record.save(path(results, record))
    keep_beside(looked_at(tmp_path / "run"), record, results, None, print)  # type: ignore[arg-type]
    [found] = read_results(results, own=False)
    data = scale_data(found)
    assert data
    (tmp_path / "report.html").write_text(scale_report(data), "utf-8")
    page = opened(tmp_path / "report.html", height=300, before="window.requestIdleCallback = () => 0;")
    page.evaluate("report.ready")
    page.evaluate(PRINTED, DRAWN)
    page.pdf()
    content, _ = read_inside(path(results, record))
    one = content["sentences"][0]
    layers, heads, _, _ = one["attention"][-1]["shape"]  # attention to the source
    queries, keys = (len({*one[side]["of"]}) for side in ("target", "source"))  # by word
    charts, plots = page.locator(".chart").count(), page.locator("#explorables .explorable").count()
    assert charts
    views = [charts, plots, layers * heads, queries, queries * keys, len(one["tree"]["nodes"])]
    *printed, of_table, of_runs = page.evaluate("printed")
    assert printed == views
    assert of_table >= 3
    assert of_runs == len(packed_at(page, "data-runs")["runs"]) == n_runs


def test_a_dark_page_is_printed_on_white_and_dark_again(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, dark=True)
    page.locator(".chart").first.scroll_into_view_if_needed()
    title = page.locator(TITLE).first
    expect(title).to_have_attribute("fill", "rgb(230, 228, 223)")
    page.evaluate(f"""() => addEventListener("afterprint", () => {{
      window.printed = document.querySelector("{TITLE}").getAttribute("fill");
    }})""")
    page.pdf()
    assert page.evaluate("printed") == "rgb(26, 26, 26)"
    expect(title).to_have_attribute("fill", "rgb(230, 228, 223)")
    page.locator("[data-theme-switch]").click()
    expect(title).to_have_attribute("fill", "rgb(26, 26, 26)")


def test_paper_has_nothing_to_press_and_what_is_said_of_a_chart_stands_whole_above_it(made: Path, opened: Any) -> None:
    page = opened(made / REPORT)
    for place in ("#table3 .grid", '[data-chart="curves/all"]', "#runs"):
        page.locator(place).first.scroll_into_view_if_needed()
    runs, choice = page.locator("#runs details.many table"), page.locator("#curves .vega-bindings")
    expect(runs).not_to_be_visible()
    expect(choice).to_be_visible()
    page.emulate_media(media="print")
    expect(runs).to_be_visible()
    expect(choice).not_to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.sort'), '::after').content") == "none"
    breaks = page.locator("#curves h2 + p").evaluate(
        "(one) => [one, one.previousElementSibling].map((at) => getComputedStyle(at))"
        ".map((style) => [style.breakInside, style.breakAfter])"
    )
    assert breaks == [["avoid", "avoid"], ["auto", "avoid"]], "not cut, and not left behind on the page before"
