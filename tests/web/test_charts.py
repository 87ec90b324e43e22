"""Charts and verdicts of a report in a browser: what they show is what the sheets say, and all of it leads to runs."""

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
from report_records import scored
from waiting import in_the_other_theme

from repro.pages.build import read_results
from repro.pages.scale_data import ScaleData, scale_data
from repro.results.frame import ResultSet
from repro.results.places import PUBLISHED
from repro.results.record import Record, path
from repro.web.charts import LETTERS, curves_section, differences_section
from repro.web.files import sections_of
from repro.web.report import report_html
from repro.web.runs import runs_section

REPORT = "laptop/report.html"
VIEW = "new Promise((done) => report.onChart('{}', done))"


def sheet(page: Any, key: str, name: str) -> list[dict[str, str]]:
    text = packed_at(page, f"csv-{key}")[name]
    return list(csv.DictReader(io.StringIO(text)))


def seen(page: Any, key: str) -> None:
    """Scroll to a chart, and wait until it is drawn."""
    page.locator(f'[data-chart="{key}"]').scroll_into_view_if_needed()
    page.evaluate(VIEW.format(key) + ".then(() => null)")


def unprinted(row: str, table: str, seed: int, bleu: float) -> Record:
    """A run of a row that is ours: the paper has no number of it."""
    return replace(scored(row, table, seed, bleu), paper={"ppl": None, "bleu": None, "params": None})


def data_of(records: Iterable[Record], results: Path) -> ScaleData:
    """The records of one scale, where no others are."""
    for one in records:
        one.save(path(results, one))
    (found,) = read_results(results, own=False)
    data = scale_data(found)
    assert data
    return data


def drawn(records: Iterable[Record], folder: Path, opened: Any, **how: Any) -> Any:
    """A page of their charts, of which each row leads to its runs."""
    sections = sections_of(data_of(records, folder / "results"), (differences_section, curves_section, runs_section))
    (folder / "page.html").write_text(report_html(sections, title="Charts", origin="a test"), "utf-8")
    return opened(folder / "page.html", **how)


def test_differences_are_those_of_the_sheet_and_lead_to_their_row(made: Path, opened: Any) -> None:
    page = opened(made / REPORT)
    seen(page, "differences/bleu")
    lines = sheet(page, "differences", "differences.csv")
    assert [line["row"][:7] for line in lines] == ["(A) h=1", "(A) <sc"]
    assert [float(line["bleu"]) for line in lines] == [10.5 - 62, 70.5 - 62]
    assert [line["bleu_low"] for line in lines] == ["", ""], "two seeds and one have no interval"
    points = page.locator('[data-chart="differences/bleu"] .mark-symbol').first.locator("path")
    assert points.count() == 2
    points.first.click()
    assert page.get_by_role("dialog").locator("h2").inner_text() == "h=1"


def test_differences_of_published_rows_are_those_of_the_claims() -> None:
    found = ResultSet.read(PUBLISHED / "laptop")  # of which seed 1 was exploration
    data = scale_data(found)
    assert data
    section = differences_section(data)
    assert section
    lines = csv.DictReader(io.StringIO(section.csv["differences.csv"]))
    drawn = {line["row"].split(" ")[1]: line for line in lines if line["row"].startswith("(")}
    said = {
        (row.partition("/")[2], one.endpoint): (one, is_better)
        for judged in data.judged
        if judged.claim.kind == "direction"
        for row, is_better in zip(judged.claim.rows, (True, False), strict=True)
        for one in judged.found
        if row.startswith("table3_") and one.low is not None and "base/base" in judged.claim.rows
        if row != "table3_big/big" and one.endpoint in LETTERS
    }
    assert len(said) > 10
    for (row, endpoint), (one, is_better) in said.items():
        name = LETTERS[endpoint]
        ends = [float(drawn[row][f"{name}{end}"]) * (1 if is_better else -1) for end in ("_low", "", "_high")]
        assert sorted(ends) == pytest.approx([one.low, one.value, one.high], abs=1e-5)
        assert int(drawn[row]["n"]) == one.runs[0 if is_better else 1]


