"""What a browser computes from the paper's formulas is what Python computes, and a slider moves what is said."""

import itertools
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from repro.model.config import BASE
from repro.model.embedding import sinusoids
from repro.pages.scale_data import ScaleData
from repro.results.measured import LAYER_COSTS_FOLDER, Measured, load
from repro.training.module import rate
from repro.web.charts import N_KEYS, explorables_section, laws
from repro.web.report import report_html

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def page(laptop: ScaleData, opened_once: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The formulas on a page of their own, with the published counts of Table 1."""
    folder = tmp_path_factory.mktemp("formulas")
    shutil.copytree(RESULTS / LAYER_COSTS_FOLDER, folder / LAYER_COSTS_FOLDER)
    counted = replace(laptop, result_set=replace(laptop.result_set, folder=folder / "laptop"))
    file = folder / "page.html"
    file.write_text(report_html([explorables_section(counted)], title="Formulas", origin="a test"), "utf-8")
    return opened_once(file)


def computed(page: Any, function: str, *arguments: Any) -> Any:
    return page.evaluate(f"(of) => report.formulas.{function}(...of)", [*arguments])


def test_the_browser_computes_the_formulas_as_the_training_does(page: Any) -> None:
    for step in (1, 7, 3_999, 4_000, 4_001, 100_000):
        assert computed(page, "rate", step, 64, 4_000) == pytest.approx(rate(step, 64, 4_000), rel=1e-12)
    codes = sinusoids(100, BASE.d_model)
    for position, i in ((0, 0), (1, 0), (99, 0), (99, 17), (50, 255)):
        expected = codes[position, 2 * i : 2 * i + 2].tolist()
        assert computed(page, "code", position, i, BASE.d_model) == pytest.approx(expected, abs=1e-6)
    assert computed(page, "softmax", [0.0, 0.0, -800.0]) == [0.5, 0.5, 0.0]
    assert computed(page, "jacobian", [0.5, 0.5]) == pytest.approx(0.5), "[[1/4, -1/4], [-1/4, 1/4]]"
    measured = load(RESULTS, Measured)
    assert measured
    by_layer = {law["layer"]: law for law in laws(measured)}
    for one in measured.counts:
        if one.layer in by_layer:
            sizes = {"n": one.n, "d": one.d, "window": one.window or 1}
            given = computed(page, "operations", by_layer[one.layer], sizes)
            assert given == pytest.approx(one.mixing_flops, rel=1e-12), one


@pytest.mark.parametrize("width", [360, 1_280])
def test_formulas_and_pictures_have_room(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))")
    assert page.locator("#explorables .plot svg").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in page.locator("#explorables .plot").all():
        assert box.locator("svg").bounding_box()["width"] <= box.bounding_box()["width"] + 1
    for formula in page.locator(".formula").all():
        assert formula.evaluate("(one) => one.scrollWidth <= one.clientWidth"), formula.inner_text()
    said = page.locator(".formula").first.text_content()
    assert said == "rate = dmodel−0.5 · min(step−0.5, step · warmup−1.5)"


def test_a_slider_changes_what_is_said_and_drawn(page: Any) -> None:
    page.reload()  # where the sliders begin
    page.locator("#explore-layers svg").wait_for()
    expected = {"rate": "step 4,100", "codes": "Pair 17 ", "softmax": "d_k = 128 ", "layers": "n = 128, "}
    for name, said in expected.items():
        figure = page.locator(f"#explore-{name}")
        drawn = figure.locator("svg").inner_html()
        assert said not in figure.locator("figcaption").inner_text()
        figure.get_by_role("slider").first.press("ArrowRight")
        assert said in figure.locator("figcaption").inner_text()
        assert figure.locator("svg").inner_html() != drawn
        assert figure.locator("svg").get_attribute("aria-label") == figure.locator("figcaption").inner_text()


def test_counts_are_in_the_legend_where_there_are_any(page: Any) -> None:
    figure = page.locator("#explore-layers")
    counted = figure.locator(".legends", has_text="counted at this d, k and r")
    expect(counted).to_be_visible()
    assert figure.locator("svg circle").count() > 0
    figure.get_by_role("slider").nth(1).fill("11")
    expect(figure.locator("svg circle")).to_have_count(0)
    expect(figure.locator(".legend", has_text="counted")).not_to_be_visible()


def at_ends(page: Any, name: str, *values: int) -> str:
    """What a picture says when its sliders stand at these values."""
    figure = page.locator(f"#explore-{name}")
    figure.get_by_role("slider").first.wait_for()
    for slider, value in zip(figure.get_by_role("slider").all(), values, strict=True):
        slider.fill(str(value))
    return str(figure.locator("figcaption").inner_text())


def test_what_is_almost_all_or_almost_nothing_is_not_rounded_to_it(page: Any) -> None:
    said = at_ends(page, "softmax", 10)
    assert "At d_k = 1,024 the heaviest of 16 keys has more than 99.9 % without" in said
    z = np.random.default_rng(17).standard_normal(N_KEYS).round(6) * 32
    others = np.exp(np.sort(z)[:-1] - z.max())  # each weight p of them, and 1 - p of the heaviest is their sum
    norm = (others.sum() ** 2 + 3 * (others**2).sum()) ** 0.5  # entries p_i, -p_i twice, and their sum
    assert float(re.findall(r"norm of (\S+) without", said)[0].replace("−", "-")) == pytest.approx(norm, rel=5e-3)
    assert at_ends(page, "softmax", 0).count("31.1 %") == 2, "at d_k = 1 there is nothing to scale"


def test_a_neighbourhood_is_never_more_than_the_whole(page: Any) -> None:
    for n, window in itertools.product((3, 13), (3, 65)):
        said = at_ends(page, "layers", n, 11, window)
        counts = {
            layer: int(re.findall(rf"{re.escape(layer)} ([\d,]+)", said)[0].replace(",", ""))
            for layer in ("self-attention", "self-attention (restricted)", "recurrent", "convolutional")
        }
        length, d = 2**n, 2**11
        assert counts == {  # n^2 d, r n d, n d^2 and k n d^2, times the products and sums of each
            "self-attention": 4 * length**2 * d,
            "self-attention (restricted)": 4 * min(window, length) * length * d,
            "recurrent": 2 * length * d**2,
            "convolutional": 2 * window * length * d**2,
        }
        assert ("r at most n" in said) == (window > length)


def test_without_counts_table_1_is_left_out(laptop: ScaleData) -> None:
    section = explorables_section(laptop)
    assert section.body.count('class="explorable"') == 3
