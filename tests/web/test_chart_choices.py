"""What a reader chooses in a chart: by mouse and by keys alike, taken back, and kept when the chart is drawn again."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from waiting import in_the_other_theme

REPORT = "laptop/report.html"
FORESTS = "differences/log_ppl", "differences/bleu"
CURVES = "curves/all"
DRAWN = "new Promise((done) => report.onChart('{}', done)).then(() => null)"
# Playwright's wait_for_function evaluates text, which the page forbids
UNTIL = """() => new Promise((done) => {{
  const look = () => ({} ? done(null) : setTimeout(look, 20));
  look();
}})"""
CHOSEN = """new Promise((done) => report.onChart("curves/all", (view) => done(
  Object.fromEntries(["text", "of_table", "shown", "picked"].map((name) => [name, view.signal(name)])))))"""


def drawn(page: Any) -> Any:
    """A report with all its charts drawn."""
    for key in (*FORESTS, CURVES):
        page.locator(chart(key)).scroll_into_view_if_needed()
        page.evaluate(DRAWN.format(key))
    return page


@pytest.fixture(scope="module")
def shared(made: Path, opened_once: Any) -> Any:
    return drawn(opened_once(made / REPORT, height=1500))


@pytest.fixture
def page(shared: Any) -> Any:
    """The report, in which nothing is open and nothing chosen."""
    if shared.get_by_role("dialog").is_visible():
        shared.keyboard.press("Escape")
    shared.locator(f"{chart(CURVES)} input").first.press("Escape")
    expect(shared.locator(f'{chart(CURVES)} .mark-line path[opacity="0.08"]')).to_have_count(0)
    return shared


def chart(key: str) -> str:
    return f'[data-chart="{key}"]'


def focused(page: Any, attribute: str = "aria-label") -> str:
    return str(page.evaluate("(name) => document.activeElement.getAttribute(name)", attribute))


def legend(page: Any) -> Any:
    return page.locator(f"{chart(CURVES)} .role-legend-label text")


def pressed(page: Any) -> list[str]:
    return list(legend(page).evaluate_all('(all) => all.map((one) => one.getAttribute("aria-pressed"))'))


def drag(page: Any, place: tuple[float, float], by: tuple[float, float]) -> None:
    """From a place that is counted from the lower left corner of the curves' chart, with the mouse."""
    area = page.locator(f"{chart(CURVES)} svg").bounding_box()
    x, y = area["x"] + place[0], area["y"] + area["height"] - place[1]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by[0], y - by[1], steps=4)
    page.mouse.up()


def test_points_and_names_open_their_row_by_keys_and_by_mouse(page: Any) -> None:
    page.locator("#table3 .files button").focus()
    page.keyboard.press("Tab")
    assert page.evaluate(f"document.activeElement.closest('{chart(FORESTS[0])}') !== null")
    page.keyboard.press("Tab")
    assert page.evaluate(f"document.activeElement.closest('{chart(FORESTS[1])}') !== null"), "one stop for all points"
    assert "row: (A) h=1" in focused(page)
    assert (focused(page, "role"), focused(page, "tabindex")) == ("link", "0")
    page.keyboard.press("ArrowDown")
    assert "row: (A) <sc" in focused(page)
    page.keyboard.press("ArrowDown")
    assert "row: (A) <sc" in focused(page), "below the last is none"
    page.keyboard.press("ArrowUp")
    tip = page.locator("#vg-tooltip-element")
    expect(tip).to_be_visible()
    assert "(A) h=1" in tip.inner_text()
    page.keyboard.press("Enter")
    heading = page.get_by_role("dialog").locator("h2")
    expect(heading).to_have_text("h=1")
    page.keyboard.press("Escape")
    expect(heading).not_to_be_visible()
    assert "row: (A) h=1" in focused(page), "where it was"
    page.keyboard.press("Tab")
    expect(tip).not_to_be_visible()
    page.locator(f"{chart(FORESTS[1])} .role-axis-label text", has_text="(A) h=1").click()
    expect(heading).to_have_text("h=1")


def test_right_and_left_go_by_what_lies_beside(page: Any) -> None:
    points = page.locator(f"{chart(CURVES)} .mark-symbol.role-mark path")
    along = [(box["x"], point.get_attribute("aria-label")) for point in points.all() if (box := point.bounding_box())]
    points.first.focus()
    for _ in along:
        page.keyboard.press("ArrowLeft")
    found = [focused(page)]
    for _ in along[1:]:
        page.keyboard.press("ArrowRight")
        found.append(focused(page))
    assert found == [name for _, name in sorted(along)]


