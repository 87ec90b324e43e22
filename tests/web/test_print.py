"""What a report has on paper: every view, however early it is printed, in black on white, and nothing to press."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from looked_inside import its_record, looked_at
from packed_values import packed_at
from playwright.sync_api import expect
from report_records import fill

from repro.cli import report
from repro.results.inside import read_inside
from repro.results.record import Record, path
from repro.runs.inside import keep_inside

REPORT = "laptop/report.html"
DRAWN = (
    ".chart svg",
    "#explorables .plot svg",
    "#inside .heads canvas",
    "#inside .from",  # lines from a query
    "#inside figure svg[role=img] rect",  # cells of the matrix
    "#inside .tree .node",
)
PRINTED = """(of) => addEventListener("afterprint", () => {
  window.printed = of.map((one) => document.querySelectorAll(one).length);
})"""


def ours() -> Record:
    """The run that is looked into, of a row that no other run has."""
    return replace(its_record(), table="lab_parts", row="no norm")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results with the report of a scale, of which one run left what it does inside."""
    folder = tmp_path_factory.mktemp("printed")
    fill(folder / "results")
    record = ours()
    record.save(path(folder / "results", record))
    keep_inside(looked_at(folder / "run"), record, folder / "results", print)
    assert report.main(["--results", str(folder / "results"), "--html"]) == 0
    return folder / "results"


def test_a_print_has_every_view_as_soon_as_the_page_is_there(whole: Path, opened: Any) -> None:
    page = opened(whole / REPORT, height=300)
    page.evaluate(PRINTED, DRAWN)
    page.pdf()
    content, _ = read_inside(path(whole, ours()))
    one = content["sentences"][0]
    layers, heads, _, _ = one["attention"][-1]["shape"]  # attention to the source
    queries, keys = (len({*one[side]["of"]}) for side in ("target", "source"))  # by word
    charts, plots = page.locator(".chart").count(), page.locator("#explorables .explorable").count()
    nodes = len(one["tree"]["nodes"])
    assert page.evaluate("printed") == [charts, plots, layers * heads, queries, queries * keys, nodes]
    assert charts


def test_a_dark_page_is_printed_on_white_and_dark_again(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, dark=True)
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


def test_paper_has_what_is_folded_however_early(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, height=300, before="window.requestIdleCallback = () => 0;")
    rows = ("#table3_A tbody tr", "#all-runs tbody tr")
    page.evaluate(PRINTED, rows)
    page.pdf()
    of_table, of_runs = page.evaluate("printed")
    assert of_table >= 3
    assert of_runs == len(packed_at(page, "data-runs")["runs"])


def test_on_paper_what_is_said_of_a_chart_stands_whole_above_it(made: Path, opened: Any) -> None:
    page = opened(made / REPORT)
    page.emulate_media(media="print")
    said = page.locator("#curves h2 + p").evaluate(
        "(one) => [one, one.previousElementSibling].map((at) => getComputedStyle(at))"
        ".map((style) => [style.breakInside, style.breakAfter])"
    )
    assert said == [["avoid", "avoid"], ["auto", "avoid"]], "not cut, and neither left behind on the page before"