@pytest.mark.parametrize("width", [360, 700, 1000, 1600])
def test_every_tick_of_the_differences_has_its_number(made: Path, opened: Any, width: int) -> None:
    page = opened(made / REPORT, width=width)
    for key in ("differences/log_ppl", "differences/bleu"):
        seen(page, key)
        chart = page.locator(f'[data-chart="{key}"]')
        labels = chart.locator('.role-axis-label text:not([opacity="0"])').all_text_contents()
        numbers = [text for text in labels if re.fullmatch(r"[−+]?[\d.,]+", text)]
        assert {"0", "0.0", "0.00"} & {*numbers}
        assert len(numbers) == chart.locator(".role-axis-tick line").count()


def test_a_drawn_area_of_costs_chooses_the_curves(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, height=1500)
    seen(page, "curves/all")
    lines = sheet(page, "curves", "curves.csv")
    assert len(lines) == 3 * 2 * 3, "three rows, train and dev, three steps"
    chart = page.locator('[data-chart="curves/all"]')
    lines_drawn, pale = chart.locator(".mark-line path"), chart.locator('.mark-line path[opacity="0.08"]')
    assert (lines_drawn.count(), pale.count()) == (3 + 3, 0), "a line a row, and one in the strip"
    area = chart.locator("svg").bounding_box()
    left, low = area["x"] + 50, area["y"] + area["height"] - 45
    page.mouse.move(left, low)
    page.mouse.down()
    page.mouse.move(left + area["width"] - 100, low - 80, steps=4)
    page.mouse.up()
    expect(pale).to_have_count(2)  # the lowest point is that of h=1
    chart.locator('input[value="dev"]').check()
    expect(lines_drawn).to_have_count(3 + 3)


def test_curves_begin_with_table_3_where_there_is_more(opened: Any, tmp_path: Path) -> None:
    rows = ("base", "base", 60.0), ("h=1", "table3_A", 50.0), ("no norm", "lab_parts", 40.0)
    page = drawn((scored(row, table, 1, bleu) for row, table, bleu in rows), tmp_path, opened, height=1500)
    seen(page, "curves/all")
    chart = page.locator('[data-chart="curves/all"]')
    pale = chart.locator('.mark-line path[opacity="0.08"]')
    names = chart.locator(".role-legend-label text")
    expect(pale).to_have_count(1)
    assert [one.get_attribute("aria-pressed") for one in names.all()] == ["true", "true", "false"]
    expect(page.locator("#curves")).to_contain_text("The rows of Table 3 are coloured at first")
    names.first.dblclick()
    expect(pale).to_have_count(0)
    in_the_other_theme(page, "curves/all")
    expect(pale).to_have_count(0)
    page.locator('[data-chart="curves/all"] input').first.press("Escape")
    expect(pale).to_have_count(1)


def test_powers_of_ten_are_written_as_in_print_and_lines_told_apart(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, height=1500)
    seen(page, "curves/all")
    ticks = page.locator('[data-chart="curves/all"] .role-axis-label text').all_text_contents()
    powers = [tick for tick in ticks if "10" in tick and not tick.isdigit()]
    assert powers
    assert all(re.fullmatch("([1-9](\\.\\d+)?×)?10[¹²³][⁰-⁹¹²³]", tick) for tick in powers), powers
    assert not any("e+" in tick for tick in ticks)
    keys = page.locator("#differences .key")
    colour = 'getComputedStyle(one, "::before").borderTopColor'
    assert len(set(keys.evaluate_all(f"(keys) => keys.map((one) => {colour})"))) == 3
    (over,) = [one for one in keys.all() if "sentences" in one.inner_text()]
    assert over.evaluate(f"(one) => {colour}") == "rgb(0, 158, 115)", "green: the other two are blue and orange"


def test_charts_take_the_colours_of_the_theme(made: Path, opened: Any) -> None:
    page = opened(made / REPORT, dark=True)
    seen(page, "differences/bleu")
    text = page.locator('[data-chart="differences/bleu"] .role-axis-title text').first
    assert text.get_attribute("fill") == "rgb(230, 228, 223)"
    page.locator("[data-theme-switch]").click()
    expect(text).to_have_attribute("fill", "rgb(26, 26, 26)")


