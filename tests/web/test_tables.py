"""The report of a scale in a browser: rows are counted, sorted, filtered and lead to their runs, whatever they hold."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import expect
from report_records import HOSTILE, packed_at, unpacked

from repro.pages.scale_data import ScaleData
from repro.render.text import shown
from repro.web.files import by_evidence, index_report, lead

REPORT = "laptop/report.html"


@pytest.fixture(scope="module")
def shared(made: Path, opened_once: Any) -> Any:
    page = opened_once(made / REPORT)
    page.locator("#table3 .sort").first.wait_for()  # made when the table is in sight, as its keys are
    return page


@pytest.fixture
def page(shared: Any) -> Any:
    """A report in which nothing is open and nothing is filtered."""
    shared.set_viewport_size({"width": 1280, "height": 900})
    if shared.get_by_role("dialog").is_visible():
        shared.keyboard.press("Escape")
        expect(shared.get_by_role("dialog")).not_to_be_visible()
    return shared


def rows_shown(page: Any) -> list[str]:
    return list(page.locator("#table3 .grid >> nth=0 >> tbody tr:visible th").all_inner_texts())


def test_rows_are_those_of_the_sheet_and_sort_by_their_numbers(page: Any) -> None:
    sheet = packed_at(page, "csv-table3")["table3.csv"]
    names = [line["row"] for line in csv.DictReader(io.StringIO(sheet))]
    shown = rows_shown(page)
    assert len(shown) == len(names) == 4
    assert shown[:2] == ["base", "(A) h=1"]
    heading = page.locator("#table3 .grid >> nth=0 >> button.sort", has_text="ours").nth(1)
    heading.click()
    assert [name[:7] for name in rows_shown(page)] == ["(A) <sc", "base", "(A) h=1", "(A) h=4"]
    heading.click()
    ascending = [name[:7] for name in rows_shown(page)]
    assert ascending == ["(A) h=1", "base", "(A) <sc", "(A) h=4"], "what is missing is last"
    assert page.locator('#table3 th[aria-sort="ascending"]').count() == 1
    heading.click()
    assert rows_shown(page) == shown


def test_rows_are_found_by_words_and_by_table(page: Any) -> None:
    grid = page.locator("#table3 .grid").first
    grid.get_by_role("searchbox").fill("H=1")
    assert rows_shown(page) == ["(A) h=1"]
    assert "1 of 4 shown" in grid.inner_text()
    grid.get_by_role("searchbox").fill("")
    grid.locator("select").select_option("base")
    assert rows_shown(page) == ["base"]
    grid.locator("select").select_option("")
    assert len(rows_shown(page)) == 4


def test_a_row_opens_its_runs_and_escape_leads_back(page: Any, made: Path) -> None:
    page.locator("#table3 tbody tr", has_text="(A) h=1").first.locator("td").nth(2).click()
    dialog = page.get_by_role("dialog")
    assert dialog.locator("h2").inner_text() == "h=1"
    assert dialog.locator(".seed").all_inner_texts() == ["seed 1", "seed 2"]
    assert "\t10.0\t10.0\t" in dialog.locator("tr", has_text="sacreBLEU").first.inner_text()
    page.keyboard.press("ArrowRight")
    expect(dialog).to_contain_text("Seed 2: finished.")  # the page follows its address a moment later
    key = page.evaluate("location.hash").removeprefix("#run=")
    run = packed_at(page, "data-runs")["runs"][key]
    assert (run["table"], run["row"], run["seed"]) == ("table3_A", "h=1", 2)
    assert json.loads((made / "laptop" / run["file"]).read_bytes())["run"] == key
    assert "python experiments/table3_A.py --scale laptop --rows h=1 --seeds 2-2" in dialog.locator("pre").inner_text()
    curves = dialog.locator("svg.curves .line")
    assert curves.count() == 2 * (3 + 1 + 1), "train and dev: base, the other seed, this one"
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(page).to_have_url((made / REPORT).as_uri())


def test_the_keyboard_alone_opens_a_row(page: Any) -> None:
    page.locator("#table3 tbody a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.get_by_role("dialog").locator("h2").inner_text() == "h=1"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "(A) h=1", "the focus is where it was"


def test_a_hostile_name_is_a_name(page: Any) -> None:
    assert page.title() == "Attention Is All You Need at scale laptop"
    assert page.locator("img").count() == 0
    page.locator("#table3 tbody a", has_text="<script>").first.click()
    dialog = page.get_by_role("dialog")
    assert dialog.locator("h2").text_content() == shown(HOSTILE)
    assert page.locator("script").count() == page.evaluate("document.querySelectorAll('body > script').length")


def test_an_address_leads_to_a_run_and_one_of_none_says_so(made: Path, opened: Any) -> None:
    [packed] = re.findall(r'id="data-runs">(.*?)</script>', (made / REPORT).read_text("utf-8"))
    key = next(iter(unpacked(packed)["runs"]))
    assert opened(made / REPORT, f"#run={key}").get_by_role("dialog").locator("h2").inner_text() == "base"
    lost = opened(made / REPORT, "#run=none%FF")
    assert "got none%FF." in lost.get_by_role("dialog").inner_text()


def test_a_script_that_came_in_with_a_name_would_not_run(made: Path, opened: Any, tmp_path: Path) -> None:
    whole = (made / REPORT).read_text("utf-8")
    broken = whole.replace("</main>", "<script>document.title = 'run'</script></main>")
    (tmp_path / "broken.html").write_text(broken, "utf-8")
    page = opened(tmp_path / "broken.html")
    assert page.title() == "Attention Is All You Need at scale laptop"
    [complaint] = page.complaints
    assert "Content Security Policy" in complaint
    page.complaints.clear()


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_sticks_out_and_every_text_can_be_read(made: Path, opened: Any, dark: bool) -> None:
    page = opened(made / REPORT, width=360, dark=dark)
    for width in (360, 800, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    ground, ink = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    assert ground == ("rgb(21, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert ink == ("rgb(230, 228, 223)" if dark else "rgb(26, 26, 26)")


def test_the_index_begins_with_what_settles_most() -> None:
    def shown(scale: str, n_runs: int, n_counted: int) -> Any:
        return SimpleNamespace(
            evidence=SimpleNamespace(records=[None] * n_counted), runs=SimpleNamespace(scale=scale, n=n_runs)
        )

    scales = [shown("a", 90, 0), shown("b", 91, 0), shown("c", 20, 5), shown("d", 8, 8), shown("e", 90, 0)]
    assert [one.runs.scale for one in sorted(scales, key=by_evidence)] == ["d", "c", "b", "a", "e"]


@pytest.mark.parametrize(("scale", "said"), [("laptop", "only the order"), ("paper", "the order")])
def test_the_lead_says_what_results_of_a_size_can_show(scale: str, said: str) -> None:
    judged = SimpleNamespace(claim=SimpleNamespace(is_trained=True), is_judged=True)
    data: Any = SimpleNamespace(
        runs=SimpleNamespace(scale=scale, claim="the order"),
        evidence=SimpleNamespace(records=[1]),
        judged=[],
        stated=[judged],
    )
    assert lead(data) == f"At this size, results can show {said}. Where the paper claims more, this report says so."
    judged.is_judged = False
    assert lead(data).startswith("No claim about trained rows has all the runs that it needs, so nothing is settled")
    data.evidence.records = []
    assert lead(data).startswith("Exploration: no run counts as evidence, so nothing is settled")


@pytest.mark.parametrize(("n", "counted"), [(1, "1 run counts"), (2, "2 runs count")])
def test_the_index_says_what_is_exploration_and_what_is_evidence(laptop: ScaleData, n: int, counted: str) -> None:
    explored = index_report([laptop])
    assert "6 runs of 3 rows" in explored
    assert "Exploration: no run counts as evidence. Text:" in explored
    assert laptop.runs.claim not in explored, "it shows nothing of it"
    evidence = replace(laptop.evidence, fresh=laptop.result_set.everything[:n])
    assert f"{counted} as evidence, which settles no claim yet." in index_report([replace(laptop, evidence=evidence)])
    one = next(one for one in laptop.judged if one.claim.is_trained)
    settled = replace(laptop, evidence=evidence, judged=[replace(one, verdict="undetermined")])
    claim = laptop.runs.claim.replace("<", "&lt;").replace(">", "&gt;")
    assert f"{counted} as evidence, which may show {claim}." in index_report([settled])


def test_the_index_leads_to_each_scale_and_counts_the_claims_that_trained_rows_settle(
    made: Path, laptop: ScaleData
) -> None:
    index = (made / "report.html").read_text("utf-8")
    assert re.findall('<li><a href="(.*?)">laptop</a>', index) == [REPORT]
    assert re.search(r"Text: \w+ en-de, [\d,]+ pairs\.", index)
    trained = [one for one in laptop.judged if one.claim.is_trained]
    counts = index.partition("Claims about trained rows: ")[2].partition("</li>")[0]
    assert sum(map(int, re.findall(r"\d+", counts))) == len(trained) < len(laptop.judged)
