"""MLflow's own page on a saved view: what a row is judged by is in sight, with two decimals and less the base's."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tracked_runs import describe

from repro.cli import tracking
from repro.storage.journal import Journal
from repro.tracking.mirror import sync
from repro.tracking.views import View, save_views, view_path

WIDTH = 1_400  # of a window, in pixels
WHOLE = """(of) => {
  const text = document.createRange();
  text.selectNodeContents(of);
  const edge = text.getBoundingClientRect().right - 0.5;
  for (let at = of; at && !at.matches(".ag-root"); at = at.parentElement)
    if (getComputedStyle(at).overflowX !== "visible" && at.getBoundingClientRect().right < edge) return false;
  return true;
}"""
BLEU = {"base": (60.0, 61.0, 62.0), "eps_ls=0.2": (50.004, 51.0, 53.0)}
PAPER = {"base": {"ppl": 4.92, "bleu": 25.8}, "eps_ls=0.2": {"ppl": 5.29, "bleu": 24.9}}
# t(2, 97.5 %) = 4.3027; of 50.004, 51 and 53 the mean is 51.3347 and the standard deviation 1.5258; of 2.5678, 2.74 and
# 2.9122 the mean is 2.74 and the standard deviation 0.1722
SEEN = {
    "row_mean/ppl": "2.74",
    "row_mean/ppl_diff": "0.17",
    "paper_ppl": "5.29",
    "row_mean/bleu": "51.33",
    "row_mean/bleu_ci": "3.79",
    "row_mean/bleu_diff": "-9.67",
    "paper_bleu": "24.9",
}


@pytest.mark.filterwarnings("ignore")
def test_what_a_row_is_judged_by_is_in_sight(browser: Any, new_store: Callable[[], str], tmp_path: Path) -> None:
    uri = new_store()
    for order, (row, scores) in enumerate(BLEU.items()):
        for seed, bleu in enumerate(scores, start=1):
            folder = tmp_path / f"{order}{seed}"
            table = "base" if row == "base" else "table3_D"
            describe(folder, folder.name, table=table, row=row, seed=seed, paper=PAPER[row], order=order)
            with Journal(folder / "journal.jsonl") as journal:
                journal.append("final", 0, dev_ppl=2.5678 + order * 0.1722 * (seed - 1), dev_bleu=bleu)
            sync(uri, folder)
    save_views(uri, [view := View(scale="smoke", table="table3_D", title="Table 3 (D)")])
    with tracking.server(uri, tracking.free_port(23_000 + os.getpid() % 10_000)) as (address, _):
        page = browser.new_page(viewport={"width": WIDTH, "height": 700})
        page.goto(address + tracking.find_view(address, "smoke", "table3_D")[0], timeout=120_000)
        page.get_by_text("Group: eps_ls=0.2").wait_for(timeout=120_000)
        page.get_by_role("button", name="Close", exact=True).last.click()  # the assistant, open at the first visit
        page.locator(".ag-header-cell[col-id*=paper_bleu]").first.wait_for()
        if picture := os.environ.get("REPRO_PICTURE"):
            page.screenshot(path=picture)
        table = page.locator(".ag-body-viewport").bounding_box()
        edge = table["x"] + table["width"]
        assert edge <= WIDTH
        grouped = page.locator(".ag-row").filter(has_text="Group: eps_ls=0.2").get_attribute("row-index")
        for name, text in SEEN.items():
            of = f"[col-id='metrics.`{name}`']"
            heading = page.locator(f".ag-header-cell{of}")
            box = heading.bounding_box()
            assert box["x"] + box["width"] <= edge, name
            assert heading.locator(f"[data-testid='sort-header-{name}']").evaluate(WHOLE), f"{name} is cut"
            cell = page.locator(f".ag-row[row-index='{grouped}'] {of}")
            assert cell.inner_text().split()[0] == text, name
        assert page.get_by_text("Group: eps_ls=0.2").evaluate(WHOLE), "the row's name is cut"
        for name in BLEU:  # two rows that are ticked can be compared
            run = page.locator(".ag-row").filter(has_text=f"{name}, seed 1").first.get_attribute("row-index")
            page.locator(f".ag-row[row-index='{run}'] .ag-checkbox-input").first.click()
        page.get_by_role("button", name="Compare", exact=True).click()
        page.get_by_text("Comparing 2 Runs").first.wait_for()
        for name in BLEU:
            page.get_by_text(f"{name}, seed 1").first.wait_for()
        page.goto("about:blank")
        page.goto(f"{address}{view_path('1', view.key, charts=True)}", timeout=120_000)
        page.get_by_text("BLEU and loss").wait_for(timeout=120_000)
        page.locator(".js-plotly-plot").first.wait_for(timeout=120_000)
        page.close()
