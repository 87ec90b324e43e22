"""Sentences side by side: scored as sacreBLEU does, set beside their source where it may be shown, and told apart."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kept_sentences import with_scores
from paper_runs import changed, paper_run
from report_records import packed_at, unjudged
from sacrebleu.metrics import BLEU

from repro.corpora.catalogue import Corpus, GrammarSizes, open_corpus
from repro.pages.scale_data import ScaleData
from repro.render.text import shown
from repro.results import artifacts
from repro.results.record import path
from repro.results.sentences import Translated, write_sentences
from repro.web.report import Section, report_html
from repro.web.sentences import LONGEST, compared, sentences_section

SIZES = GrammarSizes(n_train=30, n_dev=3, n_test=2)
HOSTILE = "</script><img src=x onerror=alert(1)> \u202e &"
LONG = "sehr " * 10_000


def spoken(row: str, seed: int, reference: list[str]) -> list[str]:
    """The base leaves out words under its second seed; h=1 says each line in a way of its own."""
    if row == "h=1":
        return [HOSTILE, "", LONG]
    words = [line.split() for line in reference]
    return [reference[0], " ".join(words[1][1:]), " ".join(words[2][:2])] if seed == 2 else reference


def leave(results: Path, cache: Path) -> None:
    """Two seeds of the base and two of h=1, on generated text."""
    corpus = open_corpus("grammar", "en-de", data_dir=None, cache=cache, sizes=SIZES)
    lines = {split: [b for _, b in text.pairs()] for split, text in (("dev", corpus.dev), ("test", corpus.test))}
    of: Any = {"name": "grammar", "sha256": corpus.sha256, "n_train": 30, "dropped": {}}
    for row, table, seed in (("base", "base", 1), ("base", "base", 2), ("h=1", "table3_A", 1), ("h=1", "table3_A", 2)):
        made = {
            split: Translated(
                spoken(row, seed, of_split) if split == "dev" else of_split, of_split, "en-de", in_tokens=False
            )
            for split, of_split in lines.items()
        }
        run = f"{len(row)}{seed:015x}"
        hyper = changed(n_heads=1) if row == "h=1" else changed()
        record = with_scores(
            paper_run(row, table, seed=seed, run=run, scale="laptop", corpus={**paper_run().corpus, **of}, hyper=hyper),
            made,
        )
        record.save(path(results, record))
        write_sentences(path(results, record), run, made)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[ScaleData, Corpus]:
    folder = tmp_path_factory.mktemp("told")
    leave(folder / "results", folder / "cache")
    corpus = open_corpus("grammar", "en-de", data_dir=None, cache=folder / "cache", sizes=SIZES)
    return replace(unjudged(folder / "results/laptop"), cache=folder / "cache"), corpus


@pytest.fixture(scope="module")
def section(told: tuple[ScaleData, Corpus]) -> Section:
    found = sentences_section(told[0])
    assert found
    return found


@pytest.fixture(scope="module")
def shared(section: Section, opened_once: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(report_html([section], title="Sentences", origin="a test"), "utf-8")
    return opened_once(file)


@pytest.fixture
def page(shared: Any) -> Any:
    """The sentences as they open."""
    shared.goto(shared.url.partition("#")[0])
    shared.reload()
    shared.locator("#sentences figure").first.wait_for()  # they are made when they come into sight
    return shared


def test_each_translation_has_the_scores_of_sacrebleu(section: Section, told: tuple[ScaleData, Corpus]) -> None:
    bleu = BLEU(effective_order=True)
    pairs = [*told[1].dev.pairs()]
    rows = [("base", 1), ("base", 2), ("h=1", 1)]
    assert [one["name"] for one in section.data["rows"]] == ["base, seed 1", "base, seed 2", "(A) h=1, seed 1"]
    assert {one["line"] for one in section.data["sentences"]} == {1, 2, 3}
    for one in section.data["sentences"]:
        source, reference = pairs[one["line"] - 1]
        assert (one["source"], one["reference"]) == (source, reference)
        for i, (row, seed) in enumerate(rows):
            text = spoken(row, seed, [b for _, b in pairs])[one["line"] - 1]
            shown = one["texts"][one["of"][i]]
            assert shown == text or (len(text) > LONGEST and shown == f"{text[:LONGEST]} …")
            assert one["bleu"][i] == pytest.approx(bleu.sentence_score(text, [reference]).score, abs=0.0501)
    assert len(next(one for one in section.data["sentences"] if one["line"] == 1)["texts"]) == 2, "equal ones once"
    assert section.data["sentences"][0]["spread"] == max(one["spread"] for one in section.data["sentences"])
    assert f"sacreBLEU {bleu.get_signature().info['version']}" in section.body


def test_text_that_is_not_generated_or_cannot_be_again_is_not_shown_and_the_page_says_why(
    told: tuple[ScaleData, Corpus],
) -> None:
    data, result_set = told[0], told[0].result_set
    tables: Any = {
        table: [replace(one, corpus=one.corpus | {"name": "wmt14"}) for one in records]  # type: ignore[arg-type]
        for table, records in result_set.tables.items()
    }
    for of, why in (
        (replace(data, cache=None), "Sources and references are not here"),
        (
            replace(data, result_set=replace(result_set, tables=tables)),
            "not shown: the text of wmt14 is not kept beside records. Its counts are.",
        ),
    ):
        found = sentences_section(of)
        assert found
        assert not found.data["has_text"]
        assert {(one["source"], one["reference"]) for one in found.data["sentences"]} == {(None, None)}
        assert why in found.body


def test_words_that_differ_are_told_apart(page: Any) -> None:
    said = page.evaluate("report.words.differences('a b c d', 'a x c e')")
    assert said == [["", "a"], ["del", "x"], ["ins", "b"], ["", "c"], ["del", "e"], ["ins", "d"]]
    assert page.evaluate("report.words.differences('', 'x')") == [["del", "x"]]
    assert page.evaluate("report.words.differences('a  b', 'a b')") == [["", "a b"]]


def test_at_first_the_base_stands_beside_a_row_of_table_3(section: Section, page: Any) -> None:
    assert section.data["first"] == 2
    figures = page.locator("#sentences figure")
    assert {*figures.locator(".rows a").all_inner_texts()} == {"base, seed 1", "(A) h=1, seed 1"}
    chosen = page.locator("#sentences select").evaluate_all("all => all.map(one => one.selectedOptions[0].text)")
    assert chosen[:2] == ["(A) h=1, seed 1", "base, seed 1"]


def test_the_first_run_that_counts_stands_for_its_row(told: tuple[ScaleData, Corpus]) -> None:
    data = told[0]
    base, again, one_head = compared(data)
    assert (base.record.seed, again.record.seed) == (1, 2)
    counting = replace(data, evidence=replace(data.evidence, fresh=[again.record]))
    assert [side.record for side in compared(counting)] == [again.record, base.record, one_head.record]


def test_rows_are_grouped_by_what_they_wrote_and_link_to_their_runs(page: Any) -> None:
    figures = page.locator("#sentences figure")
    row, against, _ = page.locator("#sentences select").all()
    row.select_option(label="all rows")
    against.select_option(label="reference")
    data = packed_at(page, "data-sentences")["sentences"]
    assert "the two" not in figures.locator("figcaption").first.inner_text()
    assert [int(text.split()[1].strip(":")) for text in figures.locator("figcaption").all_inner_texts()] == [
        one["line"] for one in data
    ]
    first = figures.filter(has_text="line 1:")
    lines = first.locator("tbody tr:not(.given)")
    assert lines.count() == 2
    assert lines.nth(0).locator("a").all_inner_texts() == ["base, seed 1", "base, seed 2"]
    assert lines.nth(0).locator("ins, del").count() == 0
    assert lines.nth(1).locator("ins").inner_text() == shown(HOSTILE)
    assert page.locator("img").count() == 0
    lines.nth(1).locator("a").click()
    assert page.evaluate("location.hash").endswith("#run=3000000000000001")


def test_a_row_is_compared_with_another(page: Any) -> None:
    row, against, order = page.locator("#sentences select").all()
    row.select_option(label="base, seed 1")
    against.select_option(label="base, seed 2")
    captions = page.locator("#sentences figcaption").all_inner_texts()
    assert [text.split(":")[0] for text in captions] == ["line 3", "line 2", "line 1"], "as the two differ"
    apart = [float(re.findall(r"the two differ by ([\d.]+) BLEU; over all rows", text)[0]) for text in captions]
    assert apart == sorted(apart, reverse=True), "and they say by how much"
    one = next(one for one in packed_at(page, "data-sentences")["sentences"] if one["line"] == 3)
    assert apart[0] == pytest.approx(abs(one["bleu"][0] - one["bleu"][1]), abs=0.051)
    second = page.locator("#sentences figure").nth(1)
    assert second.locator("tbody tr:not(.given)").count() == 2
    assert second.locator("ins").all_inner_texts() == [second.locator(".given td").nth(1).inner_text().split()[0]]
    assert second.locator("del").count() == 0
    order.select_option("line")
    captions = page.locator("#sentences figcaption").all_inner_texts()
    assert [text.split(":")[0] for text in captions] == ["line 1", "line 2", "line 3"]
    page.get_by_role("searchbox").fill("ONERROR=alert")
    assert page.locator("#sentences figure").count() == 1
    assert "1 of 1 shown" in page.locator("#sentences").inner_text()


def test_translations_that_are_not_those_that_were_scored_are_named(
    told: tuple[ScaleData, Corpus], tmp_path: Path
) -> None:
    shutil.copytree(told[0].result_set.folder, tmp_path / "results/laptop")
    place = tmp_path / "results/laptop/base/base-seed1.json"
    found = artifacts.read(place, "dev")
    assert found
    hypotheses = [*found.columns["hypothesis"][1:], "another"]
    artifacts.write(place, "dev", found._replace(columns={**found.columns, "hypothesis": hypotheses}))
    with pytest.raises(ValueError, match="other translations of dev stand beside it than were scored. Restore"):
        compared(unjudged(tmp_path / "results/laptop"))
