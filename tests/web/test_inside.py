"""Heads and search in a browser: the numbers of the file, the keyboard goes about, what is missing is said."""

import gzip
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looked_inside import its_record, keep, looked_at
from playwright.sync_api import expect
from report_records import unjudged

from repro.decoding.inside import entropies
from repro.render.text import shown
from repro.results.artifacts import first_sentences, inside_file, packed_inside, read_inside
from repro.results.record import path
from repro.web.report import Section, report_html
from repro.web.sentences import inside_section


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inside")
    record = its_record()
    record.save(path(folder / "results", record))
    keep(looked_at(folder / "run"), record, folder / "results")
    return folder / "results"


@pytest.fixture(scope="module")
def shared(results: Path, opened_once: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    section = inside_section(unjudged(results / "laptop"))
    assert section
    return in_page(section, opened_once, tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture
def page(shared: Any) -> Any:
    """The viewer as it opens."""
    shared.reload()
    shared.locator("#inside .heads button").first.wait_for()
    return shared


def in_page(section: Section, opened: Any, file: Path) -> Any:
    file.write_text(report_html([section], title="Inside", origin="a test"), "utf-8")
    page = opened(file)
    page.locator("#inside .heads button").first.wait_for()
    return page


def with_rows(results: Path, folder: Path, rows: Sequence[tuple[str, str]]) -> Path:
    """A scale with more rows, each with the file of the first."""
    shutil.copytree(results, folder)
    content, weights = read_inside(path(folder, its_record()))
    for n, (table, row) in enumerate(rows):
        one = replace(its_record(run=f"{n + 2:016x}"), table=table, row=row)
        one.save(path(folder, one))
        inside_file(path(folder, one)).write_bytes(packed_inside({**content, "run": one.run}, weights))
    return folder


def test_each_row_has_a_sentence_before_one_has_two(results: Path, tmp_path: Path) -> None:
    folder = with_rows(results, tmp_path / "results", [("lab_parts", "no norm")])
    place = path(folder, its_record())
    whole = len(read_inside(place)[0]["sentences"])
    sizes = [len(first_sentences(place, n)) for n in (1, 2, whole)]
    assert sizes[0] < sizes[1] < sizes[2]
    for room, expected in (
        (sizes[0] - 99, []),
        (2 * sizes[0] - 99, [1]),
        (sizes[0] + sizes[1] + 99, [2, 1]),
        (2 * sizes[2] + 99, [whole, whole]),
    ):
        section = inside_section(unjudged(folder / "laptop"), room)
        assert section
        models = section.data["models"] if section.data else []
        of = [json.loads(gzip.decompress(section.packed[one["file"]]).partition(b"\n")[0]) for one in models]
        assert [len(one["sentences"]) for one in of] == expected, room
        assert [one["n_more"] for one in models] == [whole - n for n in expected]
        assert section.body.count("<li>") == 2 - len(expected)


def test_what_has_no_room_is_a_file_to_open_and_what_was_left_out_is_named(
    results: Path, opened: Any, tmp_path: Path
) -> None:
    folder = with_rows(results, tmp_path / "results", [("lab_parts", "no norm")])
    content, data = read_inside(path(folder, its_record()))
    left = [{"about": "the paper's figure 3", "tokens": 71}]
    inside_file(path(folder, its_record())).write_bytes(packed_inside({**content, "left_out": left}, data))
    section = inside_section(unjudged(folder / "laptop"), len(first_sentences(path(folder, its_record()), 1)))
    assert section
    page = in_page(section, opened, tmp_path / "page.html")
    expect(page.locator("#inside")).to_contain_text(
        "Not included, to keep the file under 100 kB: the paper's figure 3 (71 tokens)."
    )
    whole = len(content["sentences"])
    expect(page.locator("#inside")).to_contain_text(f"{whole - 1} more sentences are in table3_A/h=1-seed1.inside.gz.")
    link = page.locator("#inside").get_by_role("link", name="table3_A/h=1-seed1.inside.gz")
    expect(link).to_have_attribute("href", "table3_A/h%3D1-seed1.inside.gz")
    ours = replace(its_record(), table="lab_parts", row="no norm")
    assert f": lab_parts/{inside_file(path(folder, ours)).name}</li>" in section.body


WEIGHTS = """([i, kind, layer, head, byWord]) => {
  const content = report.inside.read(report.bytes(report.data("inside").models[0].file));
  const sentence = content.sentences[i];
  const of = sentence.attention.find((one) => one.kind === kind);
  return report.inside.weights(of, layer, head, report.inside.sides(sentence, kind), byWord);
}"""


def test_weights_are_those_of_the_file_by_token_and_by_word(results: Path, page: Any) -> None:
    content, data = read_inside(path(results, its_record()))
    bytes_read = np.frombuffer(data, np.uint8) / 255
    at = 0
    for i, sentence in enumerate(content["sentences"]):
        for of in sentence["attention"]:
            weights = bytes_read[at : at + int(np.prod(of["shape"]))].reshape(of["shape"])
            at += weights.size
            kind = of["kind"]
            shown = np.array(page.evaluate(WEIGHTS, [i, kind, 1, 2, False]))
            np.testing.assert_allclose(shown, weights[1, 2], atol=1e-12)
            assert entropies(shown).mean() == pytest.approx(of["entropies"][1][2], abs=0.2)
            queries = sentence["source" if kind == "encoder" else "target"]["of"]
            read = [0, *(n + 1 for n in sentence["target"]["of"][:-1])]
            keys = read if kind == "decoder" else sentence["source"]["of"]
            by_word = np.array(page.evaluate(WEIGHTS, [i, kind, 1, 2, True]))
            asks, asked = np.eye(max(queries) + 1)[queries], np.eye(max(keys) + 1)[keys]
            np.testing.assert_allclose(by_word, (asks / asks.sum(0)).T @ weights[1, 2] @ asked, atol=1e-12)
    assert at == len(data)


def test_a_head_is_chosen_by_click_and_by_arrows(page: Any) -> None:
    heads = page.locator("#inside .heads button")
    assert heads.count() == 2 * 3
    heads.nth(1).click()
    title = page.locator("#inside h3").first
    assert "layer 1, head 2" in title.inner_text()
    before = page.locator("#inside figure svg").first.inner_html()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert "layer 2, head 3" in title.inner_text()
    assert page.locator('#inside .heads [aria-pressed="true"]').get_attribute("data-at") == "1 2"
    assert page.locator("#inside figure svg").first.inner_html() != before
    page.locator("#inside .asks").nth(1).focus()
    lines = page.locator("#inside .from")
    assert page.locator("#inside .from.pale").count() == lines.count() - 1


def test_the_other_choices_change_what_is_shown(results: Path, page: Any) -> None:
    content, _ = read_inside(path(results, its_record()))
    _, sentence, kind, level = page.locator("#inside select").all()
    assert sentence.locator("option").count() == len(content["sentences"])
    sentence.select_option("1")
    kind.select_option("encoder")
    words, tokens = (content["sentences"][1]["source"][of] for of in ("words", "tokens"))
    assert page.locator("#inside .asks").count() == len(words)
    level.select_option("tokens")
    assert page.locator("#inside .asks").count() == len(tokens)
    assert page.locator("#inside .asks").all_text_contents() == [token.strip() for token in tokens]
    assert "seed 1, scale laptop, run 00000000000000ab" in page.locator("#inside").inner_text()


def test_the_tree_leads_by_arrows_and_says_its_numbers(results: Path, page: Any) -> None:
    content, _ = read_inside(path(results, its_record()))
    tree = content["sentences"][0]["tree"]
    nodes = page.locator("#inside .node")
    assert nodes.count() == len(tree["nodes"])
    current = page.locator('#inside .node[aria-current="true"]')
    parent, _, log_prob, score, _ = tree["nodes"][tree["best"]]
    said = current.get_attribute("aria-label")
    assert log_prob < 0 > score
    assert f"log-probability −{-log_prob:.3f}, " in said
    assert f"score −{-score:.3f}; " in said
    assert "the answer" in said
    current.focus()
    page.keyboard.press("ArrowLeft")
    expect(current).to_have_attribute("aria-label", nodes.nth(parent).get_attribute("aria-label"))
    assert f"log-probability −{-tree['nodes'][parent][2]:.3f}, " in current.get_attribute("aria-label")
    way = 0
    place = tree["best"]
    while place >= 0:
        way, place = way + 1, tree["nodes"][place][0]
    assert page.locator("#inside .node.best").count() == way


def test_it_fits_on_narrow_and_wide_screens(page: Any) -> None:
    wide = """() => [...document.querySelectorAll("#inside svg")].map(
      (svg) => svg.clientWidth / svg.parentElement.clientWidth)"""
    assert max(page.evaluate(wide)) > 1, "on a screen the tree is scrolled"
    for width in (1600, 360):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    page.set_viewport_size({"width": 1280, "height": 900})


def test_where_no_file_is_the_viewer_says_what_is_missing(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "results")
    file = inside_file(path(tmp_path / "results", its_record()))
    content, _ = read_inside(path(tmp_path / "results", its_record()))
    of_no_text = packed_inside({**content, "sentences": []}, b"")  # as of a text that may not be given on
    for left in (of_no_text, file.read_bytes()[:-3], None):
        file.unlink()
        if left:
            file.write_bytes(left)
        section = inside_section(unjudged(tmp_path / "results/laptop"))
        assert section
        assert section.data is None
        assert "1 row not in this page" in section.body
        assert "no file</li>" in section.body


def test_rows_without_a_file_are_named_and_one_with_a_sentence_stands_for_its_row(
    results: Path, tmp_path: Path
) -> None:
    shutil.copytree(results, tmp_path / "results")
    empty = its_record(seed=0, run=f"{1:016x}")  # of the row whose seed 1 has sentences
    none = replace(its_record(run=f"{2:016x}"), table="lab_parts", row="no <b>norm</b>")
    for one in (empty, none):
        one.save(path(tmp_path / "results", one))
    content, _ = read_inside(path(results, its_record()))
    nothing = packed_inside({**content, "run": empty.run, "sentences": []}, b"")
    inside_file(path(tmp_path / "results", empty)).write_bytes(nothing)
    section = inside_section(unjudged(tmp_path / "results/laptop"))
    assert section
    assert [model["name"] for model in section.data["models"]] == ["(A) h=1 (here 8), seed 1"]
    assert "<li>lab_parts no &lt;b&gt;norm&lt;/b&gt;: no file</li>" in section.body
    assert "a click on the row shows the command" in section.body


def test_a_file_of_another_row_is_opened_from_the_disk_and_a_bad_one_is_refused(
    results: Path, page: Any, tmp_path: Path
) -> None:
    content, data = read_inside(path(results, its_record()))
    picker, refused = page.locator("#inside input[type=file]"), page.get_by_role("alert")

    def choose(name: str, data: bytes) -> None:
        picker.set_input_files([{"name": name, "mimeType": "application/gzip", "buffer": data}])

    for bad, said in (
        (b"plain text, and long enough", "bad.gz: "),
        (
            gzip.compress(b'{"a": 1}\n'),
            "bad.gz: Expected a file .inside.gz, as it stands beside a record, got another.",
        ),
        (packed_inside({**content, "sentences": []}, b""), "bad.gz: Expected a sentence, got none"),
        (packed_inside(content, data[:-1]), f"bytes, got {len(gzip.decompress(packed_inside(content, data))) - 1}."),
    ):
        choose("bad.gz", bad)
        expect(refused).to_contain_text(said)
        assert page.get_by_label("Model").locator("option").count() == 1
    other = {**content, "search": {**content["search"], "beam": 77}, "run": "00000000000000cd"}
    choose("no norm-seed2.inside.gz", packed_inside(other, data))
    expect(page.locator("#inside")).to_contain_text("Beam 77,")
    expect(refused).not_to_be_visible()
    assert page.get_by_label("Model").locator("option:checked").inner_text() == "no norm-seed2"
    assert "no norm-seed2, run 00000000000000cd" in page.locator("#inside").inner_text()
    page.get_by_label("Model").select_option("0")
    expect(page.locator("#inside")).not_to_contain_text("Beam 77,")


def test_control_characters_in_a_file_are_written_as_escapes(page: Any) -> None:
    text = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA1), *range(0x2028, 0x2030), *range(0x2065, 0x206B))))
    assert page.evaluate("(text) => report.inside.named(text)", text) == shown(text).replace("\\r", "\\x0d")
    head = json.dumps({"format": 1, "sentences": [{"attention": [], "about": "\u202ex"}]}) + "\n"
    read = page.evaluate("(text) => report.inside.read(new TextEncoder().encode(text)).sentences[0].about", head)
    assert read == "\\u202ex"