def test_no_two_of_twenty_tables_look_the_same(tmp_path: Path) -> None:
    tables = [f"mine_{n:02}" for n in range(20)]
    records = [scored("base", "base", 1, 60.0), *(scored("h=1", table, 1, 50.0) for table in tables)]
    section = curves_section(data_of(records, tmp_path))
    assert section
    bands, _, cost = section.charts["all"]["vconcat"]
    line, point = (chart["encoding"] | chart["layer"][1]["encoding"] for chart in (bands, cost))
    for looks in ((line["color"], line["strokeDash"]), (point["color"], point["shape"])):
        one, other = (of["scale"] for of in looks)
        assert one["domain"] == other["domain"] == ["base", *tables]
        assert len({str(pair) for pair in zip(one["range"], other["range"], strict=True)}) == 21


@pytest.mark.parametrize(("n", "by"), [(4, "row"), (16, "table")])  # with the base one more
def test_ones_own_rows_have_a_colour_each_while_there_are_few(tmp_path: Path, n: int, by: str) -> None:
    records = [scored("base", "base", 1, 60.0), *(scored(f"h={i}", "table3_A", 1, 50.0) for i in range(n))]
    data, looks = data_of(records, tmp_path), {}
    for own in (True, False):
        section = curves_section(replace(data, result_set=replace(data.result_set, own=own)))
        assert section
        bands, _, cost = section.charts["all"]["vconcat"]
        line, point = (chart["encoding"] | chart["layer"][1]["encoding"] for chart in (bands, cost))
        looks[own] = line["color"]["field"]
        assert {one["field"] for one in (line["color"], line["strokeDash"], point["shape"])} == {looks[own]}
    assert looks == {True: by, False: "table"}


def test_claims_are_found_by_verdict_kind_and_word(made: Path, opened: Any) -> None:
    page = opened(made / REPORT)
    claims = page.locator("#claims")
    claims.locator(".item").first.scroll_into_view_if_needed()  # its filters are made when it comes into sight
    claims.get_by_role("searchbox").wait_for()
    shown = claims.locator(".item:visible")
    by_claim = {line["claim"]: line for line in sheet(page, "claims", "claims.csv")}
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
    assert any("found from is the size that would have been found" in text for text in about)
    claims.locator("#claim-C28b a", has_text="table3_A/h=1").click()
    assert page.get_by_role("dialog").locator("h2").inner_text() == "h=1"


@pytest.mark.parametrize("key", ["claims", "statements"])
def test_what_stands_behind_a_verdict_ends_with_one_stop(made: Path, opened: Any, key: str) -> None:
    page = opened(made / REPORT)
    told = page.locator(f"#{key} .item > p:first-of-type").all_text_contents()
    assert told
    assert [text for text in told if ".." in text or not text.endswith(".")] == []


@pytest.mark.parametrize("width", [360, 1600])
def test_charts_are_as_wide_as_the_room(made: Path, opened: Any, width: int) -> None:
    page = opened(made / REPORT, width=width)
    for key in ("differences/bleu", "curves/all"):
        seen(page, key)
        place = page.locator(f'[data-chart="{key}"]').bounding_box()
        svg = page.locator(f'[data-chart="{key}"] svg').bounding_box()
        assert svg["width"] <= place["width"]
        assert svg["width"] > 0.9 * place["width"]


def test_axes_have_two_labels_and_no_label_twice_where_rows_are_alike(opened: Any, tmp_path: Path) -> None:
    curve = {"step": [10, 20], "nll": [6.5, 5.4]}
    records = []
    for seed, row, table, flops in ((1, "base", "base", 1.8e10), (2, "h=1", "table3_A", 3.1e10)):
        one = scored(row, table, seed, 60.0)
        records.append(replace(one, curves={"train": curve, "dev": curve}, cost=one.cost | {"flops": flops}))  # type: ignore[arg-type]
    page = drawn(records, tmp_path, opened, height=1500)
    seen(page, "curves/all")
    for axis in ("Y-axis titled 'loss", "X-axis titled 'FLOPs"):
        labels = page.locator(f'[data-chart="curves/all"] [aria-label^="{axis}"] .role-axis-label text')
        said = [label for label in labels.all_text_contents() if label]
        assert len({*said}) == len(said) > 1, (axis, said)
    page.locator('[data-chart="differences/bleu"] .mark-symbol path').first.click()
    numbers = page.locator("dialog svg.curves").first.locator('text[text-anchor="end"]')
    numbers.first.wait_for()
    loss = numbers.all_text_contents()
    assert loss[:3] == ["5.4", "5.92", "6.5"]


