"""Charts of a report in a browser: what they show is what the sheets say, and all of it leads to runs."""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from packed_values import packed_at
from playwright.sync_api import expect
from report_records import scored, unjudged, unjudged_of
from waiting import in_the_other_theme

from repro.claims.catalogue import CLAIMS
from repro.claims.evidence import read_published
from repro.claims.judge import evidence_of, judge
from repro.results.places import PUBLISHED
from repro.results.record import Record
from repro.web.charts import LETTERS, _looks, curves_section, differences_section
from repro.web.files import sections_of
from repro.web.report import report_html
from repro.web.runs import runs_section

REPORT = "laptop/report.html"
VIEW = "new Promise((done) => report.onChart('{}', done))"
CHARTS = "differences/log_ppl", "differences/bleu", "curves/all"


@pytest.fixture(scope="module")
def report(made: Path, opened_once: Any) -> Any:
    """A report with all its charts drawn. Tests leave it as they find it."""
    page = opened_once(made / REPORT, height=1500)
    for key in CHARTS:
        seen(page, key)
    return page


def sheet(page: Any, key: str, name: str) -> list[dict[str, str]]:
    text = packed_at(page, f"csv-{key}")[name]
    return list(csv.DictReader(io.StringIO(text)))


def seen(page: Any, key: str) -> Any:
    """Scroll to a chart, and wait until it is drawn."""
    chart = page.locator(f'[data-chart="{key}"]')
    chart.scroll_into_view_if_needed()
    page.evaluate(VIEW.format(key) + ".then(() => null)")
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


def test_differences_are_those_of_the_sheet_and_lead_to_their_row(report: Any) -> None:
    lines = sheet(report, "differences", "differences.csv")
    assert [line["row"][:7] for line in lines] == ["(A) h=1", "(A) <sc"]
    assert [float(line["bleu"]) for line in lines] == [10.5 - 62, 70.5 - 62]
    assert [line["bleu_low"] for line in lines] == ["", ""], "two seeds and one have no interval"
    points = report.locator('[data-chart="differences/bleu"] .mark-symbol').first.locator("path")
    assert points.count() == 2
    points.first.click()
    assert report.get_by_role("dialog").locator("h2").inner_text() == "h=1"
    report.keyboard.press("Escape")


def test_differences_of_published_rows_are_those_of_the_claims() -> None:
    data = unjudged(PUBLISHED / "laptop")  # of which seed 1 was exploration
    published = read_published(data.result_set.folder, data.result_set.everything)
    tables = {name: data.result_set.tables[name] for name in ("base", "table3_A", "table3_C", "table3_D")}
    result_set = replace(data.result_set, tables=tables)
    evidence = evidence_of(result_set.everything, result_set.rows, published)
    claims = [claim for claim in CLAIMS if claim.kind == "direction" and "base/base" in claim.rows]
    data = replace(data, result_set=result_set, evidence=evidence)
    section = differences_section(data)
    assert section
    lines = csv.DictReader(io.StringIO(section.csv["differences.csv"]))
    drawn = {line["row"].split(" ")[1]: line for line in lines if line["row"].startswith("(")}
    said = {
        (row.partition("/")[2], one.endpoint): (one, is_better)
        for judged in judge(evidence, result_set.rows, claims=claims, published=published)
        for row, is_better in zip(judged.claim.rows, (True, False), strict=True)
        for one in judged.found
        if row.startswith("table3_") and one.low is not None and one.endpoint in LETTERS
    }
    assert len(said) > 10
    for (row, endpoint), (one, is_better) in said.items():
        name = LETTERS[endpoint]
        ends = [float(drawn[row][f"{name}{end}"]) * (1 if is_better else -1) for end in ("_low", "", "_high")]
        assert sorted(ends) == pytest.approx([one.low, one.value, one.high], abs=1e-5)
        assert int(drawn[row]["n"]) == one.runs[0 if is_better else 1]


@pytest.mark.parametrize("width", [360, 700, 1600])
def test_charts_are_as_wide_as_the_room_and_every_tick_has_its_number(made: Path, opened: Any, width: int) -> None:
    page = opened(made / REPORT, width=width)
    for key in CHARTS:
        chart = seen(page, key)
        svg, room = chart.locator("svg").bounding_box()["width"], chart.bounding_box()["width"]
        assert 0.9 * room < svg <= room
        if key.startswith("differences"):
            labels = chart.locator('.role-axis-label text:not([opacity="0"])').all_text_contents()
            numbers = [text for text in labels if re.fullmatch(r"[−+]?[\d.,]+", text)]
            assert {"0", "0.0", "0.00"} & {*numbers}
            assert len(numbers) == chart.locator(".role-axis-tick line").count()


