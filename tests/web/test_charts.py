"""Charts of a report in a browser: what they show is what the sheets say, and all of it leads to runs."""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from report_records import packed_at, scored, unjudged_of

from repro.results.record import Record
from repro.web.charts import _looks, curves_section, differences_section
from repro.web.files import sections_of
from repro.web.report import report_html
from repro.web.runs import runs_section

REPORT = "laptop/report.html"
CURVES = "curves/all"
CHARTS = "differences/log_ppl", "differences/bleu", CURVES


@pytest.fixture(scope="module")
def report(made: Path, opened_once: Any) -> Any:
    """A report with all its charts drawn. Tests leave it as they find it."""
    page = opened_once(made / REPORT, height=1500)
    for key in CHARTS:
        seen(page, key)
    return page


def sheet(page: Any, key: str, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(packed_at(page, f"csv-{key}")[name])))


def seen(page: Any, key: str, times: int = 1) -> Any:
    """Scroll to a chart, and wait until it was drawn so many times."""
    chart = page.locator(f'[data-chart="{key}"]')
    chart.scroll_into_view_if_needed()
    expect(chart).to_have_attribute("data-drawn", str(times))
    return chart


def unprinted(row: str, table: str, seed: int, bleu: float) -> Record:
    """A run of a row that is ours: the paper has no number of it."""
    return replace(scored(row, table, seed, bleu), paper={"ppl": None, "bleu": None, "params": None})


def drawn(records: Iterable[Record], folder: Path, opened: Any, **how: Any) -> Any:
    """A page of their charts, of which each row leads to its runs."""
    sections = sections_of(
        unjudged_of(records, folder / "results"), (differences_section, curves_section, runs_section)
    )
    (folder / "page.html").write_text(report_html(sections, title="Charts", origin="a test"), "utf-8")
    return opened(folder / "page.html", **how)


def pale(chart: Any) -> Any:
    return chart.locator('.mark-line path[opacity="0.08"]')


def test_differences_are_those_of_the_sheet_and_lead_to_their_row(report: Any) -> None:
    lines = sheet(report, "differences", "differences.csv")
    assert [line["row"][:7] for line in lines] == ["(A) h=1", "(A) <sc"]
    assert [float(line["bleu"]) for line in lines] == [10.5 - 61.5, 70.5 - 61], "less the base of the same seeds"
    assert [line["bleu_low"] for line in lines] == ["", ""], "two seeds and one have no interval"
    chart = report.locator('[data-chart="differences/bleu"]')
    points = chart.locator(".mark-symbol").first.locator("path")
    assert points.count() == 2
    for what in (points.first, chart.locator(".role-axis-label text", has_text="(A) h=1")):
        what.click()
        expect(report.get_by_role("dialog").locator("h2")).to_have_text("h=1")
        report.keyboard.press("Escape")
        expect(report.get_by_role("dialog")).not_to_be_visible()


def test_charts_are_as_wide_as_the_room_and_every_tick_has_its_number(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, width=360)
    for times, width in enumerate((360, 1600), start=1):
        page.set_viewport_size({"width": width, "height": 900})
        for key in CHARTS:
            chart = seen(page, key, times)
            svg, room = chart.locator("svg").bounding_box()["width"], chart.bounding_box()["width"]
            assert 0.9 * room < svg <= room
            if key.startswith("differences"):
                labels = chart.locator('.role-axis-label text:not([opacity="0"])').all_text_contents()
                numbers = [text for text in labels if re.fullmatch(r"[−+]?[\d.,]+", text)]
                assert {"0", "0.0", "0.00"} & {*numbers}
                assert len(numbers) == chart.locator(".role-axis-tick line").count()


def test_the_strip_zooms_the_choice_of_text_changes_and_other_colours_or_escape_begin_again(report: Any) -> None:
    chart = report.locator(f'[data-chart="{CURVES}"]')
    chart.scroll_into_view_if_needed()
    lines, ticks = chart.locator(".mark-line path"), chart.locator('[aria-label^="X-axis titled \'updates"] text')
    assert lines.count() == 3 + 3, "a line a row, and one in the strip"
    expect(ticks.first).to_have_text("10")
    area = chart.locator("svg").bounding_box()
    report.mouse.move(area["x"] + area["width"] / 2, area["y"] + area["height"] - 400)
    report.mouse.down()
    report.mouse.move(area["x"] + area["width"], area["y"] + area["height"] - 400, steps=4)
    report.mouse.up()
    expect(ticks.first).not_to_have_text("10")
    chart.locator('input[value="dev"]').check()
    expect(lines).to_have_count(3 + 3)
    title = chart.locator(".role-axis-title text").first
    ink = title.get_attribute("fill")
    for times, scheme in ((2, "dark"), (3, "light")):
        report.emulate_media(color_scheme=scheme)
        seen(report, CURVES, times)
        assert (title.get_attribute("fill") == ink) == (times == 3)
    expect(ticks.first).to_have_text("10")
    chart.locator("input").first.press("Escape")
    expect(chart).to_have_attribute("data-drawn", "4")