def test_names_of_the_legend_are_pressed_by_keys_and_two_clicks_take_a_choice_back(page: Any) -> None:
    pale = page.locator(f'{chart(CURVES)} .mark-line path[opacity="0.08"]')
    page.locator(f"{chart(CURVES)} select").focus()
    page.keyboard.press("Tab")
    assert "row: base" in focused(page), "points first, as they stand in the page"
    page.keyboard.press("Tab")
    assert (page.evaluate("document.activeElement.textContent"), focused(page, "role")) == ("base", "button")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(pale).to_have_count(1)
    assert pressed(page) == ["false", "true"]
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+Enter")
    expect(pale).to_have_count(0)
    assert pressed(page) == ["true", "true"]
    page.keyboard.press("Space")
    expect(pale).to_have_count(2)
    page.keyboard.press("Escape")
    expect(pale).to_have_count(0)
    assert pressed(page) == ["false", "false"]
    assert page.evaluate("document.activeElement.textContent") == "base", "drawn again, and still there"
    legend(page).first.click()
    expect(pale).to_have_count(2)
    legend(page).first.dblclick()
    expect(pale).to_have_count(0)
    assert pressed(page) == ["false", "false"]


def test_a_row_is_chosen_by_its_name_and_seen_beside_the_base(page: Any) -> None:
    marks = page.locator(f"{chart(CURVES)} :is(.mark-line, .mark-symbol.role-mark) path")
    name = page.locator(f'{chart(CURVES)} select[name="named"]')

    def strong() -> list[str]:
        """Whose marks are not pale: in the curves, the strip and the costs, each row once in each."""
        found = marks.evaluate_all("(all) => all.map(({ __data__: of }) => [of.datum.row, of.opacity])")
        return sorted(row for row, opacity in found if opacity >= 0.5)

    rows = ["base", "(A) h=1", name.locator("option").nth(1).inner_text()]
    assert rows[2].startswith("(A) <sc")
    assert name.locator("option").all_inner_texts() == ["all rows", rows[2], rows[1], "base"]
    legend(page).first.click()  # of the base's table: a name counts whatever table was chosen
    expect(marks.and_(page.locator('[opacity="0.08"]'))).to_have_count(2)
    assert strong() == ["base"] * 3
    name.select_option(rows[1])
    expect(marks.and_(page.locator('[opacity="0.08"]'))).to_have_count(1)
    assert strong() == sorted([rows[0], rows[1]] * 3)
    in_the_other_theme(page, CURVES)
    assert (name.input_value(), strong()) == (rows[1], sorted([rows[0], rows[1]] * 3))
    name.select_option("base")
    expect(marks.and_(page.locator('[opacity="0.08"]'))).to_have_count(2)
    assert strong() == ["base"] * 3
    name.press("Escape")
    expect(marks.and_(page.locator('[opacity="0.08"]'))).to_have_count(0)
    assert (name.input_value(), strong()) == ("all rows", sorted(rows * 3))
    assert focused(page, "name") == "named", "drawn again, and still there"


def test_what_was_chosen_stays_when_the_theme_or_the_width_is_another(made: Path, opened: Any) -> None:
    page = drawn(opened(made / REPORT, height=1500))
    legend(page).nth(1).click()
    page.locator(f'{chart(CURVES)} input[value="dev"]').check()
    width = page.locator(f"{chart(CURVES)} svg").bounding_box()["width"]
    drag(page, (50, 45), (width - 100, 80))  # the lower chart, below its highest points
    drag(page, (width / 2, 400), (width, 0))  # the strip, its right half
    before = page.evaluate(CHOSEN)
    assert (before["text"], before["of_table"]["table"]) == ("dev", ["(A)"])
    assert 10 < before["shown"]["step"][0] < before["shown"]["step"][1] == 30
    assert {*before["picked"]} == {"flops", "bleu"}
    in_the_other_theme(page, CURVES)
    themed = page.evaluate(CHOSEN)
    page.set_viewport_size({"width": 900, "height": 1500})
    page.evaluate(UNTIL.format(f"document.querySelector('{chart(CURVES)} svg').clientWidth < 900"))
    narrow = page.evaluate(CHOSEN)
    for after in (themed, narrow):
        assert (after["text"], after["of_table"]["table"]) == ("dev", ["(A)"])
        assert after["shown"]["step"] == pytest.approx(before["shown"]["step"])
        for name, span in before["picked"].items():
            assert after["picked"][name] == pytest.approx(span)
    assert pressed(page) == ["false", "true"]
    assert page.locator(f'{chart(CURVES)} input[value="dev"]').is_checked()