def test_a_drawn_area_of_costs_chooses_the_curves(report: Any) -> None:
    lines = sheet(report, "curves", "curves.csv")
    assert len(lines) == 3 * 2 * 3, "three rows, train and dev, three steps"
    chart = report.locator('[data-chart="curves/all"]')
    lines_drawn, pale = chart.locator(".mark-line path"), chart.locator('.mark-line path[opacity="0.08"]')
    assert (lines_drawn.count(), pale.count()) == (3 + 3, 0), "a line a row, and one in the strip"
    chart.scroll_into_view_if_needed()
    area = chart.locator("svg").bounding_box()
    left, low = area["x"] + 50, area["y"] + area["height"] - 45
    report.mouse.move(left, low)
    report.mouse.down()
    report.mouse.move(left + area["width"] - 100, low - 80, steps=4)
    report.mouse.up()
    expect(pale).to_have_count(2)  # the lowest point is that of h=1
    chart.locator('input[value="dev"]').check()
    expect(lines_drawn).to_have_count(3 + 3)
    chart.locator('input[value="train"]').check()
    chart.locator("input").first.press("Escape")
    expect(pale).to_have_count(0)


def test_powers_of_ten_are_written_as_in_print_and_lines_told_apart(report: Any) -> None:
    ticks = report.locator('[data-chart="curves/all"] .role-axis-label text').all_text_contents()
    powers = [tick for tick in ticks if "10" in tick and not tick.isdigit()]
    assert powers
    assert all(re.fullmatch("([1-9](\\.\\d+)?×)?10[¹²³][⁰-⁹¹²³]", tick) for tick in powers), powers
    assert not any("e+" in tick for tick in ticks)
    keys = report.locator("#differences .key")
    colour = 'getComputedStyle(one, "::before").borderTopColor'
    assert len(set(keys.evaluate_all(f"(keys) => keys.map((one) => {colour})"))) == 3
    (over,) = [one for one in keys.all() if "sentences" in one.inner_text()]
    assert over.evaluate(f"(one) => {colour}") == "rgb(0, 158, 115)", "green: the other two are blue and orange"


def test_no_two_of_twenty_tables_look_the_same() -> None:
    names = [f"mine_{n:02}" for n in range(20)]
    colour, dash, shape = (look.to_dict()["scale"] for look in _looks("table", names))
    for other in (dash, shape):
        assert colour["domain"] == other["domain"] == names
        assert len({str(pair) for pair in zip(colour["range"], other["range"], strict=True)}) == 20


@pytest.mark.parametrize(("own", "most", "by"), [(True, 4, "row"), (True, 3, "table"), (False, 4, "table")])
def test_ones_own_rows_have_a_colour_each_while_there_are_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: bool, most: int, by: str
) -> None:
    monkeypatch.setattr("repro.web.charts.MOST_ROWS", most)
    records = [scored("base", "base", 1, 60.0), *(scored(f"h={i}", "table3_A", 1, 50.0) for i in range(3))]
    data = unjudged_of(records, tmp_path)
    section = curves_section(replace(data, result_set=replace(data.result_set, own=own)))
    assert section
    bands, _, cost = section.charts["all"]["vconcat"]
    line, point = (chart["encoding"] | chart["layer"][1]["encoding"] for chart in (bands, cost))
    assert {look["field"] for look in (line["color"], line["strokeDash"], point["color"], point["shape"])} == {by}


def test_axes_have_two_labels_and_no_label_twice_where_rows_are_alike(opened: Any, tmp_path: Path) -> None:
    curve = {"step": [10, 20], "nll": [6.5, 5.4]}
    records = []
    for seed, row, table, flops in ((1, "base", "base", 1.8e10), (2, "h=1", "table3_A", 3.1e10)):
        one = scored(row, table, seed, 60.0)
        records.append(replace(one, curves={"train": curve, "dev": curve}, cost=one.cost | {"flops": flops}))  # type: ignore[arg-type]
    page = drawn(records, tmp_path, opened, height=1500)
    chart = seen(page, "curves/all")
    for axis in ("Y-axis titled 'loss", "X-axis titled 'FLOPs"):
        labels = chart.locator(f'[aria-label^="{axis}"] .role-axis-label text')
        said = [label for label in labels.all_text_contents() if label]
        assert len({*said}) == len(said) > 1, (axis, said)
    page.locator('[data-chart="differences/bleu"] .mark-symbol path').first.click()
    numbers = page.locator("dialog svg.curves").first.locator('text[text-anchor="end"]')
    numbers.first.wait_for()
    assert numbers.all_text_contents()[:3] == ["5.4", "5.92", "6.5"]