def test_an_interval_around_no_bleu_at_all_makes_no_room_for_less(opened: Any, tmp_path: Path) -> None:
    rows = [("base", "base", seed, 60.0) for seed in (1, 2, 3)]
    rows += [("h=1", "table3_A", seed, bleu) for seed, bleu in ((1, 0.1), (2, 0.2), (3, 2.0))]  # 0.8 +- 2.6
    page = drawn((scored(*row) for row in rows), tmp_path, opened, height=1500)
    seen(page, "curves/all")
    axis = page.locator('[data-chart="curves/all"] [aria-label^="Y-axis titled \'BLEU"]')
    said = [label for label in axis.locator(".role-axis-label text").all_text_contents() if label]
    assert "0" in said
    assert [label for label in said if label.startswith(("-", "\N{MINUS SIGN}"))] == []


def test_long_names_are_told_apart(opened: Any, tmp_path: Path) -> None:
    names = [f"soft alignment, scaled dot, rate x {factor}" for factor in ("0.5", "1", "2")]
    records = [scored("base", "base", 1, 60.0), *(unprinted(name, "ladder_rates", 1, 50.0) for name in names)]
    for page in (drawn(records, tmp_path, opened, width=360), opened(tmp_path / "page.html", width=1280)):
        seen(page, "differences/bleu_ours")
        labels = page.locator('[data-chart="differences/bleu_ours"] .role-axis-label text').all_text_contents()
        assert [f"ladder_rates {name}" for name in names] == [label for label in labels if "rate" in label]


def test_every_table_of_the_legend_is_seen_on_a_narrow_screen(opened: Any, tmp_path: Path) -> None:
    tables = ["lab_parts", "lab_positions", "lab_scores", "lab_selection", "ladder", "ladder_rates"]
    records = [scored("base", "base", 1, 60.0), *(unprinted("no norm", table, 1, 50.0) for table in tables)]
    page = drawn(records, tmp_path, opened, width=360)
    seen(page, "curves/all")
    place = page.locator('[data-chart="curves/all"]').bounding_box()
    names = page.locator('[data-chart="curves/all"] .role-legend-label text')
    assert names.all_text_contents() == ["base", *tables]
    boxes = [name.bounding_box() for name in names.all()]
    assert max(box["x"] + box["width"] for box in boxes) <= place["x"] + place["width"]
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("""() => new Promise((done) => {
      const columns = () => new Set([...document.querySelectorAll(".role-legend-label text")]
        .map((one) => Math.round(one.getBoundingClientRect().x))).size;
      const look = () => (columns() === 4 ? done(null) : setTimeout(look, 20));
      look();
    })""")


def test_the_papers_rows_come_first_and_have_axes_of_their_own(opened: Any, tmp_path: Path) -> None:
    records = [
        one
        for seed in (1, 2)
        for one in (
            scored("base", "base", seed, 60.0),
            scored("h=1", "table3_A", seed, 59.0),
            unprinted("no norm", "lab_parts", seed, 6.0),
        )
    ]
    page = drawn(records, tmp_path, opened, height=1500)
    rows = [line["row"] for line in sheet(page, "differences", "differences.csv")]
    assert rows == ["(A) h=1 (here 8)", "lab_parts no norm"]
    lowest = []
    for key, row in zip(("differences/bleu", "differences/bleu_ours"), rows, strict=True):
        seen(page, key)
        labels = page.locator(f'[data-chart="{key}"] .role-axis-label text').all_text_contents()
        assert row in labels
        lowest.append(min(float(label.replace("\u2212", "-")) for label in labels if label and label != row))
    assert lowest[0] > -3
    assert lowest[1] < -40