def test_no_two_of_twenty_tables_look_the_same() -> None:
    names = [f"mine_{n:02}" for n in range(20)]
    colour, dash, shape = (look.to_dict()["scale"] for look in _looks("table", names))
    for other in (dash, shape):
        assert colour["domain"] == other["domain"] == names
        assert len({str(pair) for pair in zip(colour["range"], other["range"], strict=True)}) == 20


def test_ones_own_rows_have_a_colour_each_while_there_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [scored("base", "base", 1, 60.0), *(scored(f"h={i}", "table3_A", 1, 50.0) for i in range(3))]
    data = unjudged_of(records, tmp_path)
    for own, most, by in ((True, 4, "row"), (True, 3, "table"), (False, 4, "table")):
        monkeypatch.setattr("repro.web.charts.MOST_ROWS", most)
        section = curves_section(replace(data, result_set=replace(data.result_set, own=own)))
        assert section
        bands, _, cost = section.charts["all"]["vconcat"]
        line, point = (chart["encoding"] | chart["layer"][1]["encoding"] for chart in (bands, cost))
        assert {look["field"] for look in (line["color"], line["strokeDash"], point["color"], point["shape"])} == {by}


def test_names_stand_whole_on_a_narrow_screen(opened: Any, tmp_path: Path) -> None:
    tables = ["lab_parts", "lab_positions", "lab_scores", "lab_selection", "ladder", "ladder_rates"]
    names = [f"soft alignment, scaled dot, rate x {factor}" for factor in ("0.5", "1", "2")]
    records = [scored("base", "base", 1, 60.0), *(unprinted("no norm", table, 1, 50.0) for table in tables)]
    records += [unprinted(name, "ladder_rates", 1, 50.0) for name in names]
    page = drawn(records, tmp_path, opened, width=360)
    place = seen(page, CURVES).bounding_box()
    legend = page.locator('[data-chart="curves/all"] .role-legend-label text')
    assert legend.all_text_contents() == ["base", *tables]
    boxes = [name.bounding_box() for name in legend.all()]
    assert max(box["x"] + box["width"] for box in boxes) <= place["x"] + place["width"]
    rows = seen(page, "differences/bleu_ours").locator(".role-axis-label text")
    assert [label for label in rows.all_text_contents() if "rate x" in label] == [f"ladder_rates {n}" for n in names]


def test_the_papers_rows_come_first_with_axes_of_their_own_and_curves_begin_with_them(
    opened: Any, tmp_path: Path
) -> None:
    records = []  # of a row of Table 3, and of one that is ours, whose interval is 0.8 ± 2.6 BLEU
    for seed, bleu in ((1, 0.1), (2, 0.2), (3, 2.0)):
        records += [scored("base", "base", seed, 60.0), scored("h=1", "table3_A", seed, 59.0)]
        records.append(unprinted("no norm", "lab", seed, bleu))
    page = drawn(records, tmp_path, opened, height=1500)
    rows = [line["row"] for line in sheet(page, "differences", "differences.csv")]
    assert rows == ["(A) h=1 (here 8)", "lab no norm"]
    lowest = []
    for key, row in zip(("differences/bleu", "differences/bleu_ours"), rows, strict=True):
        labels = seen(page, key).locator(".role-axis-label text").all_text_contents()
        assert row in labels
        lowest.append(min(float(label.replace("\u2212", "-")) for label in labels if label and label != row))
    assert lowest[0] > -3
    assert lowest[1] < -40
    chart = seen(page, CURVES)
    told = [label for label in chart.locator('[aria-label^="Y-axis titled \'BLEU"] text').all_text_contents() if label]
    assert "0" in told, "an interval that reaches below no BLEU at all makes no room for less"
    assert [label for label in told if label.startswith(("-", "\N{MINUS SIGN}"))] == []
    expect(pale(chart)).to_have_count(1)
    names = chart.locator(".role-legend-label text")
    names.last.click()
    expect(pale(chart)).to_have_count(2)
    names.first.dblclick()
    expect(pale(chart)).to_have_count(0)
    chart.locator("input").first.press("Escape")
    expect(pale(chart)).to_have_count(1)