def test_names_stand_whole_on_a_narrow_screen_and_on_a_wide_one(opened: Any, tmp_path: Path) -> None:
    tables = ["lab_parts", "lab_positions", "lab_scores", "lab_selection", "ladder", "ladder_rates"]
    names = [f"soft alignment, scaled dot, rate x {factor}" for factor in ("0.5", "1", "2")]
    records = [scored("base", "base", 1, 60.0), *(unprinted("no norm", table, 1, 50.0) for table in tables)]
    records += [unprinted(name, "ladder_rates", 1, 50.0) for name in names]
    page = drawn(records, tmp_path, opened, width=360)
    place = seen(page, "curves/all").bounding_box()
    legend = page.locator('[data-chart="curves/all"] .role-legend-label text')
    assert legend.all_text_contents() == ["base", *tables]
    boxes = [name.bounding_box() for name in legend.all()]
    assert max(box["x"] + box["width"] for box in boxes) <= place["x"] + place["width"]
    rows = seen(page, "differences/bleu_ours").locator(".role-axis-label text")
    told_apart = [f"ladder_rates {name}" for name in names]
    assert [label for label in rows.all_text_contents() if "rate x" in label] == told_apart
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("""() => new Promise((done) => {
      const columns = () => new Set([...document.querySelectorAll(".role-legend-label text")]
        .map((one) => Math.round(one.getBoundingClientRect().x))).size;
      const look = () => (columns() === 4 ? done(null) : setTimeout(look, 20));
      look();
    })""")
    assert [label for label in rows.all_text_contents() if "rate x" in label] == told_apart


@pytest.fixture(scope="module")
def with_ours(opened_once: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Charts of the base, of a row of Table 3, and of a row that is ours, whose interval is 0.8 ± 2.6 BLEU."""
    records = []
    for seed, bleu in ((1, 0.1), (2, 0.2), (3, 2.0)):
        records += [scored("base", "base", seed, 60.0), scored("h=1", "table3_A", seed, 59.0)]
        records.append(unprinted("no norm", "lab", seed, bleu))
    return drawn(records, tmp_path_factory.mktemp("ours"), opened_once, height=1500)


def test_the_papers_rows_come_first_and_have_axes_of_their_own(with_ours: Any) -> None:
    rows = [line["row"] for line in sheet(with_ours, "differences", "differences.csv")]
    assert rows == ["(A) h=1 (here 8)", "lab no norm"]
    lowest = []
    for key, row in zip(("differences/bleu", "differences/bleu_ours"), rows, strict=True):
        labels = seen(with_ours, key).locator(".role-axis-label text").all_text_contents()
        assert row in labels
        lowest.append(min(float(label.replace("\u2212", "-")) for label in labels if label and label != row))
    assert lowest[0] > -3
    assert lowest[1] < -40
    axis = seen(with_ours, "curves/all").locator('[aria-label^="Y-axis titled \'BLEU"] .role-axis-label text')
    told = [label for label in axis.all_text_contents() if label]
    assert "0" in told, "an interval that reaches below no BLEU at all makes no room for less"
    assert [label for label in told if label.startswith(("-", "\N{MINUS SIGN}"))] == []


def test_curves_begin_with_table_3_where_there_is_more(with_ours: Any) -> None:
    chart = seen(with_ours, "curves/all")
    pale = chart.locator('.mark-line path[opacity="0.08"]')
    names = chart.locator(".role-legend-label text")
    expect(pale).to_have_count(1)
    assert [one.get_attribute("aria-pressed") for one in names.all()] == ["true", "true", "false"]
    expect(with_ours.locator("#curves")).to_contain_text("The rows of Table 3 are coloured at first")
    names.first.dblclick()
    expect(pale).to_have_count(0)
    in_the_other_theme(with_ours, "curves/all")
    expect(pale).to_have_count(0)
    chart.locator("input").first.press("Escape")
    expect(pale).to_have_count(1)
